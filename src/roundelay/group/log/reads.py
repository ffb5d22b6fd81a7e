"""Linearizable reads: how long the log must be, here and committed, before a read is answered.

The node asks all voters for the length of their logs. With answers of a majority of them a read is
as of the greatest length answered: whatever was committed before it began is on a majority, which
shares a node with the answers. A voter answers only in an open view that it has not left, so no
later view can have committed anything by then. One round trip, no disk, no clock.

Reads that come while a probe is under way share the next one.
"""

from collections import deque

from roundelay.core.ids import NodeId


class Reads:
    """The reads of one node that wait. Between open views they just wait."""

    def __init__(self) -> None:
        self._next: list[int] = []
        """Reads for the next probe."""
        self._asked: list[int] = []
        """Reads of the probe under way."""
        self._answered: deque[tuple[int, tuple[int, ...]]] = deque()
        """Reads as of a length that is not committed here yet; lengths grow."""
        self._voters: tuple[NodeId, ...] = ()
        self._lengths: dict[NodeId, int] = {}
        self.number = 0
        """Of the last probe."""

    def __len__(self) -> int:
        return len(self._next) + len(self._asked) + sum(len(reads) for _, reads in self._answered)

    @property
    def probing(self) -> bool:
        return bool(self._asked)

    def add(self, request: int) -> None:
        self._next.append(request)

    def open(self, voters: tuple[NodeId, ...]) -> None:
        """A view opened: answers of its voters count."""
        self._voters = voters

    def close(self) -> None:
        """The view ended. What was asked in it has to be asked again: the entries that it was to
        wait for may never be committed."""
        waiting = [read for _, reads in self._answered for read in reads]
        self._next = [*waiting, *self._asked, *self._next]
        self._asked = []
        self._answered.clear()
        self._voters = ()

    def begin(self) -> bool:
        """Begin a probe if reads wait for one; whether it is to be sent."""
        if self._asked or not self._next or not self._voters:
            return False
        self._asked, self._next = self._next, []
        self._lengths = {}
        self.number += 1
        return True

    def answer(self, node: NodeId, number: int, length: int) -> bool:
        """A voter has answered a probe; whether that was the last answer that it needed."""
        if number != self.number or not self._asked or node not in self._voters:
            return False
        self._lengths.setdefault(node, length)
        if 2 * len(self._lengths) <= len(self._voters):
            return False
        length = max(self._lengths.values())
        if self._answered:
            length = max(length, self._answered[-1][0])
        self._answered.append((length, tuple(self._asked)))
        self._asked = []
        return True

    def pop(self, committed: int) -> list[tuple[int, int]]:
        """Reads that may be answered now, and as of which length."""
        done: list[tuple[int, int]] = []
        while self._answered and self._answered[0][0] <= committed:
            length, reads = self._answered.popleft()
            done += [(read, length) for read in reads]
        return done
