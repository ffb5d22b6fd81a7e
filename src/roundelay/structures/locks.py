"""`Lock` and `Semaphore`.

async with lock.hold() as hold:
    write(..., fencing_token=hold.token)
"""

from collections.abc import Callable
from functools import partial
from typing import Self

from roundelay.core.ids import NodeId
from roundelay.structures.errors import Refused
from roundelay.structures.methods import read, write
from roundelay.structures.turns import Turns


class Lock(Turns):
    """At most one claim holds it, and the others wait in the order in which they came. A node
    loses it when a part of the group that it is not in can commit; `Hold.lost` tells the node."""

    @read
    def holder(self) -> NodeId | None:
        """The node that has the lock."""
        return self.granted[0].node if self.granted else None

    @read
    def locked(self) -> bool:
        """Whether any node has it."""
        return bool(self.granted)


class Semaphore(Turns):
    """As a lock that `limit` claims can hold at once; until `resize` says otherwise as many as it
    was made for, `Semaphore.of(3)` say, and 1 by default."""

    def __init__(self, limit: int = 1) -> None:
        if limit < 1:
            raise ValueError("the limit of a semaphore is at least 1")
        super().__init__()
        self.limit = limit

    @classmethod
    def of(cls, limit: int) -> Callable[[], Self]:
        """Makes semaphores with this limit: `shop.add("slots", Semaphore.of(3))`. All nodes must
        name the same, and go on naming it: the log begins with it. `resize` changes it later."""
        cls(limit)  # So that a bad one is refused here.
        return partial(cls, limit)

    @write
    def resize(self, limit: int) -> int:
        """Set the limit; returns the one before. Who holds a turn keeps it, so for a while there
        may be more than a smaller limit."""
        if limit < 1:
            raise Refused("the limit of a semaphore is at least 1")
        before, self.limit = self.limit, limit
        self._fill()
        return before

    @read
    def free(self) -> int:
        """Turns that nobody has."""
        return max(0, self.limit - len(self.granted))
