"""H1: planted histories are convicted, and histories of one copy never are."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.check.histories import Operation, counter, linearizable, machine, register
from roundelay.check.histories.linearizable import OVERLAPPING_MAX, has_order, overlapping
from roundelay.check.verdict import Validity
from roundelay.structures import Queue


def op(
    name: str,
    argument: Any,
    reply: Any,
    called: float,
    returned: float | None,
    *,
    client: str = "p",
    key: str = "k",
) -> Operation:
    return Operation(client, key, name, argument, called, returned, reply)


def judged(*history: Operation, model: Any = register) -> Validity:
    return linearizable(history, model).validity


# Each of these is what a broken store would show.

STALE_READ = (
    op("set", 1, None, 0, 1),
    op("set", 2, None, 2, 3),
    op("get", None, 1, 4, 5),
)
READ_BEFORE_WRITE = (op("get", None, 1, 0, 1), op("set", 1, None, 2, 3))
LOST_WRITE = (op("set", 1, None, 0, 1), op("get", None, None, 2, 3))
BACK_AND_FORTH = (
    op("set", 1, None, 0, 10),
    op("get", None, 1, 1, 2, client="q"),
    op("get", None, None, 3, 4, client="r"),
)
BOTH_WON = (
    op("compare_and_set", (None, 1), True, 0, 5, client="q"),
    op("compare_and_set", (None, 2), True, 0, 5, client="r"),
)
APPLIED_TWICE = (
    op("set", 1, None, 0, 1),
    op("set", 2, None, 2, 3),
    op("get", None, 2, 4, 5),
    op("get", None, 1, 6, 7),  # The retry of the first came late.
)
TWO_DELETED_IT = (
    op("set", 1, None, 0, 1),
    op("delete", None, True, 2, 9, client="q"),
    op("delete", None, True, 2, 9, client="r"),
)


PLANTED = [
    *(STALE_READ, READ_BEFORE_WRITE, LOST_WRITE, BACK_AND_FORTH),
    *(BOTH_WON, APPLIED_TWICE, TWO_DELETED_IT),
]


@pytest.mark.parametrize("history", PLANTED)
def test_planted_histories_are_convicted(history):
    verdict = linearizable(history, register)
    assert verdict.validity is Validity.VIOLATED
    assert verdict.reason


@pytest.mark.parametrize(
    "history",
    [
        (op("set", 1, None, 0, 3), op("set", 2, None, 1, 2), op("get", None, 1, 4, 5)),
        (op("set", 1, None, 0, None), op("get", None, 1, 5, 6), op("get", None, 1, 7, 8)),
        (op("set", 1, None, 0, None), op("get", None, None, 5, 6)),
        (op("set", 1, None, 0, 1), op("get", None, 1, 1, 2)),
        (op("set", 1, None, 0, 1), op("get", None, None, 2, 3, key="other")),
    ],
)
def test_what_one_copy_could_show_is_acquitted(history):
    assert judged(*history) is Validity.OK


def test_an_operation_that_did_not_return_happens_once_at_most():
    history = (
        op("add", 1, None, 0, None),
        op("value", None, 1, 1, 2),
        op("value", None, 2, 3, 4),
    )
    assert judged(*history, model=counter) is Validity.VIOLATED
    assert judged(*history[:2], model=counter) is Validity.OK


def test_the_witness_is_the_shortest_beginning():
    later = tuple(op("get", None, 2, 10 + 2 * n, 11 + 2 * n) for n in range(20))
    verdict = linearizable((*STALE_READ, *later), register)
    assert verdict.witness == STALE_READ
    assert str(STALE_READ[2]) in verdict.reason


def test_one_bad_key_is_enough():
    good = tuple(op("set", n, None, n, n + 0.5, key=f"k{n}") for n in range(20))
    verdict = linearizable((*good, *STALE_READ), register)
    assert verdict.validity is Validity.VIOLATED
    assert "'k'" in verdict.reason


def test_too_many_at_once_are_not_judged():
    crowd = [op("set", n, None, 0, 1) for n in range(OVERLAPPING_MAX + 1)]
    assert overlapping(crowd) == OVERLAPPING_MAX + 1
    assert judged(*crowd) is Validity.INCONCLUSIVE
    assert judged(*crowd[1:]) is Validity.OK
    bad = [op("get", None, 1, 0, 1, key="a")]
    assert judged(*crowd, *bad) is Validity.VIOLATED


def test_a_search_that_takes_too_long_is_given_up():
    crowd = [op("set", n, None, 0, 1) for n in range(12)]
    verdict = linearizable([*crowd, op("get", None, 99, 2, 3)], register, steps_max=50)
    assert verdict.validity is Validity.INCONCLUSIVE


def test_nothing_is_vacuous():
    assert judged() is Validity.VACUOUS


def test_a_machine_is_its_own_model():
    def queue() -> Any:
        return machine(Queue)

    put = Operation("p", "q", "put", ("x", 0), 0, 1, 0)
    first = Operation("p", "q", "peek", (), 2, 3, "x", reads=True)
    none = Operation("p", "q", "peek", (), 2, 3, None, reads=True)
    assert linearizable([put, first], queue).validity is Validity.OK
    assert linearizable([put, none], queue).validity is Validity.VIOLATED


NAMES = st.sampled_from(["get", "set", "delete", "compare_and_set"])


@st.composite
def histories(draw: Any, *, truthful: bool) -> list[Operation]:
    """Operations of up to six clients on one register; each happens at a moment between its call
    and its return."""
    made = []
    for _ in range(draw(st.integers(1, 6))):
        called = draw(st.integers(0, 20))
        happens = called + draw(st.integers(0, 6))
        returned = happens + draw(st.integers(0, 6))
        made.append((happens, called, returned, draw(NAMES), draw(st.integers(1, 2))))
    made.sort()
    state: int | None = None
    history = []
    for _, called, returned, name, argument in made:
        reply: Any = None
        given: Any = argument
        if name == "get":
            reply = state
        elif name == "set":
            state = argument
        elif name == "delete":
            reply, state = state is not None, None
        else:
            given = (draw(st.sampled_from([None, 1, 2])), argument)
            reply = state == given[0]
            state = argument if reply else state
        if not truthful and name != "set":
            reply = draw(st.sampled_from([True, False] if name != "get" else [None, 1, 2]))
        ended = returned if draw(st.integers(0, 5)) else None
        history.append(op(name, given, reply, called, ended))
    return history


@given(histories(truthful=True))
def test_a_history_of_one_copy_is_never_convicted(history):
    assert judged(*history) is Validity.OK


def brute_force(history: list[Operation]) -> bool:
    """Every order of every subset with all that returned."""
    must = [o for o in history if o.returned is not None]
    open_ones = [o for o in history if o.returned is None]
    for bits in range(1 << len(open_ones)):
        chosen = must + [o for n, o in enumerate(open_ones) if bits >> n & 1]
        for order in permutations(chosen):
            if all(
                later.returned is None or later.returned >= earlier.called
                for n, earlier in enumerate(order)
                for later in order[n + 1 :]
            ):
                model, good = register(), True
                state: Any = model.start()
                for operation in order:
                    allowed, state = model.step(state, operation)
                    good = good and allowed
                if good:
                    return True
    return False


@given(histories(truthful=False))
def test_the_search_finds_an_order_exactly_if_there_is_one(history):
    assert has_order(history, register()) is brute_force(history)


def test_what_is_shown_is_what_is_needed():
    """Operations that hide nothing are left out, and what a read of it needs stays."""
    others = [op("set", n, None, 10 * n, 10 * n + 1) for n in range(3, 20)]
    reads = [op("get", None, n, 10 * n + 2, 10 * n + 3) for n in range(3, 20)]
    late = [op("set", 50, None, 300, 301), op("get", None, 19, 302, 303)]
    verdict = linearizable([*others, *reads, *late], register)
    assert verdict.validity is Validity.VIOLATED
    assert list(verdict.witness) == [others[-1], *late]


def test_a_write_beside_comparisons_is_never_left_out():
    """Without it a comparison that held would be a breach of its own."""
    history = [
        op("set", 1, None, 0, 1),
        op("compare_and_set", (1, 2), True, 2, 3),
        op("get", None, 1, 4, 5),
    ]
    assert list(linearizable(history, register).witness) == history
