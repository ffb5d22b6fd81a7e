"""Who and what: nodes, views, messages and packets.

A *node* is a process and its id is a name. A *view* is a membership that some nodes installed. A
*message* is what an application submits; a *packet* is what an engine orders and may hold many
messages of one sender.
"""

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from roundelay.core.value import value

NodeId: TypeAlias = str
"""A node's name. Names are ordered by code point; the smallest of a view is its representative."""

NODE_NAME_BYTES_MAX = 64
"""Longest node or group name, in UTF-8 bytes: it travels in every frame."""


class Service(IntEnum):
    """What the sender asked for. Each one implies those before it."""

    FIFO = 0
    CAUSAL = 1
    AGREED = 2
    SAFE = 3


class ViewId(NamedTuple):
    """Names one view for ever. Compare it whole: two sides of a partition may reach one `seq`."""

    seq: int
    rep: NodeId

    def __str__(self) -> str:
        return f"{self.seq}.{self.rep}"


@value
class View:
    """A membership and its place in a node's history."""

    id: ViewId
    members: tuple[NodeId, ...]
    """In code point order; a member's index here is its number on the wire of this view."""
    transitional: bool = False
    primary: bool = False
    previous: ViewId | None = None
    voters: tuple[NodeId, ...] = ()
    """Of a primary view: the nodes whose majorities decide; empty for any other view."""

    def __str__(self) -> str:
        kind = "T" if self.transitional else "R"
        return f"{kind}{self.id}{{{','.join(self.members)}}}"


def life_mark(incarnation: int) -> str:
    """How a name shows which life of its node is meant: nothing for the life numbered 0, `'2` for a
    small number, and `'7k2q` for the random part of a real node's."""
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

    With `count` 0 it is a part of message `first` that does not complete it.
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
"""An order key within one view, compared lexicographically; what the two numbers are is the
engine's affair (a sequence number and an index, a timestamp and a sender ...)."""


@value
class Terms:
    """How a node was set up, in words, for its peers: the core only compares them."""

    settings: str = ""
    """What must be the same at every node of a group."""
    peers: str = ""
    """Whom it knows. Lists may differ while a group grows: that is reported, and no more."""


@value
class Packet:
    """The unit of ordering. An engine moves it about and never looks inside `body`.

    A packet with `span.count` 0 carries part of a large message and completes none: it is ordered
    and acknowledged like any other, and no message row of the trace is written for it.
    """

    span: Span
    service: Service
    body: bytes
    destinations: tuple[NodeId, ...] | None = None
    """Who is to deliver it; None means every member of the view."""

    def __str__(self) -> str:
        """For people: whose it is, and what is special about it."""
        safe = " safe" if self.service is Service.SAFE else ""
        to = "" if self.destinations is None else f" to {','.join(self.destinations)}"
        return f"{self.span}{safe}{to}"
