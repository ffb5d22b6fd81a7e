"""What is committed in an open view: the length that a majority of its voters has acknowledged.

An acknowledgment says what its sender has stored in this view. It leaves a node only while that is
ready, the view open, and not frozen: a member of the next view acknowledges nothing any more in
this one, so what is not committed by then is decided by the next one. Acknowledgments of members
that are no voters count for nothing.
"""

from roundelay.core.ids import NodeId, View
from roundelay.core.log import Place
from roundelay.group.log.messages import Ack


class Commit:
    """Acknowledgments of one open view."""

    def __init__(self, view: View, base: int) -> None:
        self._view = view
        self._acks: dict[NodeId, Place] = {}
        self.place = Place(view.id, base)
        """Everything before this is committed. All below the base is, since the view opened."""

    def acknowledge(self, node: NodeId, length: int, opened: int) -> bool:
        """A member has stored so much in this view; whether more is committed now."""
        place = Place(self._view.id, length, opened)
        if place <= self._acks.get(node, Place()):
            return False  # A copy that was delayed.
        self._acks[node] = place
        if node not in self._view.voters or place <= self.place:
            return False
        nothing = Place()
        places = sorted([self._acks.get(voter, nothing) for voter in self._view.voters])
        # So many voters are a majority: the last ones of the sorted places.
        place = places[len(places) - (len(places) // 2 + 1)]
        if place <= self.place:
            return False
        self.place = place
        return True

    def is_repeated(self, node: NodeId, m: Ack) -> bool:
        """Whether a member has said before that it stored so much: it waits for others."""
        return Place(self._view.id, m.length, m.opened) == self._acks.get(node)
