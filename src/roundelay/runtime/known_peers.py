"""The peers of a node: which life of each was heard last, and when; and strangers among them.

A frame of an earlier life of a peer is not refused here: the core sees by its view that it is out
of date. To admit only the newest life would shut a peer out for good after one forged frame, or
after its clock was set back.
"""

from collections.abc import Callable, Collection

from roundelay.core.contract import Origin
from roundelay.core.ids import NodeId
from roundelay.runtime.node_log import NodeLog
from roundelay.transport.address import SocketAddress

TWINS_S = 2.0
"""If two lives of a peer are heard in turn for so many seconds, two nodes have its name. Too small:
late frames of the life before a restart look like a second node; too large: the warning is late."""
TWINS_RETURNS = 3
"""How often an earlier life has to be heard again before that is believed. Too small: a few late or
forged frames cause the warning; too large: two nodes that speak rarely go unnoticed."""
TAKEN_S = 1.0
"""For so many seconds another node has to speak under our name before we believe that it is there.
Too small: forged frames or those of our last life end this node; too large: it runs on in vain."""
TAKEN_PARTS = 4
"""That time has so many equal parts, and the other node has to be heard in each of them and once
more. Too small: two short bursts of frames suffice; too large: a node that speaks rarely does not
count."""


class _Past:
    """What is remembered of a peer of which more than one life was heard."""

    __slots__ = ("life", "returns", "since")

    def __init__(self, life: int, since: float) -> None:
        self.life = life
        """The life that was heard before the present one."""
        self.since = since
        """When the second of the two lives was first heard."""
        self.returns = 0
        """How often an earlier life was heard again."""


class KnownPeers:
    """Knows the peers, the life of each that was heard last, and when that was."""

    def __init__(
        self, peers: Collection[NodeId], node_log: NodeLog, clock: Callable[[], float]
    ) -> None:
        self.strangers = 0
        """Frames of nodes that are not among the peers."""
        self.lives: dict[NodeId, int] = {}
        """The life of each peer that was heard last."""
        self.heard: dict[NodeId, float] = {}
        """When each peer was heard last, on the clock; `receiving` writes it for every frame."""
        self._peers = peers
        self._node_log = node_log
        self._clock = clock
        self._past: dict[NodeId, _Past] = {}
        self._namesake: tuple[int, float, set[int]] | None = None
        """A node that speaks under our name: its life, when it was first heard, and in which parts
        of `TAKEN_S` since then it was heard."""

    def silence_s(self, node: NodeId) -> float | None:
        """How long a peer was not heard; None if it never was."""
        return None if node not in self.heard else self._clock() - self.heard[node]

    def never_heard(self) -> list[NodeId]:
        """Peers of which nothing was heard since this node started."""
        return [peer for peer in self._peers if peer not in self.heard]

    def admits(self, origin: Origin, source: SocketAddress | None = None) -> bool:
        """Whether a frame that came from `source` was sent by a peer. Its life counts as heard."""
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
        """Another life of a peer is heard than just before."""
        now, past = self._clock(), self._past.get(node)
        if past is None or past.life != life:
            self._past[node] = _Past(before, now)
            self._node_log.restarted(node)
            return
        past.life = before
        past.returns += 1
        if past.returns >= TWINS_RETURNS and now - past.since >= TWINS_S:
            self._node_log.twins(node)

    def namesake_persists(self, life: int) -> bool:
        """Another node, of this life, sent a frame under our name. Returns whether it has done so
        for a while: a few frames may be forged, or left over from our own last life."""
        now = self._clock()
        found = self._namesake
        if found is None or found[0] != life or now > found[1] + 2 * TAKEN_S:
            self._namesake = found = (life, now, set())
        _, since, parts = found
        parts.add(int((now - since) / TAKEN_S * TAKEN_PARTS))
        return len(parts) > TAKEN_PARTS
