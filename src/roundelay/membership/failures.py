"""A membership that fails to form a ring again and again must shrink, or this never ends."""

from roundelay.core.ids import NodeId


class Failures:
    """Counts failures in a row of one membership ([Totem95] §6.3)."""

    def __init__(self, me: NodeId, limit: int) -> None:
        self._me = me
        self._limit = limit
        self._members: tuple[NodeId, ...] = ()
        self._count = 0

    def count(self, members: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
        """It failed once more; who is to be given up for that, if anybody: the largest member."""
        self._count = self._count + 1 if self._members == members else 1
        self._members = members
        if self._count < self._limit or members[-1] == self._me:
            return ()
        self.forget()
        return members[-1:]

    @property
    def mine(self) -> bool:
        """Whether it is our turn to be given up for them."""
        return self._members[-1:] == (self._me,) and self._count + 1 >= self._limit

    def forget(self) -> None:
        self._members, self._count = (), 0
