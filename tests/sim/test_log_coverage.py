"""Every goal of the replicated log: a story in which it is reached, and one that comes near.

Many of the stories are those of `tests/scenarios/log`; what comes near is often another of them.
"""

from pathlib import Path
from typing import NamedTuple

import pytest
from tests.sim.played import of_commands, played

from roundelay.sim.coverage import Evidence, catalogue
from roundelay.sim.coverage.logs import WITH_A_LOG

SCENARIOS = Path(__file__).parents[1] / "scenarios" / "log"
GOALS = catalogue("totem", log=True)


class Case(NamedTuple):
    """Two stories: names of scenarios, or commands after the nodes, which begin with 300 ms of
    peace."""

    reached: str
    near: str = ""
    edit: tuple[str, str] = ("", "")
    """If there is no `near`: what is otherwise in the story that reaches the goal, and how."""
    nodes: str = "a b c"
    setup: str = "journal"


CASES = {
    "committed-without-its-sender": Case(
        "append a m0\nrun 500us\ncrash a\nrun 1s", edit=("500us", "20ms")
    ),
    "tail-cut": Case("r02_tail_cut", "r01_sender_cut_off"),
    "tail-kept": Case("r13_opened_as_it_ends", "r01_sender_cut_off"),
    "adopted-from-a-restarted-node": Case(
        "r03_power_cut_of_all", "r04_power_cut_before_the_majority"
    ),
    "opened-while-one-fills": Case("window_with_a_gap", "r05_two_of_three"),
    "installed-and-never-opened": Case("r08_installed_and_not_opened", "r01_sender_cut_off"),
    "packet-before-ready": Case("r13_opened_as_it_ends", "r12_tail_of_two"),
    "attempt-blocks": Case(
        "r08_installed_and_not_opened", edit=("partition a,d,e b c\nrun 600ms", "run 1ms")
    ),
    "attempt-settled-by-a-majority": Case(
        "r08_installed_and_not_opened", "r09_half_settle_an_attempt"
    ),
    "attempt-settled-by-half": Case("r09_half_settle_an_attempt", "r08_installed_and_not_opened"),
    "attempts-merged": Case("five_attempts", "two_attempts"),
    "voters-shrink": Case("crash d\nrun 1s", edit=("run 1s", "restart d\nrun 1s"), nodes="a b c d"),
    "voters-stay-at-three": Case("crash c\nrun 1s", "crash c\nrestart c\nrun 1s"),
    "voters-grow": Case(
        "crash d\nrun 1s\nrestart d\nrun 1s", edit=("run 1s\nrestart", "restart"), nodes="a b c d"
    ),
    "founding-repeated": Case(
        "engine totem\nnetwork lan\njournal\nnodes a b c\nlose OFFER\nrun 100ms\nlose none\n"
        "crash a\nrestart a\nrun 1s",
        edit=("lose OFFER\n", ""),
    ),
    "lost-disk-votes-again": Case("r07_lost_disk", edit=("storage=lost", "storage=kept")),
    "not-able-after-a-power-cut": Case(
        "interval_power_cut", edit=("fsync interval", "fsync always")
    ),
    "torn-tail-cut": Case(
        "append a m0\nrun 1ms\ncrash b power torn=30\nrun 500ms\nrestart b\nrun 500ms",
        edit=(" torn=30", " keep=0"),
        setup="journal\nfsync always sync=5ms",
    ),
    "rot-found-and-fetched": Case("rot_in_the_middle", edit=("storage=rot:0", "storage=kept")),
    "behind-and-back": Case(
        "disk c full\nappend a m times=60 size=500B\nrun 1s\ndisk c ok\nrun 2s",
        edit=("times=60", "times=6"),
        setup="journal unsynced_bytes=20000",
    ),
    "donor-changed": Case(
        "crash c\nrun 500ms\nappend a m times=20 size=500B\nrun 50ms\n"
        "lose CHUNK to=c times=30\nrestart c\nrun 3s",
        edit=("times=30", "times=1"),
    ),
    "cut-answered": Case("r02_tail_cut", "r01_sender_cut_off"),
    "snapshot-installed": Case("snapshot_and_a_retry", edit=("snapshot ", "disk ")),
    "begun-in-the-middle": Case(
        "append a m times=20 size=500B\nrun 50ms\ncrash c\nrun 500ms\nappend a n times=20\n"
        "run 50ms\nsnapshot a\nsnapshot b\nrestart c storage=lost\nrun 1s",
        edit=("snapshot a\nsnapshot b\n", "run 1ms\n"),
    ),
    "window-joined": Case("window_with_a_gap", "r05_two_of_three"),
    "duplicate-dropped": Case(
        "append a x session=red number=0\nrun 20ms\nappend b x session=red number=0\nrun 20ms",
        edit=("append b x session=red number=0", "append b x session=red number=1"),
    ),
    "session-forgotten": Case(
        "append a red0 session=red number=0\nrun 20ms\nappend b blue0 session=blue number=0\n"
        "append b gold0 session=gold number=0\nrun 20ms\nappend a red1 session=red number=1\n"
        "run 20ms",
        edit=("append b gold0 session=gold number=0\n", ""),
        setup="journal sessions_max=2",
    ),
    "read-that-waited": Case("r11_read_waits", edit=("lose DATA to=c", "lose none")),
    "read-interrupted": Case(
        "lose REPLY to=c\nread c\ncrash b\nrun 1s\nlose none\nrun 1s", edit=("crash b", "run 1ms")
    ),
    "stale-read-in-a-minority": Case(
        "partition a b,c\nrun 1s\nread a stale", edit=("read a stale", "read b stale")
    ),
    "append-that-waited": Case(
        "partition a b,c\nrun 1s\nappend a m0\nmerge\nrun 1s",
        edit=("append a m0\nmerge", "merge\nrun 1s\nappend a m0"),
    ),
    "generation-begun": Case("recovered_with_two_survivors", edit=("recover a b lost=c,d,e\n", "")),
    "fork-refused": Case(
        "recovered_and_an_old_journal", edit=("\nrestart c\n", "\nrestart c storage=lost\n")
    ),
}


def story_of(case: Case, story: str) -> str:
    """The scenario that this names or is, or whose end it is."""
    if "\n" not in story:
        return (SCENARIOS / f"{story}.txt").read_text()
    if not story.startswith("engine"):
        head = f"engine totem\nnetwork lan latency=200us\n{case.setup}\nnodes {case.nodes}"
        story = f"{head}\nrun 300ms\n{story}"
    return of_commands(story)


def reached(case: Case) -> Evidence:
    return played(story_of(case, case.reached))


def near(case: Case) -> Evidence:
    if case.near:
        return played(story_of(case, case.near))
    story = story_of(case, case.reached)
    assert case.edit[0] in story
    return played(story.replace(*case.edit))


@pytest.mark.parametrize("goal", CASES)
def test_the_goal_is_reached(goal):
    assert GOALS[goal](reached(CASES[goal]))


@pytest.mark.parametrize("goal", CASES)
def test_the_goal_is_missed(goal):
    assert not GOALS[goal](near(CASES[goal]))


def test_every_detector_has_its_stories():
    told = {GOALS[goal] for goal in CASES}
    assert told == set(WITH_A_LOG)
