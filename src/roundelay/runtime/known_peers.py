"""Whom a node hears: its peers, in whatever life; and others who should not be there.

A frame of an earlier life is not refused here: the core tells by its view that it is of no use. A
filter for the newest life would shut a peer out for good after one forged frame, or after its clock
was set back.
"""

from collections.abc import Callable, Collection

from roundelay.core.contract import Origin
from roundelay.core.ids import NodeId
from roundelay.runtime.node_log import NodeLog
from roundelay.transport.address import SocketAddress

TWINS_S = 2.0
"""Frames of an earlier life, so long after the next began, are no late ones ..."""
TWINS_RETURNS = 3
"""... if the earlier life was heard again so often."""
TAKEN_S = 1.0
"""For so long somebody else has to speak under our name ..."""
TAKEN_PARTS = 4
"""... and in more than so many parts of it, each a quarter of that time."""


class _Past:
    """What is remembered of a peer that was heard in more than one life."""

    __slots__ = ("life", "returns", "since")

    def __init__(self, life: int, since: float) -> None:
        self.life = life
        """The one that was heard before the present one."""
        self.since = since
        """When both of them had been heard."""
        self.returns = 0
        """How often the other one of the two was heard again."""


class KnownPeers:
    """Knows the peers, the life of each that was heard last, and when that was."""

    def __init__(
        self, peers: Collection[NodeId], node_log: NodeLog, clock: Callable[[], float]
    ) -> None:
        self.strangers = 0
        """Frames of nodes that are not among the peers."""
        self.lives: dict[NodeId, int] = {}
        """The one of each peer that was heard last."""
        self.heard: dict[NodeId, float] = {}
        """When each peer was heard last; kept by whoever hears its frames."""
        self._peers = peers
        self._node_log = node_log
        self._clock = clock
        self._past: dict[NodeId, _Past] = {}
        self._namesake: tuple[int, float, set[int]] | None = None
        """Who speaks under our name: its life, since when, and in which parts of the time since."""

    def silence_s(self, node: NodeId) -> float | None:
        """How long a peer was not heard; None if it never was."""
        return None if node not in self.heard else self._clock() - self.heard[node]

    def meet(self, origin: Origin, source: SocketAddress | None = None) -> bool:
        """Whether a frame, that came from `source`, is to be heard: whether a peer sent it."""
        node, life = origin.node, origin.incarnation
        before = self.lives.get(node)
        if before == life:
            return True
        if node not in self._peers:
            self.strangers += 1
            self._node_log.stranger(node, source)
            return False
        self.lives[node] = life
        if before is None:
            self._node_log.heard(node)
        else:
            self._compare(node, life, before)
        return True

    def _compare(self, node: NodeId, life: int, before: int) -> None:
        """A peer is heard in another life than just before."""
        now, past = self._clock(), self._past.get(node)
        if past is None or past.life != life:
            self._past[node] = _Past(before, now)
            self._node_log.restarted(node)
            return
        past.life = before
        past.returns += 1
        if past.returns >= TWINS_RETURNS and now - past.since >= TWINS_S:
            self._node_log.twins(node)

    def namesake(self, life: int) -> bool:
        """Somebody else sends under our name; whether it has kept doing so for a while. One frame,
        or a few at once, may be forged, or left over from our own last life."""
        now = self._clock()
        found = self._namesake
        if found is None or found[0] != life or now > found[1] + 2 * TAKEN_S:
            self._namesake = found = (life, now, set())
        _, since, parts = found
        parts.add(int((now - since) / TAKEN_S * TAKEN_PARTS))
        return len(parts) > TAKEN_PARTS
