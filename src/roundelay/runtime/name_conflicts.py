"""Two lives of one peer: a restart, or two nodes of one name?

Theory of operation
===================

A frame comes from a peer that is in our view, but in another life than its member. If the peer was
restarted, the new life should be let in at once. If two nodes run under one name, the one in the
view should stay and the other should stop; to let it in would end a healthy view, again and again.

So the frame is held back for a moment, and the member is asked at its address to prove that it is
there. A node that was restarted answers there in its new life, within a round trip: then what was
held back is handed on. If the member itself answers, both live: the other one is told that its name
is taken, and stops once it was told so for a second; the member is told too, for its log. If nobody
answers, the member is gone, and the other one is let in.

No single frame decides anything: answers prove themselves with a nonce, and whoever is told that
its name is taken heeds that only while it is alone, from nodes that know the number of its life.
"""

from collections.abc import Callable

from roundelay.core.contract import Origin
from roundelay.core.ids import NodeId
from roundelay.runtime.node_log import NodeLog
from roundelay.transport.address import SocketAddress

ASK_S = 0.4
"""Between two questions, while frames of the other life keep coming."""
ASK_TIMES = 3
"""Who does not answer is asked so often before it is taken to be gone."""
STALE_S = 2.0
"""So long after the last question, the other life is asked about as if for the first time."""
PROVED_S = 1.0
"""For so long after its last answer a member is taken to be there."""
TELL_S = 0.1
"""Between two frames that tell a node that its name is taken."""
TAKEN_S = 1.0
"""A node stops after it was told for so long that its name is taken ..."""
TAKEN_TIMES = 3
"""... at least so many times, each `TELL_S` or more after the last."""
GAP_S = 3.0
"""After so long without being told, it all begins anew."""

Ask = Callable[[NodeId], int]
"""Ask a peer, where it is known to be, to prove that it is there; returns the nonce."""
Tell = Callable[[NodeId, int, SocketAddress | None], None]
"""Tell a life of a peer, at an address or where it is known to be, that another uses its name."""


class _Conflict:
    """One peer, of which another life than its member was heard."""

    def __init__(self, member: int, life: int, now: float, nonce: int) -> None:
        self.member = member
        self.life = life
        self.proved: float | None = None
        """When the member last proved that it is there."""
        self.told = float("-inf")
        self.held: bytes | None = None
        """The last frame of the other life."""
        self.source: SocketAddress | None = None
        """Where that came from."""
        self.begin(now, nonce)

    def begin(self, now: float, nonce: int) -> None:
        """The member was asked whether it is there."""
        self.asked = self.last = now
        """When it was first asked, and when last."""
        self.times = 1
        self.nonces = {nonce}
        self.pending = True

    def again(self, now: float, nonce: int) -> None:
        """It was asked once more: frames get lost."""
        self.last = now
        self.times += 1
        self.nonces.add(nonce)


class NameConflicts:
    """Decides for each peer whose frames are heard, where two lives of it are."""

    def __init__(
        self,
        node_log: NodeLog,
        clock: Callable[[], float],
        wait_s: float,
        ask: Ask,
        tell: Tell,
        admit: Callable[[bytes], None],
    ) -> None:
        """`wait_s` is how long an answer may take; `admit` takes a frame that was held back."""
        self._node_log = node_log
        self._clock = clock
        self._wait_s = wait_s
        self._ask = ask
        self._tell = tell
        self._admit = admit
        self._open: dict[NodeId, _Conflict] = {}
        self._accepted: dict[NodeId, int] = {}
        """Lives that were let in after a conflict."""

    def allows(
        self, origin: Origin, member: int, data: bytes | None, source: SocketAddress | None
    ) -> bool:
        """Whether a frame of another life than the `member` of our view is heard now. If not, it
        may be later, by `admit`."""
        node, life, now = origin.node, origin.incarnation, self._clock()
        if self._accepted.get(node) == life:
            return True
        conflict = self._open.get(node)
        if conflict is None or conflict.member != member or now - conflict.last > STALE_S:
            conflict = self._open[node] = _Conflict(member, life, now, self._ask(node))
        elif not conflict.pending:
            if now - conflict.asked >= ASK_S:
                conflict.begin(now, self._ask(node))
        elif now - conflict.asked >= self._wait_s and conflict.times >= ASK_TIMES:
            self._accept(node, life)  # Nobody is there who could object.
            return True
        elif now - conflict.last >= self._wait_s / (2 * ASK_TIMES):
            conflict.again(now, self._ask(node))
        conflict.life = life
        conflict.held, conflict.source = data, source
        self._object(node, conflict)
        return False

    def answered(self, origin: Origin, nonce: int) -> None:
        """Somebody answered at a peer's address."""
        conflict = self._open.get(origin.node)
        if conflict is None or nonce not in conflict.nonces:
            return
        if origin.incarnation == conflict.member:
            conflict.proved, conflict.pending = self._clock(), False
            self._object(origin.node, conflict)
            return
        self._accept(origin.node, origin.incarnation)
        if conflict.held is not None and conflict.life == origin.incarnation:
            self._admit(conflict.held)

    def _accept(self, node: NodeId, life: int) -> None:
        self._open.pop(node, None)
        self._accepted[node] = life

    def _object(self, node: NodeId, conflict: _Conflict) -> None:
        """Tell both, if both are known to live."""
        now = self._clock()
        if conflict.proved is None or now - conflict.proved > PROVED_S:
            return
        if now - conflict.told >= TELL_S:
            conflict.told = now
            self._node_log.twins(node, conflict.source)
            self._tell(node, conflict.life, conflict.source)
            self._tell(node, conflict.member, None)


class TakenReports:
    """Counts how often this node was told that its name is taken."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first = self._last = float("-inf")
        self._times = 0

    def count(self) -> bool:
        """It was told so once more; whether that is enough to believe it."""
        now = self._clock()
        if now - self._last > GAP_S:
            self._first, self._times, self._last = now, 0, float("-inf")
        if now - self._last >= TELL_S * 0.9:
            self._last = now
            self._times += 1
        return self._times >= TAKEN_TIMES and now - self._first >= TAKEN_S

    def forget(self) -> None:
        """This node is with others: its name is its own."""
        self._times, self._last = 0, float("-inf")
