"""H2: indexes against real time, and replies against a replay of the log."""

from typing import Any

import pytest

from roundelay.check.histories import Operation, certified, certified_by_itself, register
from roundelay.check.verdict import Validity

OK = Validity.OK


class Replay:
    """A counter: each entry adds its index plus one."""

    def __init__(self) -> None:
        self.sum = 0

    def reply(self, index: int) -> Any:
        self.sum += index + 1
        return self.sum

    def read(self, operation: Operation) -> Any:
        return self.sum


def add(index: int | None, reply: int, called: float, returned: float | None = None) -> Operation:
    ended = called + 1 if returned is None else returned
    return Operation("p", "k", "add", None, called, ended, reply, index)


def value(index: int, reply: int, called: float, returned: float | None = None) -> Operation:
    ended = called + 1 if returned is None else returned
    return Operation("p", "k", "value", None, called, ended, reply, index, reads=True)


GOOD = (add(0, 1, 0), value(1, 1, 2), add(1, 3, 4), add(2, 6, 6), value(3, 6, 8))


def judged(*history: Operation, length: int = 3) -> Validity:
    return certified(history, Replay(), length).validity


def test_a_history_that_its_log_explains_is_certified():
    assert judged(*GOOD) is Validity.OK
    assert certified(GOOD, Replay(), 3).instances == 5
    assert judged(add(1, 3, 0, 9), add(0, 1, 0, 9), value(0, 0, 0, 9)) is Validity.OK


@pytest.mark.parametrize(
    "history",
    [
        (add(0, 2, 0),),  # A reply that the replay does not give.
        (value(2, 1, 0),),
        (add(1, 3, 0), add(0, 1, 2)),  # Real time says otherwise.
        (add(0, 1, 0), value(0, 0, 2)),  # A read that was answered by who knew less.
        (value(2, 3, 0), value(1, 1, 2)),
        (value(1, 1, 0), add(0, 1, 2)),
        (add(0, 1, 0), add(0, 1, 0)),  # One index for two.
        (add(3, 10, 0),),  # Not in the log.
        (value(4, 10, 0),),
    ],
)
def test_planted_histories_are_convicted(history):
    verdict = certified(history, Replay(), 3)
    assert verdict.validity is Validity.VIOLATED
    assert verdict.witness


def test_a_read_and_a_write_that_overlap_may_stand_either_way():
    assert judged(add(0, 1, 0, 9), value(0, 0, 1, 2)) is Validity.OK
    assert judged(add(0, 1, 0, 9), value(1, 1, 1, 2)) is Validity.OK


def test_operations_without_an_index_leave_it_open():
    assert judged(*GOOD, add(None, 7, 10)) is Validity.INCONCLUSIVE
    assert judged(add(None, 7, 10)) is Validity.VACUOUS
    assert judged() is Validity.VACUOUS


def test_operations_that_did_not_return_prove_nothing():
    lost = Operation("p", "k", "add", None, 20)
    assert judged(*GOOD, lost) is Validity.OK


# Without the log, by the operations themselves.


def by_itself(*history: Operation, clock: bool = True) -> Validity:
    return certified_by_itself(history, register, clock=clock).validity


def put(to: int, index: int | None, called: float, returned: float | None) -> Operation:
    return Operation("p", "k", "set", to, called, returned, None, index)


def get(found: int | None, index: int, called: float, returned: float) -> Operation:
    return Operation("q", "k", "get", None, called, returned, found, index, reads=True)


def test_operations_explain_each_other_where_nobody_kept_the_log():
    assert by_itself() is Validity.VACUOUS
    assert by_itself(put(1, 0, 0, 1), get(1, 1, 2, 3), put(2, 5, 2, 4), get(2, 6, 5, 6)) is OK
    assert by_itself(put(1, 0, 0, 9), put(2, 5, 0, 9), get(1, 6, 10, 11)) is Validity.VIOLATED
    assert by_itself(put(1, 5, 0, 1), put(2, 4, 2, 3)) is Validity.VIOLATED
    assert by_itself(put(1, 4, 0, 9), put(2, 4, 0, 9)) is Validity.VIOLATED


def test_a_write_whose_place_is_not_known_leaves_open_what_comes_behind_it():
    known = (put(1, 0, 0, 1), get(1, 1, 2, 3))
    for unknown in (put(7, None, 4, None), put(7, None, 4, 5)):
        assert by_itself(*known, unknown, get(7, 9, 6, 7)) is OK
        assert by_itself(*known, unknown, get(8, 9, 6, 7)) is OK
        # It was called after the first read had returned, and so stands behind it.
        assert by_itself(known[0], get(3, 1, 2, 3), unknown) is Validity.VIOLATED


def test_without_a_clock_only_places_are_judged():
    assert by_itself(put(1, 5, 0, 1), put(2, 4, 2, 3), clock=False) is OK
    assert by_itself(put(1, 5, 0, 1), get(2, 9, 2, 3), clock=False) is Validity.VIOLATED


def test_objects_do_not_explain_each_other():
    other = Operation("p", "j", "set", 2, 0, 1, None, 3)
    assert by_itself(put(1, 0, 0, 1), other, get(2, 4, 2, 3)) is Validity.VIOLATED
