"""Virtual time runs in order, and ties in the order of asking."""

from random import Random

import pytest

from roundelay.sim.loop import Loop


def test_calls_run_by_time_and_then_by_request():
    loop = Loop()
    seen: list[tuple[int, int]] = []
    random = Random(1)
    asked = [(random.randrange(10), i) for i in range(200)]
    for time, i in asked:
        loop.at(time, seen.append, (time, i))
    loop.run(20)
    assert seen == sorted(asked)
    assert (loop.now, loop.events, loop.next) == (20, 200, None)


def test_a_run_stops_at_its_end_and_goes_on_from_there():
    loop = Loop()
    seen: list[int] = []
    for time in (5, 10, 11):
        loop.at(time, seen.append, time)
    loop.run(10)
    assert seen == [5, 10]
    assert (loop.now, loop.next) == (10, 11)
    loop.run(10)
    assert seen == [5, 10]
    loop.run(30)
    assert seen == [5, 10, 11]


def test_a_call_may_ask_for_another_at_the_same_moment():
    loop, seen = Loop(), []

    def again(left: int) -> None:
        seen.append(loop.now)
        if left:
            loop.at(loop.now, again, left - 1)

    loop.at(3, again, 2)
    loop.run(3)
    assert seen == [3, 3, 3]


def test_calls_that_are_left_are_told_in_order_and_can_be_cancelled():
    loop, one, other = Loop(), [1], [1]
    seen: list[object] = []
    for time, argument in ((7, one), (3, other), (7, other), (3, one)):
        loop.at(time, seen.append, argument)
    assert [(time, argument is one) for time, _, argument in loop.calls] == [
        (3, False),
        (3, True),
        (7, True),
        (7, False),
    ]
    loop.cancel(seen.append, one)
    assert [(time, argument is other) for time, _, argument in loop.calls] == [(3, True), (7, True)]
    loop.cancel(seen.append, other)
    assert (loop.calls, loop.next) == ([], None)
    loop.at(3, seen.append, other)
    loop.run(9)
    assert len(seen) == 1


def test_a_call_that_fails_keeps_the_others():
    loop = Loop()
    seen: list[object] = []

    def fail(_: object) -> None:
        loop.at(5, seen.append, "asked for by it")
        raise AssertionError("broken")

    loop.at(5, seen.append, "before")
    loop.at(5, fail)
    loop.at(5, seen.append, "after")
    loop.at(6, seen.append, "later")
    with pytest.raises(AssertionError, match="broken"):
        loop.run(10)
    assert loop.now == 5
    loop.run(10)
    assert seen == ["before", "after", "asked for by it", "later"]
