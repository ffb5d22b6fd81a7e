"""Virtual time: a queue of calls, ordered by their time and then by the order of `at` calls."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

Action = Callable[[Any], None]


class Loop:
    """Runs calls at their time. Times are integer nanoseconds: their sums are exact, so that a run
    can be repeated exactly."""

    __slots__ = ("_heap", "_order", "now")

    def __init__(self) -> None:
        self.now = 0
        self._heap: list[tuple[int, int, Action, Any]] = []
        self._order = 0

    def at(self, time: int, action: Action, argument: Any = None) -> None:
        """Call `action(argument)` at `time`, after all calls that were scheduled for it before."""
        self._order = order = self._order + 1
        heappush(self._heap, (time, order, action, argument))

    def run(self, until: int) -> None:
        """Run all calls up to and at `until`, and set the clock to it."""
        heap, pop = self._heap, heappop
        while heap:
            call = pop(heap)
            if call[0] > until:
                heappush(heap, call)  # Once for each `run`; to look before each call costs more.
                break
            self.now = call[0]
            call[2](call[3])
        self.now = max(self.now, until)

    @property
    def events(self) -> int:
        """How many calls were run so far."""
        return self._order - len(self._heap)

    @property
    def next(self) -> int | None:
        """When the next call is due, if any is."""
        return self._heap[0][0] if self._heap else None

    @property
    def calls(self) -> list[tuple[int, Action, Any]]:
        """The calls that are still to be run, in order: time, action and argument."""
        return [(time, action, argument) for time, _, action, argument in sorted(self._heap)]

    def cancel(self, action: Action, argument: object) -> None:
        """Remove the calls of this action with this argument, which is compared by identity."""
        self._heap = [call for call in self._heap if call[3] is not argument or call[2] != action]
        heapify(self._heap)
