"""The audit of FC: which runs there are, and what comes of them on the engine."""

import pytest

from roundelay.experiments.audit.cases import ASSUMPTIONS, Case, Cases, groups, spaces
from roundelay.experiments.audit.play import play
from roundelay.experiments.audit.story import story
from roundelay.experiments.audit.survey import SHOWN, survey
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import rewrite

X1 = Case(5, (0, 1), lost=frozenset({(0, 1), (0, 4), (1, 2)}))
"""1's decision reaches 3 and 4, 2's reaches 4 and 5."""
X2 = Case(5, (0, 1), lost=frozenset({(0, 2), (1, 2), (1, 3)}))
"""1's decision reaches 2, 4 and 5, 2's reaches 5."""


@pytest.mark.parametrize(
    ("assumption", "size", "k", "runs"),
    [
        ("A1", 5, 1, 63),
        ("A2", 5, 1, 119),
        ("A1", 5, 2, 1008),
        ("A2", 5, 2, 3332),
        ("A1", 6, 2, 3332),
        ("A2", 6, 2, 12012),
        ("W1", 5, 1, 261),
        ("W1", 5, 2, 1341),
        ("W2", 5, 1, 48),
        ("W2", 5, 2, 1328),
        ("W3", 5, 1, 306),
        ("W3", 5, 2, 1530),
        ("W4", 7, 2, 10098),
    ],
)
def test_the_runs_are_all_there_and_all_different(assumption, size, k, runs):
    cases = [case for space in spaces(assumption, size, k) for case in space]
    assert len(cases) == len(set(cases)) == runs


def test_a_majority_never_fails():
    for assumption in ASSUMPTIONS:
        for size in range(1, 8):
            for k in range(4):
                for group in groups(assumption, size, k):
                    assert len(group) <= (size - 1) // 2
                    assert group[-1] < size


def test_x1_is_a_case_of_the_first_assumption():
    assert X1 in Cases("A1", 5, (0, 1))
    assert X2 not in Cases("A1", 5, (0, 1))
    assert X2 in Cases("A2", 5, (0, 1))


@pytest.mark.parametrize("case", [X1, X2])
def test_the_paper_disagrees_and_the_others_do_not(case):
    assert play(case, "paper", 2).diverged
    assert not play(case, "link", 2).diverged
    safe = play(case, "safe", 2)
    assert not safe.diverged
    assert not safe.stuck


def test_one_failure_is_no_harm():
    for count in survey(["A1", "A2"], 5, 1, "paper", jobs=1, report=lambda *_: None):
        assert count.divergent == 0
        assert count.runs in (63, 119)


@pytest.mark.parametrize(("rules", "divergent"), [("paper", 42), ("link", 0), ("safe", 0)])
def test_two_failures(rules, divergent):
    (count,) = survey(["A1"], 5, 2, rules, jobs=1, report=lambda *_: None)
    assert (count.runs, count.divergent) == (1008, divergent)
    assert len(count.examples) == (SHOWN if divergent else 0)
    assert all(play(case, rules, 2).diverged for case in count.examples)


def test_one_loss_more_is_too_much_for_link_and_not_for_safe():
    """Depth k is not enough beyond the assumptions: the audit can convict the rules link."""
    (link,) = survey(["W1"], 5, 1, "link", jobs=1, report=lambda *_: None)
    (safe,) = survey(["W1"], 5, 1, "safe", jobs=1, report=lambda *_: None)
    assert (link.divergent, safe.divergent) == (2, 0)


@pytest.mark.parametrize(
    ("assumption", "size", "k", "rules"), [("A1", 5, 2, "paper"), ("W1", 5, 1, "link")]
)
def test_a_counterexample_is_a_scenario_that_shows_it(assumption, size, k, rules):
    (count,) = survey([assumption], size, k, rules, jobs=1, report=lambda *_: None)
    for case in count.examples:
        text = story(case, assumption, rules, k)
        assert rewrite(text, ScenarioRunner().play) == text
        assert " violated: " in text
        assert "diverged at 1" in text or rules == "link"


def test_a_long_group_has_names_in_the_order_of_its_ring():
    case = Case(11, (0, 1), lost=frozenset({(0, 1), (0, 4), (1, 2)}))
    assert play(case, "paper", 2).diverged
    assert "nodes 01 02" in story(case, "A1", "paper", 2)
