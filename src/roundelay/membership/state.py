"""What the parts of membership share: the view, ring numbers, stable storage and the effects.

Only `Membership` changes the phase and the view; `Forming` moves the ring number on.
"""

from collections.abc import Mapping
from typing import Any

from roundelay.core.contract import Boot, Origin
from roundelay.core.effects import Effect, Install, Kind, Persist, Record, Refuse
from roundelay.core.ids import NodeId, Terms, View, ViewId
from roundelay.membership.config import MembershipConfig
from roundelay.membership.messages import STEP
from roundelay.membership.phase import GatherReason, Phase
from roundelay.membership.plausibility import largest_credible
from roundelay.membership.storage import pack, read_storage


class State:
    """The shared state of one node's membership."""

    def __init__(
        self,
        boot: Boot,
        founders: tuple[NodeId, ...],
        config: MembershipConfig,
        terms: Terms,
    ) -> None:
        self.node = boot.node
        self.incarnation = boot.incarnation
        self.config = config
        self.terms = terms
        self.founders = (*sorted(founders),)
        self.phase = Phase.OPERATIONAL
        self.gather_reason = GatherReason.STARTED
        """Why the last Gather began."""
        self.ring_id = ViewId(0, boot.node)
        """The newest ring whose Commit token this node accepted."""
        self.max_seq = 0
        """The largest ring number heard of."""
        self.view = View(self.ring_id, (boot.node,))
        self.lives: Mapping[NodeId, int] = {boot.node: boot.incarnation}
        """The incarnation of each member of the view. A frame of another incarnation is not the
        member's."""
        self.obligation: tuple[NodeId, ...] = ()
        """Whose messages a peer that installed before may have delivered behind a gap."""
        self._stored = read_storage(boot)
        self.standing = self._stored.standing
        self.journal = boot.journal is not None
        """Whether this node keeps a replicated log."""
        if boot.journal is not None and not boot.journal.able:
            self.standing.able = False  # Its log may lack what it said it had.
        self.journals: tuple[NodeId, ...] = ()
        """The members of the view that keep the log."""
        self.able_members: tuple[NodeId, ...] = ()
        """The members of the view that brought a vote into it."""
        self.out: list[Effect[Any]] = []
        """The effects of the input that is being handled."""

    def start(self) -> None:
        """Install the view of this node alone, under a ring number that it never used."""
        stored = self._stored
        if self.incarnation:
            self.emit(Record(Kind.RECOVER, stable_seq=stored.seq, level=int(stored.kept)))
        # A number of its own for every start: a node that restarts before anybody noticed must
        # not look like a continuing member of its old ring.
        self.ring_id = ViewId(stored.seq + STEP, self.node)
        self.max_seq = self.ring_id.seq
        self.persist()
        self.view = View(self.ring_id, (self.node,))
        self.emit(Install(self.view, self.standing.able, "the node has just started"))

    def is_of_view(self, origin: Origin) -> bool:
        """Whether a frame was sent in our view by the incarnation that is its member."""
        return origin.view == self.view.id and self.lives.get(origin.node) == origin.incarnation

    def believes(self, seq: int) -> bool:
        """Whether a ring number that a peer claims may be true; if not, it is refused."""
        limit = largest_credible(self.max_seq)
        if seq <= limit:
            return True
        self.max_seq = limit
        self.emit(Refuse(f"the ring number {seq} is not to be believed"))
        return False

    def persist(self) -> None:
        """Write the ring number and the standing to stable storage."""
        self.emit(Persist(pack(self.ring_id.seq, self.standing)))

    def emit(self, effect: Effect[Any]) -> None:
        self.out.append(effect)

    def drain(self) -> list[Effect[Any]]:
        """The effects so far, which are the driver's from now on."""
        out = self.out.copy()
        self.out.clear()
        return out
