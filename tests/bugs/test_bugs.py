"""Every planted bug is convicted in a small scenario that the product comes through.

A transcript that merely differs convicts nobody: `convictions` says which property is violated,
which assertion breaks, or which bound is exceeded, and just that must come about.
"""

import re
from pathlib import Path

import pytest

from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse, rewrite
from roundelay.sim.watch import Watch

from . import (  # noqa: F401  # They register their bugs.
    planted_engines,
    planted_fc,
    planted_log,
    planted_orders,
    planted_st,
    planted_st_order,
    planted_structures,
)
from .convictions import CONVICTIONS, Breaks, Conviction, Exceeds, Played, Violates
from .planted import BUGS, planted

SCENARIOS = Path(__file__).parents[1] / "scenarios"
COMMANDS_MAX = 36
"""Twelve nodes take two commands each; more would no longer be a small scenario."""


def read(scenario: str) -> str:
    return (SCENARIOS / f"{scenario}.txt").read_text()


def play(text: str, *, watched: bool = True) -> Played:
    runner = ScenarioRunner(watch=Watch() if watched else None)
    printed = rewrite(text, runner.play)
    return Played(runner.manifest().nodes, runner.rows, printed)


def violated(printed: str) -> set[str]:
    """The properties that `check` finds violated in a transcript."""
    return set(re.findall(r"^(\w+) violated: ", printed, re.MULTILINE))


def convict(conviction: Conviction) -> None:
    """Play the scenario, and fail unless it shows what the conviction says."""
    text = read(conviction.scenario)
    match conviction:
        case Violates():
            played = play(text, watched=conviction.watched)
            assert set(conviction.properties.split()) <= violated(played.printed)
        case Breaks():
            with pytest.raises(AssertionError, match=re.escape(conviction.words)):
                play(text)
        case Exceeds():
            assert not conviction.holds(play(text)), f"still {conviction.bound}"


@pytest.mark.parametrize("name", CONVICTIONS)
def test_a_planted_bug_is_convicted(name):
    with planted(name):
        convict(CONVICTIONS[name])


@pytest.mark.parametrize("scenario", sorted({c.scenario for c in CONVICTIONS.values()}))
def test_the_product_comes_through_the_scenario(scenario):
    text = read(scenario)
    played = play(text)
    assert played.printed == text
    assert not violated(text)
    assert sum(len(block.commands) for block in parse(text)) <= COMMANDS_MAX
    for conviction in CONVICTIONS.values():
        if isinstance(conviction, Exceeds) and conviction.scenario == scenario:
            assert conviction.holds(played), conviction.bound


def test_who_goes_on_with_what_is_left_is_not_convicted_for_that():
    """Entries are lost by a recovery, also where a log is cut that must not be."""
    with planted("log_cut_below_committed"):
        assert not violated(play(read("log/recovered_with_two_survivors")).printed)


def test_every_bug_has_its_conviction():
    assert CONVICTIONS.keys() == BUGS.keys()


def test_the_bugs_of_the_log_are_documented_with_what_convicts_them():
    text = (SCENARIOS.parents[1] / "docs" / "bugs.md").read_text()
    rows = re.findall(
        r"^\| \d+ \| (.*) \| `(\w+)` \| (.*) \| \[\w+\]\(.*/(\w+/\w+).txt\) \|$", text, re.MULTILINE
    )
    assert len(rows) == 27
    for about, name, properties, scenario in rows:
        assert about == BUGS[name][0]
        assert CONVICTIONS[name] in (
            Violates(scenario, properties.replace(",", "")),
            Violates(scenario, properties.replace(",", ""), watched=False),
        )
    listed = {name for _, name, _, _ in rows}
    assert listed >= {name for name in BUGS if name.startswith("log_")} - {
        "log_others_answer_probes"  # It shows what else an answer must be.
    }


def test_a_circle_that_no_two_members_see():
    """Of the three packets of example 1(2) every two members agree on the order, but all do not."""
    text = read("st/each_lost_once")
    with planted("st_again_is_heard_now"):
        found = violated(rewrite(text, ScenarioRunner().play))
    assert "O5" in found
    assert "O5p" not in found
