"""What the paper of FC assumes, judged on runs of the engine: who failed, and how many may."""

from dataclasses import replace

import pytest

from roundelay.check import Report, Validity, check
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse

OK, OUTSIDE = Validity.OK, Validity.OUTSIDE

STORY = """engine fc static rules={rules} k={k}
network lan latency=100us
nodes a b c d e
load messages=20 rate=100/s
{faults}run 300ms
heal
end after=2s
----
"""


def play(rules: str, k: int, *faults: str) -> ScenarioRunner:
    runner = ScenarioRunner()
    for block in parse(
        STORY.format(rules=rules, k=k, faults="".join(f"{line}\n" for line in faults))
    ):
        runner.play(block)
    return runner


def judged(runner: ScenarioRunner) -> Report:
    return check(runner.rows, runner.manifest())


def test_the_manifest_tells_how_many_may_fail():
    manifest = play("paper", 2).manifest()
    assert manifest.envelope == {"k": 2}
    assert (manifest.rules, manifest.mode) == ("paper", "static")


@pytest.mark.parametrize("rules", ["paper", "link"])
def test_one_replica_that_crashes_is_inside(rules):
    report = judged(play(rules, 1, "at 50ms crash b"))
    assert report["E2"].validity is OK
    assert report.ok


@pytest.mark.parametrize(("k", "validity"), [(1, OUTSIDE), (2, OK)])
def test_neighbours_that_crash_are_outside_if_they_are_more_than_k(k, validity):
    report = judged(play("link", k, "at 50ms crash b", "at 51ms crash c"))
    assert (report["E2"].validity is OK) is (validity is OK)
    assert report["N2"].validity is validity


@pytest.mark.parametrize(("later_ms", "validity"), [(52, OUTSIDE), (250, OK)])
def test_two_that_are_no_neighbours_may_not_crash_at_the_same_time(later_ms, validity):
    """Between the two the others have made a token anew, and it has gone round."""
    report = judged(play("link", 1, "at 50ms crash b", f"at {later_ms}ms crash d"))
    assert (report["E2"].validity is OK) is (validity is OK)
    assert report["N2"].validity is validity


def test_a_replica_that_is_only_slow_has_failed():
    """The others suspect it, which a static group records at once."""
    report = judged(play("link", 0, "at 50ms pause b", "at 150ms resume b"))
    assert report["E2"].validity is Validity.VIOLATED
    assert "b" in report["E2"].reason
    assert report["N1"].validity is OUTSIDE


def test_a_decision_that_its_successor_does_not_get_is_a_failure():
    faults = ("lose DEC from=a to=b times=1",)
    report = judged(play("link", 0, *faults))
    assert report["E2"].validity is Validity.VIOLATED
    assert judged(play("link", 1, *faults))["E2"].validity is OK


def test_without_k_nobody_can_tell():
    runner = play("paper", 1, "at 50ms crash b")
    manifest = replace(runner.manifest(), envelope={})
    assert check(runner.rows, manifest)["E2"].validity is Validity.INCONCLUSIVE


def test_the_safe_rules_assume_nothing():
    report = judged(play("safe", 1, "at 50ms crash b", "at 51ms crash c"))
    assert "E2" not in {verdict.property for verdict in report.verdicts}
    assert report.ok
