"""Links that carry nothing: nodes that cannot be in one view because of them, and pauses for those.

If a and b do not hear each other, c, which hears both, would bring them together again as soon as
they have given each other up, for ever. If b gives up a while this node hears a, then a is *apart*
from b. If a does not answer this node, or gives it up, then a is apart from this node. The second
time that a view is installed without a node that is apart from a member, this node does not merge
with it for a pause, which doubles every time.

The two cases differ in one point. A node that is apart from another member is not answered. A node
that is apart from this node alone is answered: if it sends a Join, it hears us, or its own pause is
over. Otherwise two nodes that each have a pause for the other might never try at the same time.

A pause ends early when the member that the node is apart from has left our view: then nothing
speaks against the node. The count of a node is cleared when a view of both lasts, and when the node
restarts.
"""

from collections.abc import Iterable

from roundelay.core.contract import Origin
from roundelay.core.ids import NodeId
from roundelay.core.value import value

RECENT_JOINS = 3
"""A node counts as heard if its Join came within so many intervals between Joins of ours. Too
small: a lost Join makes a node seem silent; too large: a node that crashed still counts as heard
when it is given up, which is after `consensus_s`."""


@value
class Pause:
    """A node that is not merged with from now on."""

    node: NodeId
    time_s: float
    reason: str
    """In words."""


class BrokenLinks:
    """What one node has found out about links that carry nothing."""

    def __init__(self, me: NodeId, pause_s: float, pause_max_s: float, most: int) -> None:
        """At most `most` nodes are remembered in each table."""
        self.pauses: dict[NodeId, NodeId] = {}
        """Nodes that have a pause now, and the member of our view that each is apart from."""
        self._me = me
        self._pause_s = pause_s
        self._pause_max_s = pause_max_s
        self._most = most
        self._recent: list[set[NodeId]] = [set() for _ in range(RECENT_JOINS)]
        """Senders of Joins by interval between Joins of ours, the latest first."""
        self._answered: set[NodeId] = set()
        """Senders of Joins since the last view was installed."""
        self._contacted: set[NodeId] = set()
        """Outsiders whose frame made us send Joins since then."""
        self._apart_from: dict[NodeId, NodeId] = {}
        """Nodes that were given up since then, and from which node each is apart."""
        self._counts: dict[NodeId, int] = {}
        """How often a view was installed without a node that is apart."""
        self._raised: set[NodeId] = set()
        """Nodes whose pause was doubled before it was over."""
        self._lives: dict[NodeId, int] = {}

    @property
    def any(self) -> bool:
        """Whether any node was found apart and not forgiven."""
        return bool(self._counts)

    def ignores(self, node: NodeId) -> bool:
        """Whether the Joins of a node are not even answered."""
        return self.pauses.get(node, self._me) != self._me

    def note_contact(self, node: NodeId) -> None:
        """A frame of an outsider makes us send Joins."""
        self._contacted.add(node)

    def note_join(self, node: NodeId) -> None:
        """A Join has come while we send Joins too."""
        if len(self._answered) < self._most:  # Bounded, as below.
            self._recent[0].add(node)
            self._answered.add(node)

    def next_join(self) -> None:
        """We send our next Join: an interval ends."""
        self._recent = [set(), *self._recent[:-1]]

    def note_given_up(self, by: NodeId, nodes: Iterable[NodeId]) -> None:
        """Nodes are given up because `by` says so or, if `by` is this node, because no answer that
        agrees came. If `by` itself is among them, it gave this node up."""
        for node in nodes:
            if node == by:
                self._apart_from[node] = self._me
            elif any(node in heard for heard in self._recent):
                self._apart_from[node] = by

    def note_install(self, members: Iterable[NodeId], fails: Iterable[NodeId]) -> list[Pause]:
        """A view of `members` is installed, without `fails`; returns the pauses that begin."""
        present, apart_from = set(members), self._apart_from
        for node in self._contacted - self._answered:
            apart_from[node] = self._me
        self.pauses = {
            node: other
            for node, other in self.pauses.items()
            if other in present and node not in present
        }
        begun = []
        for node in sorted(apart_from.keys() & set(fails)):
            if apart_from[node] in present:
                begun += self._count(node, apart_from[node])
        self._recent = [set() for _ in range(RECENT_JOINS)]
        self._answered, self._contacted, self._apart_from = set(), set(), {}
        return begun

    def _count(self, node: NodeId, other: NodeId) -> list[Pause]:
        """A view was installed without `node`, which is apart from `other`. A pause doubles once
        before it is over, not more often: it must not become much longer than the trouble has
        lasted."""
        if len(self._counts) >= self._most:
            self._counts.clear()  # Bounded: strangers may have any number of names.
        running = node in self.pauses
        if not running or node not in self._raised:
            self._counts[node] = self._counts.get(node, 0) + 1
        if running:
            self._raised.add(node)
        if (count := self._counts.get(node, 0)) < 2:
            return []
        # That it is apart from another weighs more than that it is apart from us.
        if not running or other != self._me:
            self.pauses[node] = other
        pause_s = min(self._pause_s * 2.0 ** min(count - 2, 64), self._pause_max_s)
        first, second = sorted((node, self.pauses[node]))
        reason = f"{first} and {second} do not hear each other"
        if self.pauses[node] == self._me:
            reason = "it does not answer, or goes on without us"
        return [Pause(node, pause_s, reason)]

    def end_pause(self, node: NodeId) -> None:
        self.pauses.pop(node, None)
        self._raised.discard(node)

    def forgive(self, nodes: Iterable[NodeId]) -> None:
        for node in nodes:
            self._counts.pop(node, None)
            self._raised.discard(node)

    def note_incarnation(self, origin: Origin) -> None:
        """A frame of a node came; if the node restarted, its count is cleared."""
        life = self._lives.get(origin.node)
        if life is not None and life != origin.incarnation:
            self.end_pause(origin.node)
            self._counts.pop(origin.node, None)
        if life != origin.incarnation and (life is not None or len(self._lives) < self._most):
            self._lives[origin.node] = origin.incarnation
