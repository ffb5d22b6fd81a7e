"""Identities: nodes, views, messages and packets.

A *node* is a process, and its id is a name. A *view* is a set of members that some nodes installed
together. A *message* is what an application submits. A *packet* is what an engine orders: one or
more messages of one sender, or a piece of a large one.
"""

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from roundelay.core.value import value

NodeId: TypeAlias = str
"""A node's name. Names are ordered by code point; the smallest name of a view is its
representative."""

NODE_NAME_BYTES_MAX = 64
"""The longest name of a node or group, in bytes of UTF-8. Every frame carries both, so a larger
limit leaves less room for messages."""


def is_name(text: str) -> bool:
    """Whether a text can name a node or a group. Names become parts of file names, lines of logs
    and terminals: so they are printable, and neither hold a separator nor mean a directory."""
    if not text.isprintable() or "/" in text or text in ("", ".", ".."):
        return False
    return len(text.encode()) <= NODE_NAME_BYTES_MAX


class Service(IntEnum):
    """The guarantee that the sender asked for. Each one includes those before it."""

    FIFO = 0
    CAUSAL = 1
    AGREED = 2
    SAFE = 3


class ViewId(NamedTuple):
    """The name of one view, which is never used again. Compare both fields: two sides of a
    partition may reach the same `seq`."""

    seq: int
    """Grows from view to view of a node."""
    rep: NodeId
    """The member that named it."""

    def __str__(self) -> str:
        return f"{self.seq}.{self.rep}"


@value
class View:
    """A set of members, and its place in the history of a node."""

    id: ViewId
    """No other view has it."""
    members: tuple[NodeId, ...]
    """The members in code point order. The index of a member is its number in frames of this
    view."""
    transitional: bool = False
    """Whether it stands between two regular views."""
    primary: bool = False
    """Whether its members may act for the whole group; at most one view at a time is so."""
    previous: ViewId | None = None
    """The view that this node was in before; None if it has just started."""
    voters: tuple[NodeId, ...] = ()
    """The nodes of which a majority decides which next view is primary. Empty if this view is not
    primary."""

    def __str__(self) -> str:
        kind = "T" if self.transitional else "R"
        return f"{kind}{self.id}{{{','.join(self.members)}}}"


def life_mark(incarnation: int) -> str:
    """What follows a node's name to show its incarnation: nothing for incarnation 0, `'2` for a
    small number, and `'7k2q5` for the random part of a real node's incarnation."""
    if not incarnation:
        return ""
    if incarnation <= _LIFE_MASK:
        return f"'{incarnation}"
    rest, letters = incarnation & _LIFE_MASK, ""
    for _ in range(5):
        rest, letter = divmod(rest, len(_LIFE_LETTERS))
        letters = _LIFE_LETTERS[letter] + letters
    return f"'{letters}"


_LIFE_MASK = 2**21 - 1
_LIFE_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Span(NamedTuple):
    """`count` consecutive messages of one sender; with `count` 1 the identity of one message.

    With `count` 0 it names a piece of message `first` that does not complete the message.
    """

    node: NodeId
    incarnation: int
    first: int
    count: int = 1  # type: ignore[assignment]  # A field; tuple.count has no use here.

    def __str__(self) -> str:
        last = f"..{self.first + self.count - 1}" if self.count > 1 else "" if self.count else "+"
        life = life_mark(self.incarnation)
        return f"{self.node}{life}:{self.first}{last}"


Key: TypeAlias = tuple[int, int]
"""An order key within one view, compared lexicographically. The engine decides what the two numbers
mean: a sequence number and an index, a timestamp and a sender ..."""


@value
class Terms:
    """How a node was set up, as texts for its peers. The core only compares them."""

    settings: str = ""
    """The settings that must be the same at every node of a group."""
    peers: str = ""
    """The peers that the node knows. Lists may differ while a group grows, so a difference is only
    reported."""


@value
class Packet:
    """The unit of ordering. An engine sends it and never reads `body`.

    A packet with `span.count` 0 carries a piece of a large message and completes no message. It is
    ordered and acknowledged like any other, but the trace has no message row for it.
    """

    span: Span
    service: Service
    body: bytes
    destinations: tuple[NodeId, ...] | None = None
    """The nodes that deliver it; None means every member of the view."""

    def __str__(self) -> str:
        """The packet's messages, for people, and its service and destinations if they are not the
        usual."""
        safe = " safe" if self.service is Service.SAFE else ""
        to = "" if self.destinations is None else f" to {','.join(self.destinations)}"
        return f"{self.span}{safe}{to}"
