"""Counts attempts to form a ring that failed: a membership that fails repeatedly must shrink."""

from roundelay.core.ids import NodeId


class Failures:
    """Counts failures in a row of one membership ([Totem95] §6.3)."""

    def __init__(self, me: NodeId, limit: int) -> None:
        self._me = me
        self._limit = limit
        self._members: tuple[NodeId, ...] = ()
        self._count = 0

    def count(self, members: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
        """A ring of these members was not formed. At the limit, returns the largest member, which
        is to be given up, unless that is this node."""
        self._count = self._count + 1 if self._members == members else 1
        self._members = members
        if self._count < self._limit or members[-1] == self._me:
            return ()
        self.reset()
        return members[-1:]

    @property
    def own_turn(self) -> bool:
        """Whether the others may give this node up by now for being the largest member."""
        return self._members[-1:] == (self._me,) and self._count + 1 >= self._limit

    def reset(self) -> None:
        self._members, self._count = (), 0
