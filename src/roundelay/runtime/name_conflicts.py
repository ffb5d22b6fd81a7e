"""Name conflicts: two lives of one peer are heard. Was it restarted, or do two nodes have one name?

Theory of operation
===================

A frame names a member of our view as its sender, but another life of it. If the peer was restarted,
the new life should be let in at once. If two nodes run under one name, the one in the view should
stay and the other should stop: to let it in would end a healthy view, again and again.

So the frame is held back, and the member is asked at its address to prove that it is there. A node
that was restarted answers there in its new life, within a round trip; then the frame that was held
back is received. If the member itself answers, both nodes live: the other one is told that its name
is taken, and stops after it was told so for a second; the member is told too, for its log. If
nobody answers, the member is gone, and the other node is let in.

No single frame decides anything. An answer repeats the nonce of the question. A node that is told
that its name is taken believes it only while it is alone, and only from nodes that know the number
of its life.
"""

from collections.abc import Callable

from roundelay.core.contract import Origin
from roundelay.core.ids import NodeId
from roundelay.runtime.node_log import NodeLog
from roundelay.transport.address import SocketAddress

ASK_S = 0.4
"""Seconds between an answer of the member and the next question, while frames of the other life
keep coming. Too small: many questions; too large: a restart right after an answer is noticed
late."""
ASK_TIMES = 3
"""How often a member that does not answer is asked before it counts as gone. Too small: a few lost
frames let a second node of its name in; too large: a node that is restarted elsewhere waits."""
STALE_S = 2.0
"""Seconds after the last question when a conflict is over. A later frame begins a new one. Too
small: a slow sender's questions never add up; too large: old answers count for a new conflict."""
PROVED_S = 1.0
"""Seconds for which an answer proves that the member is there. Too small: the other node is told
too rarely that its name is taken; too large: it is told so although the member is gone."""
TELL_S = 0.1
"""Least time between two frames that tell a node that its name is taken, in seconds. Too small: the
conflict floods both nodes; longer than `TAKEN_S`: the other node never stops."""
TAKEN_S = 1.0
"""Seconds for which a node has to be told that its name is taken before it stops. Too small: forged
frames stop a node at once; too large: a second node of a name runs on in vain."""
TAKEN_TIMES = 3
"""How often it has to be told so in that time, each `TELL_S` or more after the last."""
GAP_S = 3.0
"""Seconds without being told so after which the count begins anew. Too small: lost frames keep a
second node of a name alive; too large: unrelated reports add up."""

Ask = Callable[[NodeId], int]
"""Ask a peer, where it is known to be, to prove that it is there; returns the nonce."""
Tell = Callable[[NodeId, int, SocketAddress | None], None]
"""Tell a life of a peer, at an address or where it is known to be, that another uses its name."""


class _Conflict:
    """A peer of which another life was heard than the one in our view."""

    def __init__(self, member: int, life: int, now: float, nonce: int) -> None:
        self.member = member
        self.life = life
        self.proved: float | None = None
        """When the member last proved that it is there."""
        self.told = float("-inf")
        self.held: bytes | None = None
        """The last frame of the other life, if it can be received later."""
        self.source: SocketAddress | None = None
        """Where that frame came from."""
        self.ask_first(now, nonce)

    def ask_first(self, now: float, nonce: int) -> None:
        """The member was asked whether it is there, for the first time since its last answer."""
        self.asked = self.last = now
        """When it was first asked, and when last."""
        self.times = 1
        self.nonces = {nonce}
        self.pending = True

    def ask_again(self, now: float, nonce: int) -> None:
        """The member was asked once more: the question or the answer may be lost."""
        self.last = now
        self.times += 1
        self.nonces.add(nonce)


class NameConflicts:
    """Decides which life of a peer is heard, where there are two."""

    def __init__(
        self,
        node_log: NodeLog,
        clock: Callable[[], float],
        wait_s: float,
        ask: Ask,
        tell: Tell,
        receive: Callable[[bytes], None],
    ) -> None:
        """An answer may take `wait_s`; `receive` is given a frame that was held back."""
        self._node_log = node_log
        self._clock = clock
        self._wait_s = wait_s
        self._ask = ask
        self._tell = tell
        self._receive = receive
        self._open: dict[NodeId, _Conflict] = {}
        self._accepted: dict[NodeId, int] = {}
        """Lives that were let in after a conflict."""

    def allows(
        self, origin: Origin, member: int, data: bytes | None, source: SocketAddress | None
    ) -> bool:
        """Whether a frame is heard now, of another life than `member`, which is in our view. If
        not, it may be received later."""
        node, life, now = origin.node, origin.incarnation, self._clock()
        if self._accepted.get(node) == life:
            return True
        conflict = self._open.get(node)
        if conflict is None or conflict.member != member or now - conflict.last > STALE_S:
            conflict = self._open[node] = _Conflict(member, life, now, self._ask(node))
        elif not conflict.pending:
            if now - conflict.asked >= ASK_S:
                conflict.ask_first(now, self._ask(node))
        elif now - conflict.asked >= self._wait_s and conflict.times >= ASK_TIMES:
            self._accept(node, life)  # The member does not answer: it is gone.
            return True
        elif now - conflict.last >= self._wait_s / (2 * ASK_TIMES):
            conflict.ask_again(now, self._ask(node))
        conflict.life = life
        conflict.held, conflict.source = data, source
        self._tell_both(node, conflict)
        return False

    def on_answer(self, origin: Origin, nonce: int) -> None:
        """A node answered at the address of a peer."""
        conflict = self._open.get(origin.node)
        if conflict is None or nonce not in conflict.nonces:
            return
        if origin.incarnation == conflict.member:
            conflict.proved, conflict.pending = self._clock(), False
            self._tell_both(origin.node, conflict)
            return
        self._accept(origin.node, origin.incarnation)
        if conflict.held is not None and conflict.life == origin.incarnation:
            self._receive(conflict.held)

    def _accept(self, node: NodeId, life: int) -> None:
        self._open.pop(node, None)
        self._accepted[node] = life

    def _tell_both(self, node: NodeId, conflict: _Conflict) -> None:
        """Tell both lives that their name is taken, if the member has proved that it is there."""
        now = self._clock()
        if conflict.proved is None or now - conflict.proved > PROVED_S:
            return
        if now - conflict.told >= TELL_S:
            conflict.told = now
            self._node_log.twins(node, conflict.source)
            self._tell(node, conflict.life, conflict.source)
            self._tell(node, conflict.member, None)


class TakenReports:
    """Counts how often peers told this node that its name is taken."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first = self._last = float("-inf")
        self._times = 0

    def count(self) -> bool:
        """This node was told so once more; returns whether that is enough to believe it."""
        now = self._clock()
        if now - self._last > GAP_S:
            self._first, self._times, self._last = now, 0, float("-inf")
        if now - self._last >= TELL_S * 0.9:
            self._last = now
            self._times += 1
        return self._times >= TAKEN_TIMES and now - self._first >= TAKEN_S

    def reset(self) -> None:
        """Begin anew: this node is in a view with others, so the name is its own."""
        self._times, self._last = 0, float("-inf")
