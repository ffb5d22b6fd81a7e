"""Virtual time: a queue of calls, in order of time and then of request."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any

Action = Callable[[Any], None]


class Loop:
    """Runs calls at their time. Times are integer nanoseconds: sums are exact, so runs repeat."""

    __slots__ = ("_heap", "_order", "now")

    def __init__(self) -> None:
        self.now = 0
        self._heap: list[tuple[int, int, Action, Any]] = []
        self._order = 0

    def at(self, time: int, action: Action, argument: Any = None) -> None:
        """Call `action(argument)` at `time`, after everything already asked for at that time."""
        self._order = order = self._order + 1
        heappush(self._heap, (time, order, action, argument))

    def run(self, until: int) -> None:
        """Run everything up to `until`, that moment included, and set the clock to it."""
        heap, pop = self._heap, heappop
        while heap:
            call = pop(heap)
            if call[0] > until:
                heappush(heap, call)  # Once per run: cheaper than a look before each call.
                break
            self.now = call[0]
            call[2](call[3])
        self.now = max(self.now, until)

    @property
    def events(self) -> int:
        """Calls run so far."""
        return self._order - len(self._heap)

    @property
    def next(self) -> int | None:
        """When the next call is due, if any is."""
        return self._heap[0][0] if self._heap else None

    @property
    def calls(self) -> list[tuple[int, Action, Any]]:
        """What is still to be done: time, action and argument, in the order of doing."""
        return [(time, action, argument) for time, _, action, argument in sorted(self._heap)]

    def cancel(self, action: Action, argument: object) -> None:
        """Forget the call of this action with this very argument."""
        self._heap = [call for call in self._heap if call[3] is not argument or call[2] != action]
        heapify(self._heap)
