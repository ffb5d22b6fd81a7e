"""Whom a node hears: peers in their newest life, and others who should not be there."""

from collections.abc import Callable, Collection

from roundelay.core.contract import Origin
from roundelay.core.ids import NodeId
from roundelay.runtime.narrator import Narrator

LATE_S = 5.0
"""A frame of an earlier life of a node, so long after the next began, is no late one."""


class Neighbours:
    """Knows the peers, and the newest incarnation of each that was heard of."""

    def __init__(
        self, peers: Collection[NodeId], narrator: Narrator, clock: Callable[[], float]
    ) -> None:
        self.strangers = 0
        """Frames of nodes that are not among the peers."""
        self._peers = peers
        self._narrator = narrator
        self._clock = clock
        self.lives: dict[NodeId, int] = {}
        """The newest of each peer that was heard."""
        self._met: dict[NodeId, float] = {}
        """When the newest life of each was first heard of."""

    def meet(self, origin: Origin) -> bool:
        """Whether a frame is to be heard: a peer's, of its newest life."""
        node = origin.node
        if self.lives.get(node) == origin.incarnation:
            return True
        if node not in self._peers:
            self.strangers += 1
            self._narrator.stranger(node)
            return False
        now = self._clock()
        if origin.incarnation < self.lives.get(node, 0):
            if now - self._met[node] > LATE_S:
                self._narrator.twins(node)
            return False
        self.lives[node] = origin.incarnation
        self._met[node] = now
        return True
