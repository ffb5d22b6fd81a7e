"""Virtual time: a queue of calls, ordered by their time and then by the order of `at` calls.

Calls of one time wait together, in the order in which they were asked for, and only times are
sorted: copies of a frame often arrive at several nodes at once, and to sort numbers takes less than
to sort calls.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

Action = Callable[[Any], None]


class Loop:
    """Runs calls at their time. Times are integer nanoseconds: their sums are exact, so that a run
    can be repeated exactly."""

    __slots__ = ("_calls", "_times", "events", "now")

    def __init__(self) -> None:
        self.now = 0
        self.events = 0
        """How many calls were run so far, those of the present moment left out."""
        self._calls: dict[int, list[tuple[Action, Any]]] = {}
        """By time; each time that has calls is once in `_times`."""
        self._times: list[int] = []
        """A heap."""

    def at(self, time: int, action: Action, argument: Any = None) -> None:
        """Call `action(argument)` at `time`, after all calls that were scheduled for it before."""
        calls = self._calls.get(time)
        if calls is None:
            self._calls[time] = [(action, argument)]
            heappush(self._times, time)
        else:
            calls.append((action, argument))

    def run(self, until: int) -> None:
        """Run all calls up to and at `until`, and set the clock to it."""
        times, pop = self._times, self._calls.pop
        while times and times[0] <= until:
            self.now = now = heappop(times)
            calls = pop(now)  # Who asks for another call at this time begins a new list.
            left = iter(calls)
            try:
                for action, argument in left:
                    action(argument)
            except BaseException:
                self._keep(now, list(left))
                raise
            self.events += len(calls)
        self.now = max(self.now, until)

    def _keep(self, time: int, calls: list[tuple[Action, Any]]) -> None:
        """Put back what a call that failed kept from being run."""
        later = self._calls.get(time)
        if later is not None:
            later[:0] = calls
        elif calls:
            self._calls[time] = calls
            heappush(self._times, time)

    @property
    def next(self) -> int | None:
        """When the next call is due, if any is; to be asked between runs."""
        return self._times[0] if self._times else None

    @property
    def calls(self) -> list[tuple[int, Action, Any]]:
        """The calls that are still to be run, in order: time, action and argument; to be asked
        between runs."""
        return [(time, *call) for time in sorted(self._times) for call in self._calls[time]]

    def cancel(self, action: Action, argument: object) -> None:
        """Remove the calls of this action with this argument, which is compared by identity."""
        for time, calls in list(self._calls.items()):
            calls[:] = [call for call in calls if call[1] is not argument or call[0] != action]
            if not calls:
                del self._calls[time]
                self._times.remove(time)
        heapify(self._times)
