"""Timers: when the event loop is asked, and what has expired."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from roundelay.runtime.timers import Timers


class Handle:
    def __init__(self, when: float) -> None:
        self.when = when
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """An event loop whose clock stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0
        self.handles: list[Handle] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> Handle:
        self.handles.append(Handle(when))
        return self.handles[-1]

    @property
    def calls(self) -> list[float]:
        return [handle.when for handle in self.handles if not handle.cancelled]


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def timers(loop: Loop) -> Timers:
    return Timers(cast("Any", loop), lambda: None)


def test_putting_a_timer_off_does_not_trouble_the_event_loop(loop, timers):
    timers.set("loss", 0.5)
    for _ in range(1000):
        loop.now += 0.0001
        timers.set("loss", 0.5)
    assert len(loop.handles) == 1
    timers.set("hold", 0.01)
    assert loop.calls == [pytest.approx(100.11)]


def test_what_has_expired_comes_in_order_and_once(loop, timers):
    timers.set("late", 3)
    timers.set("first", 1)
    timers.set("second", 2)
    loop.now += 2
    assert list(timers.pop_expired()) == ["first", "second"]
    assert list(timers.pop_expired()) == []
    timers.resume()
    assert timers.next_alarm == 103


def test_one_that_expires_may_cancel_another_or_put_it_off(loop, timers):
    for timer in ("a", "b", "c"):
        timers.set(timer, 1)
    loop.now += 1
    seen = []
    for timer in timers.pop_expired():
        seen.append(timer)
        timers.cancel("b")
        timers.set("c", 1)
    assert seen == ["a"]


def test_time_that_does_not_count(loop, timers):
    timers.set("loss", 1)
    timers.suspend()
    assert loop.calls == []
    loop.now += 10
    timers.postpone(10)
    assert (timers.next_alarm, list(timers.pop_expired())) == (111, [])


def test_whoever_is_held_up_goes_on_with_what_it_does_every_moment(loop, timers):
    timers.set("alarm", 5)
    timers.set("ask again", 1)
    for _ in range(10):
        loop.now += 3
        timers.postpone_bounded(3)
        assert list(timers.pop_expired()) == ["ask again"]
        timers.set("ask again", 1)
    assert timers._deadlines["alarm"] == 135


def test_after_the_end_nothing_is_called(loop, timers):
    timers.set("loss", 1)
    timers.clear()
    timers.postpone(1)
    assert loop.calls == []
