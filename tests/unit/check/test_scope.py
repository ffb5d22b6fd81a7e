"""A property that needs one node only finds nothing in its rows that is not wrong in all rows."""

from collections import Counter

import pytest

from roundelay.check import PROPERTIES, Scope, Validity, check
from roundelay.check.online import COVERED, OnlineChecker
from roundelay.sim.swarm import run
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

from .online_runs import random_run
from .trial import recounted

VIOLATED = Validity.VIOLATED
OWN = [name for name, found in PROPERTIES.items() if found.scope is Scope.NODE]
UNTRUSTED = ("T1", "T2", "T3", "T4")


def parts(manifest: Manifest, rows: list[Row]) -> list[tuple[Manifest, list[Row]]]:
    """The rows of each node alone, as its own trace would have them."""
    made = []
    for node in range(len(manifest.nodes)):
        own = [row for row in rows if row.proc == node]
        made.append((recounted(manifest, own), own))
    return made


def broken(manifest: Manifest, rows: list[Row], name: str) -> bool:
    """Alone: whether the trace can be trusted is another question."""
    return check(rows, manifest, profile=[name])[name].validity is VIOLATED


def broken_online(manifest: Manifest, rows: list[Row], names: list[str]) -> set[str]:
    checker = OnlineChecker(manifest.nodes, names)
    for row in rows:
        checker.append(row)
    return {verdict.property for verdict in checker.violations}


@pytest.mark.parametrize("views", [False, True], ids=["static", "views"])
def test_what_breaks_in_the_rows_of_one_node_is_broken(views):
    seen: Counter[str] = Counter()
    covered = [name for name in OWN if name in COVERED]
    for seed in range(150):
        manifest, rows = random_run(seed, views=views)
        whole = {name for name in OWN if broken(manifest, rows, name)}
        for one, own in parts(manifest, rows):
            found = {name for name in OWN if broken(one, own, name)}
            assert found <= whole, seed
            assert broken_online(one, own, covered) == found & set(covered), seed
            seen.update(found)
    expected = {"D2", "O1", "O4", "T2", "T3"} | ({"M1", "M2", "M6", "D6"} if views else set())
    assert expected <= seen.keys()


@pytest.mark.parametrize("protocol", ["totem", "dtp", "fifo"])
def test_no_false_alarm_on_the_rows_of_one_node(protocol):
    """Under crashes, partitions and losses, whatever the others did."""
    for seed in range(6):
        outcome = run(seed, protocol)
        assert outcome.report is not None
        held = {entry.property for entry in outcome.report.profile.entries}
        rows = outcome.runner.rows
        names = [name for name in OWN if name in held]
        for one, own in parts(outcome.runner.manifest(), rows):
            assert not check(own, one, profile=names).violated, seed
            assert not broken_online(one, own, [n for n in names if n in COVERED]), seed


def test_most_properties_need_all_nodes():
    """Those that ask what others did would be false alarms on one node's rows."""
    story = run(0, "totem").runner
    one, own = parts(story.manifest(), story.rows)[0]
    for name in ("T4", "D1"):
        assert PROPERTIES[name].scope is Scope.GROUP
        assert broken(one, own, name)
