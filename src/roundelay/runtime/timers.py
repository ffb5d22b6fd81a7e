"""The timers of a node: deadlines as numbers, and one call of the event loop for all of them.

Cores set their timers anew at every token, thousands of times a second, so that must cost no more
than an entry in a table. The event loop is told only of a deadline that is earlier than its next
call, and a call that finds no timer expired asks for the next call.
"""

import asyncio
from collections.abc import Callable, Iterator

FAR_S = 3600.0
"""How far ahead `next_alarm` is while no timer is set, in seconds. A process that goes on later
than its next alarm counts as paused, so this has to be longer than any time without an alarm."""


class Timers:
    """Named timers of one node."""

    def __init__(self, loop: asyncio.AbstractEventLoop, alarm: Callable[[], None]) -> None:
        """`alarm` is called when a timer may have expired; it has to call `resume` at its end."""
        self.next_alarm = loop.time() + FAR_S
        """When `alarm` is called next, on the clock of the event loop."""
        self._loop = loop
        self._clock = loop.time
        self._alarm = alarm
        self._handle: asyncio.TimerHandle | None = None
        self._deadlines: dict[str, float] = {}
        self._delays: dict[str, float] = {}
        """The delay in seconds that each was last set with."""

    def set(self, timer: str, delay_s: float) -> None:
        deadline = self._clock() + delay_s
        self._deadlines[timer] = deadline
        self._delays[timer] = delay_s
        if deadline < self.next_alarm:
            self._call_at(deadline)

    def cancel(self, timer: str) -> None:
        self._deadlines.pop(timer, None)

    def pop_expired(self) -> Iterator[str]:
        """The expired timers, earliest first. Each is removed when it is given; what the caller
        does about one may cancel the next or set it anew."""
        now = self._clock()
        due = [timer for timer, deadline in self._deadlines.items() if deadline <= now]
        for timer in sorted(due, key=self._deadlines.__getitem__):
            if self._deadlines.get(timer, now + 1) <= now:
                del self._deadlines[timer]
                yield timer

    def postpone(self, duration_s: float) -> None:
        """Move all deadlines: so much time passed that does not count."""
        for timer in self._deadlines:
            self._deadlines[timer] += duration_s
        self.resume()

    def postpone_bounded(self, duration_s: float) -> None:
        """The same, but no deadline moves by more than its timer was set for. So a timer that is
        shorter than a stall still expires after each of many stalls that follow each other."""
        for timer in self._deadlines:
            self._deadlines[timer] += min(duration_s, self._delays[timer])
        self.resume()

    def suspend(self) -> None:
        """No alarm until `resume`."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self.next_alarm = self._clock() + FAR_S

    def resume(self) -> None:
        if self._deadlines:
            self._call_at(min(self._deadlines.values()))
        else:
            self.suspend()

    def clear(self) -> None:
        """Cancel all timers."""
        self._deadlines.clear()
        self.suspend()

    def _call_at(self, when: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self.next_alarm = when
        self._handle = self._loop.call_at(when, self._alarm)
