"""Virtual time runs in order, and ties in the order of asking."""

from random import Random

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
