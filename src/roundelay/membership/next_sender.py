"""Who will probably send next: there the token of an idle ring waits.

A node that alone sends now and then is followed by itself. Two that answer each other follow each
other, so the last two senders say more than the last one. The guess depends on the order of the
packets alone: all members that have delivered the same packets of a view guess the same.
"""

from roundelay.core.ids import NodeId


class NextSender:
    """Remembers, of every two senders in a row, whose packet came next the last time."""

    def __init__(self, first: NodeId) -> None:
        """`first` is the guess as long as nobody has sent."""
        self.repeated: NodeId | None = None
        """A sender of whom further packets change nothing: its last three were in a row."""
        self._last_two = (first, first)
        self._next: dict[tuple[NodeId, NodeId], NodeId] = {}
        """At most one entry for every two members."""

    def note(self, sender: NodeId) -> None:
        """The next packet of the order is of this sender."""
        last_two = self._last_two
        self._next[last_two] = sender
        self._last_two = (last_two[1], sender)
        self.repeated = sender if last_two == (sender, sender) else None

    @property
    def guess(self) -> NodeId:
        """After two senders that were never in a row before, the last one goes on."""
        return self._next.get(self._last_two, self._last_two[1])
