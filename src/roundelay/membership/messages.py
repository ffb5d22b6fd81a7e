"""The messages of membership; `codec` turns them into bytes and back."""

from typing import TypeAlias

from roundelay.core.contract import Item
from roundelay.core.ids import NodeId, Terms, ViewId
from roundelay.core.value import value
from roundelay.membership.ring import Token

FIRST_TAG = 64
"""Tags of membership's messages begin here; those below belong to engines."""
STEP = 4
"""Ring numbers are multiples of this; the numbers between them name transitional views."""
SEQ_MAX = 2**62
"""No ring gets past this number; a frame that claims a larger one is malformed."""
ATTEMPTS_MAX = 8
"""Attempts that a node remembers: primary views that may have been installed without it. A view for
which a member would have to remember more is not primary."""
NO_TERMS = Terms()


@value
class Primary:
    """A primary view: which one, and whose majority must be there for the next."""

    id: ViewId
    voters: tuple[NodeId, ...]


@value
class Join:
    """The sender's proposal: nodes that should be in the next ring (`procs`), and which of those
    have failed (`fails`)."""

    procs: tuple[NodeId, ...]
    fails: tuple[NodeId, ...]
    ring_seq: int
    """Of the newest ring whose Commit token the sender accepted."""
    terms: Terms = Terms()
    """How the sender was set up."""

    def __str__(self) -> str:
        fails = f" without {','.join(self.fails)}" if self.fails else ""
        return f"{','.join(self.procs)}{fails} after {self.ring_seq}"


@value
class CommitEntry:
    """What a member of the new ring brings along."""

    node: NodeId
    old: ViewId | None = None
    """The view it comes from; None until the member has filled in its entry."""
    summary: bytes = b""
    """Of its engine, on what it holds of that view."""
    obligation: tuple[NodeId, ...] = ()
    """Nodes whose messages a peer that installed before may have delivered behind a gap."""
    last: Primary | None = None
    """The last primary view it was in."""
    attempts: tuple[Primary, ...] = ()
    """Later ones that somebody may have installed."""
    able: bool = False
    """It remembers everything it ever noted of primary views, and so may vote."""
    founders: tuple[NodeId, ...] = ()
    """The nodes that are to found the group, as its settings say."""
    incarnation: int = 0
    """Of the node that is to be a member. Frames of another incarnation are not the member's."""
    crowded: bool = False
    """What it remembers of primary views did not fit the token."""
    journal: bool = False
    """It keeps a replicated log. Among nodes that do, one that does not has no vote."""


@value
class Commit:
    """Goes round the new ring twice: to collect the entries, then to show them to all."""

    ring: ViewId
    token_seq: int
    index: int
    """Entries that are filled in."""
    entries: tuple[CommitEntry, ...]
    """In ring order, the representative first."""

    def after(self, node: NodeId) -> NodeId:
        """The member that the token goes to from this one."""
        names = [entry.node for entry in self.entries]
        return names[(names.index(node) + 1) % len(names)]

    def __str__(self) -> str:
        members = ",".join(entry.node for entry in self.entries)
        return f"{self.ring}{{{members}}} hop {self.token_seq} filled {self.index}"


@value
class Merge:
    """A ring that has nothing else to say shows that it is there; also the answer to a Join of a
    node with other settings."""

    terms: Terms = Terms()

    def __str__(self) -> str:
        return "we are here"


@value
class RingToken:
    """The token of a ring that is being formed."""

    token: Token

    def __str__(self) -> str:
        return str(self.token)


@value
class RingItem:
    """An item of an old view, exchanged over the ring that is being formed."""

    seq: int
    old: ViewId
    item: Item

    def __str__(self) -> str:
        return f"{self.seq}: item {'.'.join(map(str, self.item.key))} of {self.old}"


@value
class Installed:
    """Answers a token that is still being retransmitted: the sender of this has installed."""

    def __str__(self) -> str:
        return "it has come"


@value
class Leave:
    """Its sender is about to stop: nobody needs to wait for it."""

    def __str__(self) -> str:
        return "it leaves"


Message: TypeAlias = Join | Commit | Merge | RingToken | RingItem | Installed | Leave
MESSAGES = frozenset((Join, Commit, Merge, RingToken, RingItem, Installed, Leave))
"""Faster to ask than a union: every frame does."""
