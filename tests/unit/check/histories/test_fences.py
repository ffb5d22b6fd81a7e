"""H3 and H4: planted histories of locks and queues are convicted."""

from dataclasses import replace

import pytest

from roundelay.check.histories import Holding, Taking, done_once, fenced
from roundelay.check.verdict import Validity

FIRST = Holding("p", asked=0, got=1, token=4, gave=5, confirmed=True)
SECOND = Holding("q", asked=2, got=6, token=9, gave=8, confirmed=True)


def test_one_after_the_other_is_as_it_should_be():
    assert fenced([FIRST, SECOND]).validity is Validity.OK
    assert fenced([]).validity is Validity.VACUOUS


@pytest.mark.parametrize(
    "second",
    [
        replace(SECOND, token=4),  # The token of another.
        replace(SECOND, asked=2, token=3),  # It was asked for later, and is smaller.
        replace(SECOND, got=3),  # Held by two at once, both confirmed.
    ],
)
def test_planted_histories_of_locks_are_convicted(second):
    verdict = fenced([FIRST, second])
    assert verdict.validity is Validity.VIOLATED
    assert {o.client for o in verdict.witness} == {"p", "q"}


def test_a_holder_that_was_cut_off_may_not_know():
    cut_off = replace(FIRST, confirmed=False)
    assert fenced([cut_off, replace(SECOND, got=3)]).validity is Validity.OK
    assert fenced([replace(cut_off, gave=None), replace(SECOND, got=3)]).validity is Validity.OK


def test_those_who_ask_at_once_may_come_in_any_order():
    assert fenced([replace(FIRST, asked=0), replace(SECOND, asked=0, token=3)]).validity in (
        Validity.OK,
    )


def test_a_semaphore_is_held_by_as_many_as_its_limit():
    third = Holding("r", asked=2, got=3, token=12, gave=4, confirmed=True)
    both = [FIRST, replace(SECOND, got=2.5), third]
    assert fenced(both, limit=3).validity is Validity.OK
    assert fenced(both, limit=2).validity is Validity.VIOLATED


TAKEN = Taking("p", item=7, asked=0, got=1, token=10, ended=2, done=False)
AGAIN = Taking("q", item=7, asked=2, got=4, token=12, ended=5, done=True)


def test_an_item_that_was_given_back_is_taken_again():
    assert done_once([TAKEN, AGAIN]).validity is Validity.OK
    assert done_once([]).validity is Validity.VACUOUS


def test_an_item_of_a_lost_node_is_taken_again():
    lost = replace(TAKEN, ended=None, lost=True)
    assert done_once([lost, AGAIN]).validity is Validity.OK


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (replace(TAKEN, done=True), AGAIN),  # Done twice.
        (replace(TAKEN, done=True), replace(AGAIN, done=False)),  # Taken after it was done.
        (replace(TAKEN, ended=None), AGAIN),  # Taken while somebody has it.
        (replace(TAKEN, ended=5), AGAIN),
        (TAKEN, replace(AGAIN, token=10)),
    ],
)
def test_planted_histories_of_queues_are_convicted(first, second):
    verdict = done_once([second, first])
    assert verdict.validity is Validity.VIOLATED
    assert "item 7" in verdict.reason


def test_items_are_judged_one_by_one():
    assert done_once([TAKEN, replace(AGAIN, item=8)]).validity is Validity.OK
