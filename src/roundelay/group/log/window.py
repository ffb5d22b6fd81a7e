"""The newest log packets of a view, kept by a node that still fetches what came before them."""

from collections import deque

from roundelay.group.log.arrival import Arrival


class LiveWindow:
    """The last log packets that were delivered in this view, which are counted from 1. When they
    take too much memory the oldest ones fall out, and must be fetched too."""

    def __init__(self, bytes_max: int, begin: int = 0) -> None:
        self.last = begin
        """The number of the newest one."""
        self.bytes = 0
        self._bytes_max = bytes_max
        self._kept: deque[Arrival] = deque()

    def __len__(self) -> int:
        return len(self._kept)

    def push(self, arrival: Arrival) -> None:
        """Keep the next one."""
        self.last += 1
        self._kept.append(arrival)
        self.bytes += arrival.size
        while self.bytes > self._bytes_max:
            self.bytes -= self._kept.popleft().size

    def follows(self, ordinal: int) -> bool:
        """Whether all are here that came after the first `ordinal` ones."""
        return self.last - len(self._kept) <= ordinal <= self.last

    def drop(self, ordinal: int) -> None:
        """Forget the first `ordinal` ones."""
        while self._kept and self.last - len(self._kept) < ordinal:
            self.bytes -= self._kept.popleft().size

    def pop(self) -> Arrival:
        """The oldest one, which leaves."""
        arrival = self._kept.popleft()
        self.bytes -= arrival.size
        return arrival
