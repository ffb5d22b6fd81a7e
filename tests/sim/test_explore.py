"""Exploration: complete, repeatable, and it finds what is planted."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.bugs import planted_log, planted_orders  # noqa: F401  # They register their bugs.
from tests.bugs.planted import planted

from roundelay.cli import main
from roundelay.core.effects import SetTimer
from roundelay.membership.config import CONSENSUS
from roundelay.membership.machine import Membership
from roundelay.sim.explore import SITUATIONS, Exploration, Search, Tally, Violation
from roundelay.sim.explore.deviations import Kind
from roundelay.sim.explore.routes import Route
from roundelay.sim.explore.states import digest
from roundelay.sim.explore.stepped import SteppedRunner
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.sim.watch import Watch
from roundelay.trace.schema import Row

CHILD = """
import json
from roundelay.sim.explore import Exploration
exploration = Exploration(deviations=1, situations=("messages",))
list(exploration.run())
print(json.dumps(exploration.document()))
"""


def explore(jobs: int = 1, **scope) -> Exploration:
    exploration = Exploration(**scope)
    list(exploration.run(jobs))
    return exploration


def search_all(search: Search) -> Tally:
    total = Tally()
    for number in range(search.parts):
        total.add(search.part(number))
    return total


def first_violation(
    situation: str,
    deviations: int,
    protocol: str = "totem",
    *,
    log: bool = False,
) -> Violation:
    search = Search(protocol, situation, deviations=deviations, limit=1, log=log)
    for number in range(search.parts):
        if found := search.part(number).violations:
            return found[0]
    raise AssertionError("nothing was found")


def play(scenario: str) -> tuple[ScenarioRunner, str]:
    """The run of a scenario, and what its last block prints or what broke in it."""
    story, printed = ScenarioRunner(watch=Watch()), ""
    try:
        for block in parse(scenario):
            printed = story.play(block)
    except AssertionError as e:
        printed = f"an invariant broke: {e}"
    return story, printed


class Base:
    __slots__ = ("hidden",)


class Derived(Base):
    __slots__ = ("shown",)

    def __init__(self, hidden: object, shown: object) -> None:
        self.hidden, self.shown = hidden, shown


def test_digests_tell_states_apart_and_nothing_else():
    assert digest(Derived({"x", "y"}, [1])) == digest(Derived({"y", "x"}, [1]))
    different = [Derived(1, 2), Derived(2, 1), Derived(None, bytearray(b"a")), [], (), {}, set()]
    different += [Derived(None, bytearray(b"b")), [1], (1,), {1: 1}, {1}, [None], ["a"], [b""]]
    assert len({digest(state) for state in different}) == len(different)
    for hiding in (itertools.count(), print, iter("a")):
        with pytest.raises(TypeError, match="cannot be compared"):
            digest(Derived(hiding, None))


def enclosing(state: int) -> Callable[[], int]:
    return lambda: state


def test_functions_are_what_they_enclose():
    assert digest(enclosing(1)) == digest(enclosing(1)) != digest(enclosing(2))
    assert digest(enclosing) != digest(explore)


@pytest.mark.parametrize("protocol", ["totem", "fifo", "atop", "allack", "causal", "fc"])
def test_a_small_scope_is_searched_completely_and_nothing_is_found(protocol):
    exploration = explore(protocol=protocol, deviations=1, situations=("messages", "crash"))
    assert_sound(exploration)
    assert set(exploration.tallies["messages"].tried) >= {"lose", "delay", "copy", "crash"}


def test_a_small_scope_with_a_log_is_searched_completely_and_nothing_is_found():
    assert_sound(explore(deviations=1, situations=("crash",), log=True))


def assert_sound(exploration: Exploration) -> None:
    assert exploration.complete
    assert exploration.document()["violations"] == []
    for tally in exploration.tallies.values():
        assert 0 < tally.merged < tally.runs
        assert 10 < len(tally.histories) <= tally.runs - tally.merged < len(tally.states)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_situation_comes_to_rest_without_deviations(situation):
    tally = search_all(Search("totem", situation, deviations=0))
    assert (tally.runs, len(tally.histories), tally.violations) == (1, 1, [])


@pytest.mark.parametrize(
    ("bug", "protocol", "situation", "deviations"),
    [
        ("anybody_raises_aru", "totem", "messages", 1),
        ("gap_ignored", "totem", "crash", 1),
        ("not_frozen", "totem", "crash", 1),
        ("old_ring_not_sealed", "totem", "crash", 1),
        ("transitional_by_name", "totem", "crash", 1),
        ("atop_changes_without_the_late", "atop", "messages", 0),
        ("atop_drops_what_waits", "atop", "messages", 1),
        ("allack_waits_for_nobody", "allack", "messages", 0),
        ("causal_delivers_without_causes", "causal", "messages", 1),
        ("log_ready_before_the_sync", "totem", "messages", 0),
        ("log_packets_before_the_opening", "totem", "messages", 1),
        ("log_transitional_deliveries", "totem", "crash", 1),
    ],
)
def test_a_planted_bug_is_found_and_its_scenario_shows_it_again(
    bug, protocol, situation, deviations
):
    with planted(bug):
        log = bug.startswith("log_")
        violation = first_violation(situation, deviations, protocol, log=log)
        _, printed = play(violation.scenario)
    assert len(violation.deviations) == deviations
    for failure in violation.failures:
        assert failure in printed
    _, printed = play(violation.scenario)
    assert "violated" not in printed
    assert "broke" not in printed


def test_a_run_that_goes_round_in_a_circle_is_judged():
    """Nobody gives up the silent: two nodes say the same for ever, in states that return."""

    def wait_on(self: Membership) -> None:
        self._state.emit(SetTimer(CONSENSUS, self.config.consensus_s))

    with patch.object(Membership, "_on_consensus_timer", wait_on):
        violation = first_violation("crash", 0)
        _, printed = play(violation.scenario)
    assert violation.failures[0].startswith("L")
    assert violation.failures[0] in printed


class Unmerged(Search):
    """Follows every run to its end."""

    _places = itertools.count()

    def _place(self, *_: object) -> int:
        return next(self._places)


@pytest.mark.parametrize("situation", ["messages", "crash"])
def test_merging_runs_hides_no_history(situation):
    merged = search_all(Search("totem", situation, deviations=1))
    every = search_all(Unmerged("totem", situation, deviations=1))
    assert every.merged == 0 < merged.merged
    assert every.runs == merged.runs
    assert every.histories == merged.histories


Story = list[tuple[object, ...]]


def story_of(rows: list[Row]) -> Story:
    """Views and deliveries, with their times, of each node in its order."""
    told = [row for row in rows if row.kind in ("install", "deliver", "crash")]
    told.sort(key=lambda row: (row.proc, row.inc, row.lseq))
    return [(row.kind, row.t_ns, row.proc, row.inc, row.m_src, row.m_seq) for row in told]


def condemned(search: Search, parts: Iterable[int]) -> list[tuple[Violation, Story]]:
    """All runs of these parts as if each violated something, and what happened in them."""
    ended: list[Story] = []

    def condemn(stage: SteppedRunner) -> tuple[str, ...]:
        ended.append(story_of(stage.rows))
        return ("everything is wrong",)

    with patch.object(SteppedRunner, "judge", condemn):
        found = [violation for number in parts for violation in search.part(number).violations]
    return list(zip(found, ended, strict=True))


def test_scenarios_are_the_runs_that_were_searched():
    """Frames of a second incarnation among them, whose names need quotes."""
    search = Search("totem", "restart", deviations=1, limit=10_000)
    runs = condemned(search, range(search.parts))
    assert len(runs) > 30
    assert any("'1/" in deviation for violation, _ in runs for deviation in violation.deviations)
    for violation, searched in runs:
        assert story_of(play(violation.scenario)[0].rows) == searched, violation.scenario


class PowerCuts(Search):
    """Of all deviations makes only the crash of one node, and its restart."""

    def __init__(self) -> None:
        super().__init__("totem", "messages", deviations=2, limit=1000, log=True)

    def _lose(self, *_: object) -> None:
        pass

    def _copy(self, *_: object) -> None:
        pass

    def _expire(self, *_: object) -> None:
        pass

    def _crashes(self, route: Route, *others: Any) -> None:
        if not route.steps:
            super()._crashes(route, *others)


def test_with_a_log_a_machine_may_lose_power_and_come_back():
    runs = condemned(PowerCuts(), [8])
    assert any("power keep=0" in violation.deviations[0] for violation, _ in runs)
    for violation, searched in runs:
        assert story_of(play(violation.scenario)[0].rows) == searched, violation.scenario


def test_a_power_cut_shows_what_was_not_synced():
    with planted("log_stored_before_the_sync"):
        violation, *_ = PowerCuts().part(4).violations
        _, printed = play(violation.scenario)
    cut, restart = violation.deviations
    assert "power keep=0" in cut
    assert "storage=kept" in restart
    assert violation.failures[0].startswith("J8 violated")
    assert violation.failures[0] in printed
    assert "violated" not in play(violation.scenario)[1]


def test_figures_are_the_same_twice_and_in_two_processes():
    first, again, spread = (
        explore(jobs, deviations=1, situations=("messages",)).document() for jobs in (1, 1, 2)
    )
    assert first == again == spread


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_figures_are_the_same_under_any_hash_seed(hash_seed):
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert json.loads(child.stdout) == explore(deviations=1, situations=("messages",)).document()


def test_situations_and_deviations_are_documented():
    text = (Path(__file__).parents[2] / "docs" / "swarm.md").read_text()
    default = Exploration().scope.depth
    for name, situation in SITUATIONS.items():
        assert f"| `{name}` | {situation.story} | {default(name)} |\n" in text
    for kind in Kind:
        assert f"| `{kind}` | " in text


def command(*words: str) -> int:
    return main(["sim", "explore", "--jobs", "1", "--situation", "crash", *words])


def test_the_command_says_what_it_covered(capsys):
    assert command("--deviations", "0", "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["complete"]
    assert (figures["runs"], figures["violations"], figures["replay"]) == (1, [], [])
    assert figures["situations"]["crash"]["deviations"] == 0
    assert command("--deviations", "0") == 0
    assert "no violation" in capsys.readouterr().out


def test_a_violation_is_a_file_and_a_command(capsys, tmp_path):
    with planted("gap_ignored"):
        assert command("--deviations", "1", "--limit", "1", "-o", str(tmp_path), "--json") == 1
        figures = json.loads(capsys.readouterr().out)
        assert not figures["complete"]
        (again,) = figures["replay"]
        program, *words = again.split()
        assert program == "roundelay"
        assert main(words) == 0
        assert figures["violations"][0]["failures"][0] in capsys.readouterr().out
        assert command("--deviations", "1", "--limit", "1", "-o", str(tmp_path)) == 1
    picture = tmp_path / "totem-crash-1.svg"
    assert f"picture: {picture} (open it in a browser)" in capsys.readouterr().out
    assert "violated: " in picture.read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--protocol", "template"],
            "choose a protocol of: allack, atop, causal, fc, fifo, st, totem",
        ),
        (["--situation", "nowhere"], "there is no situation 'nowhere'"),
        (["--nodes", "2"], "--nodes must be 3 to 5, not 2"),
        (["--deviations", "-1"], "--deviations must be 0 or more, not -1"),
        (["--limit", "0"], "--limit must be 1 or more, not 0"),
        (["--jobs", "0"], "--jobs must be 1 or more, not 0"),
    ],
)
def test_what_cannot_be_explored_is_refused_in_a_sentence(words, sentence, capsys):
    assert main(["sim", "explore", *words]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_a_directory_that_cannot_be_written_is_named(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    with planted("gap_ignored"):
        assert command("--deviations", "1", "--limit", "1", "-o", str(tmp_path / "file")) == 2
    assert "choose another with -o" in capsys.readouterr().err
