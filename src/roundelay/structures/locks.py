"""`Lock` and `Semaphore`.

async with lock.hold() as hold:
    write(..., fencing_token=hold.token)
"""

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
    """As a lock that `limit` claims can hold at once; 1 until `resize` says otherwise."""

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
