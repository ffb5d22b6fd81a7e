"""Nodes that cannot be in one view with us because of a link that carries nothing, and how long we
leave them alone.

If a and b do not hear each other, c, which hears both, would bring them together again as soon as
they have given each other up, for ever. Whoever is given up by another while we hear it is apart
from that other; whoever does not answer us, or gives us up, is apart from us. The second time that
a view is installed without such a node, we leave it alone for a while, which doubles every time.

The two cases differ in one point. We do not answer a node that is apart from another member, but
we answer one that is apart from us alone: if it asks, it hears us, or its own pause is over.
Otherwise two nodes that each leave the other alone might never try at the same time.

A pause ends when the other of the two is no longer in our view: then nothing speaks against the
node. A view of both that lasts, and a restart, make a clean record.
"""

from collections.abc import Iterable

from roundelay.core.contract import Origin
from roundelay.core.ids import NodeId
from roundelay.core.value import value

RECENT_JOINS = 3
"""Who was heard during our last so many Joins is heard. A node that crashed is given up much later
than that."""


@value
class Pause:
    """A node to be left alone from now on."""

    node: NodeId
    time_s: float
    reason: str
    """In words."""


class Apart:
    """What one node has found out about links that carry nothing."""

    def __init__(self, me: NodeId, pause_s: float, pause_max_s: float, most: int) -> None:
        self.pauses: dict[NodeId, NodeId] = {}
        """Who is left alone now, and because of which member of our view."""
        self._me = me
        self._pause_s = pause_s
        self._pause_max_s = pause_max_s
        self._most = most
        self._recent: list[set[NodeId]] = [set() for _ in range(RECENT_JOINS)]
        """Whose Joins were heard lately, the latest first."""
        self._answered: set[NodeId] = set()
        """Whose Joins were heard since the last view was installed."""
        self._called: set[NodeId] = set()
        """Outsiders that a frame of theirs told us of since then."""
        self._others: dict[NodeId, NodeId] = {}
        """By node that was given up since then: from whom it is apart."""
        self._times: dict[NodeId, int] = {}
        self._raised: set[NodeId] = set()
        """Whose pause was raised before it was over."""
        self._lives: dict[NodeId, int] = {}

    @property
    def any(self) -> bool:
        return bool(self._times)

    def shuns(self, node: NodeId) -> bool:
        """Whether a node is not even answered."""
        return self.pauses.get(node, self._me) != self._me

    def call(self, node: NodeId) -> None:
        """A frame of an outsider makes us send Joins."""
        self._called.add(node)

    def hear(self, node: NodeId) -> None:
        """A Join has come while we send Joins too."""
        if len(self._answered) < self._most:  # Bounded, as below.
            self._recent[0].add(node)
            self._answered.add(node)

    def tick(self) -> None:
        """Our next Join."""
        self._recent = [set(), *self._recent[:-1]]

    def note(self, by: NodeId, given_up: Iterable[NodeId]) -> None:
        """These are given up because `by` says so, or, if it is this node, for want of an answer
        that agrees."""
        for node in given_up:
            if node == by:
                self._others[node] = self._me
            elif any(node in heard for heard in self._recent):
                self._others[node] = by

    def settle(self, members: Iterable[NodeId], fails: Iterable[NodeId]) -> list[Pause]:
        """A view of `members` is installed, without `fails`; says whom to leave alone."""
        present, others = set(members), self._others
        for node in self._called - self._answered:
            others[node] = self._me
        self.pauses = {
            node: other
            for node, other in self.pauses.items()
            if other in present and node not in present
        }
        begun = []
        for node in sorted(others.keys() & set(fails)):
            if others[node] in present:
                begun += self._count(node, others[node])
        self._recent = [set() for _ in range(RECENT_JOINS)]
        self._answered, self._called, self._others = set(), set(), {}
        return begun

    def _count(self, node: NodeId, other: NodeId) -> list[Pause]:
        """Once more it was to no avail. A pause doubles once before it is over, not more often: it
        must not become much longer than the trouble has lasted."""
        if len(self._times) >= self._most:
            self._times.clear()  # Bounded: strangers may have any number of names.
        running = node in self.pauses
        if not running or node not in self._raised:
            self._times[node] = self._times.get(node, 0) + 1
        if running:
            self._raised.add(node)
        if (times := self._times.get(node, 0)) < 2:
            return []
        # That it is apart from another weighs more than that it is apart from us.
        if not running or other != self._me:
            self.pauses[node] = other
        pause_s = min(self._pause_s * 2.0 ** min(times - 2, 64), self._pause_max_s)
        first, second = sorted((node, self.pauses[node]))
        reason = f"{first} and {second} do not hear each other"
        if self.pauses[node] == self._me:
            reason = "it does not answer, or goes on without us"
        return [Pause(node, pause_s, reason)]

    def resume(self, node: NodeId) -> None:
        """A pause is over."""
        self.pauses.pop(node, None)
        self._raised.discard(node)

    def forgive(self, nodes: Iterable[NodeId]) -> None:
        for node in nodes:
            self._times.pop(node, None)
            self._raised.discard(node)

    def meet(self, origin: Origin) -> None:
        """Somebody shows up; if it restarted, nothing is held against it."""
        life = self._lives.get(origin.node)
        if life is not None and life != origin.incarnation:
            self.resume(origin.node)
            self._times.pop(origin.node, None)
        if life != origin.incarnation and (life is not None or len(self._lives) < self._most):
            self._lives[origin.node] = origin.incarnation
