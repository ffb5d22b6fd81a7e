"""Which nodes should be in the next ring: two sets that only grow until a ring is installed."""

from collections.abc import Iterable

from roundelay.core.ids import NodeId
from roundelay.membership.messages import Join


class Proposal:
    """What this node proposes, and who has said the same ([Totem95] §6.2).

    `fails` does not shrink until a ring is installed: therefore every Gather ends.
    """

    def __init__(self, me: NodeId) -> None:
        self.procs: set[NodeId] = {me}
        """Everybody heard of."""
        self.fails: set[NodeId] = set()
        """Those of them that are given up."""
        self.agreed: set[NodeId] = {me}
        """Those known to propose the same."""
        self._me = me

    @property
    def members(self) -> tuple[NodeId, ...]:
        """Of the ring as it is proposed, the representative first."""
        return tuple(sorted(self.procs - self.fails))

    @property
    def unanimous(self) -> bool:
        """Whether everybody who is left has said so."""
        return self.agreed.issuperset(self.members)

    def restart(self) -> None:
        """Forget who has agreed: everybody is asked anew."""
        self.agreed = {self._me}
        assert self._me not in self.fails, "a node has given itself up"
        assert self.fails <= self.procs, "somebody failed who was never there"

    def equals(self, join: Join) -> bool:
        return set(join.procs) == self.procs and set(join.fails) == self.fails

    def covers(self, join: Join) -> bool:
        """Whether a Join tells nothing that is not known here."""
        return self.procs.issuperset(join.procs) and self.fails.issuperset(join.fails)

    def merge(self, node: NodeId, join: Join, *, companion: bool) -> bool:
        """Take over what a Join tells; whether that changed anything.

        A node that gives us up is given up. Other nodes that it gives up are given up only if it is
        a companion: an outsider may not hear members that hear each other well.
        """
        before = (len(self.procs), len(self.fails))
        self.procs.update(join.procs, (node,))
        if self._me in join.fails:
            self.fails.add(node)
        elif companion:
            self.fails.update(join.fails)
        self.procs |= self.fails
        return before != (len(self.procs), len(self.fails))

    def give_up(self, nodes: Iterable[NodeId]) -> None:
        self.fails.update(node for node in nodes if node != self._me)
        self.procs |= self.fails

    def exclude(self, node: NodeId) -> bool:
        """Give up a node that can be in no view with us; whether it was proposed until now."""
        proposed = node in self.procs and node not in self.fails
        if proposed:
            self.give_up((node,))
        return proposed

    def give_up_silent(self) -> None:
        """Give up everybody who has not said the same by now."""
        self.give_up(self.procs - self.fails - self.agreed)

    def reset(self, members: Iterable[NodeId]) -> None:
        """A ring of these members is installed."""
        self.procs = set(members)
        self.fails = set()
