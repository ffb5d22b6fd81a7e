"""The timers of a node: deadlines as numbers, and one call of the event loop for all of them.

Cores put their timers off at every token, thousands of times a second. So that costs no more than
an entry in a table: the event loop is told only of a deadline that is earlier than its next call,
and a call that finds nothing expired asks for the next.
"""

import asyncio
from collections.abc import Callable, Iterator

FAR_S = 3600.0
"""When there is nothing to wait for."""


class Timers:
    """Named timers of one node."""

    def __init__(self, loop: asyncio.AbstractEventLoop, alarm: Callable[[], None]) -> None:
        """`alarm` is called when one may have expired, and is to end with `resume`."""
        self.wake = loop.time() + FAR_S
        """When `alarm` is called at the latest, on the clock of the event loop."""
        self._loop = loop
        self._clock = loop.time
        self._alarm = alarm
        self._handle: asyncio.TimerHandle | None = None
        self._deadlines: dict[str, float] = {}
        self._delays: dict[str, float] = {}
        """For how long each was last set."""

    def set(self, timer: str, delay_s: float) -> None:
        deadline = self._clock() + delay_s
        self._deadlines[timer] = deadline
        self._delays[timer] = delay_s
        if deadline < self.wake:
            self._call_at(deadline)

    def cancel(self, timer: str) -> None:
        self._deadlines.pop(timer, None)

    def expired(self) -> Iterator[str]:
        """Those whose time has come, earliest first. Each is forgotten as it is given; what was
        done about one may cancel another, or put it off."""
        now = self._clock()
        due = [timer for timer, deadline in self._deadlines.items() if deadline <= now]
        for timer in sorted(due, key=self._deadlines.__getitem__):
            if self._deadlines.get(timer, now + 1) <= now:
                del self._deadlines[timer]
                yield timer

    def put_off(self, duration_s: float) -> None:
        """Time passed that does not count."""
        for timer in self._deadlines:
            self._deadlines[timer] += duration_s
        self.resume()

    def hold_up(self, duration_s: float) -> None:
        """The same, but none is put off by more than it was set for: whoever is held up again and
        again, each time for a moment, goes on with what it does every moment."""
        for timer in self._deadlines:
            self._deadlines[timer] += min(duration_s, self._delays[timer])
        self.resume()

    def rest(self) -> None:
        """No alarm until `resume`."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self.wake = self._clock() + FAR_S

    def resume(self) -> None:
        if self._deadlines:
            self._call_at(min(self._deadlines.values()))
        else:
            self.rest()

    def clear(self) -> None:
        """For good."""
        self._deadlines.clear()
        self.rest()

    def _call_at(self, when: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self.wake = when
        self._handle = self._loop.call_at(when, self._alarm)
