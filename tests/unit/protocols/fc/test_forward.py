"""Algorithm 1 of the paper by itself: what a member confirms from what it hears, in what order."""

import pytest

from roundelay.protocols.fc.forward import ForwardConfirmation

from .decisions import anew, decision

M1 = decision(1, 1)
M2 = anew(2, 1, (2, 3, 4, 5))
M3 = anew(3, 1, (3, 4, 5))


def confirmed(k, *heard):
    forward = ForwardConfirmation(k)
    return [found for each in heard for found in forward.see(each)]


def test_without_failures_each_decision_confirms_the_one_before():
    line = [decision(1 + i % 5, i + 1) for i in range(7)]
    assert confirmed(1, *line) == line[:-1]


def test_figure_1():
    free = decision(3, 2, (2, 3, 4, 5), version=2, parent=M2)
    assert confirmed(1, M1, M2, free) == [M2]  # Who hears both.
    assert confirmed(1, M2, free) == [M2]  # Who hears one.


def test_figure_2a():
    free = decision(4, 2, (3, 4, 5), version=2, parent=M3)
    assert confirmed(2, M1, M2, M3, free) == [M3]
    assert confirmed(2, M3, free) == [M3]


def test_figure_2b():
    free = anew(4, 2, (1, 4, 5), parent=M1)
    assert confirmed(2, M1, M2, M3, free) == [M1]
    assert confirmed(2, M1, free) == [M1]  # As printed, this would confirm nothing.


def test_fewer_than_k_fail():
    free = decision(3, 2, (2, 3, 4, 5), version=2, parent=M2)
    assert confirmed(2, M1, M2, free) == [M2]


def test_a_decision_of_a_member_too_far_behind_does_not_count():
    free = anew(4, 2, (1, 4, 5), parent=M1)
    assert confirmed(1, M1, free) == []
    assert confirmed(2, M1, free) == [M1]


@pytest.mark.parametrize("others", [(), (decision(5, 3),), (anew(5, 2, (1, 5)),)])
def test_a_decision_that_is_not_here_is_waited_for(others):
    """What confirms it is remembered: it is fetched, and confirmed when it comes."""
    forward = ForwardConfirmation(2)
    free = decision(4, 2, (3, 4, 5), version=2, parent=M3)
    for heard in (M1, free, *others):
        assert forward.see(heard) == []
    assert forward.see(M2) == []
    assert forward.see(M3)[0] == M3


def test_what_comes_too_early_is_kept():
    second, third = decision(2, 2, parent=M1), decision(3, 3)
    assert confirmed(1, third, second, M1) == [M1, second]


def test_places_are_counted_on_the_ring_of_the_first():
    """The ring has shrunk: 1 comes directly behind 3."""
    first = anew(3, 1, (1, 3))
    assert confirmed(1, first, decision(1, 2, (1, 3), version=2, parent=first)) == [first]


def test_counterexample_x1():
    """Two members that hear what the paper allows confirm different decisions."""
    free = anew(3, 2, (1, 3, 4, 5), parent=M1)
    assert confirmed(2, M1, M2, free) == [M1]
    assert confirmed(2, M2, free) == [M2]
