"""The events of an application: messages, one by one or in batches, and views."""

import copy
from collections.abc import Iterator
from itertools import count, repeat
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from roundelay.core.effects import Deliver
from roundelay.core.ids import NodeId, Service, View, ViewId


class Position(NamedTuple):
    """The place of a message: the view it was delivered in, and its index there.

    No two messages ever share a position. Members that move together to the next view deliver a
    message at the same position. If the group is partitioned, one side may deliver it at the end of
    the old view and another in a transitional view: then it has two positions.
    """

    view: ViewId
    """Regular or transitional."""
    index: int  # type: ignore[assignment]  # A field; tuple.index has no use here.
    """Counts the messages of the view from 0."""

    def __str__(self) -> str:
        return f"{self.view}:{self.index}"


class _Fields(NamedTuple):
    payload: bytes
    batch: "Batch"
    offset: int


class Message(tuple[bytes, "Batch", int]):
    """One message, delivered at its place in the group's order: a value that never changes.

    It is a tuple, because Python makes no other immutable object as fast, and messages come by the
    million; but use its names. Two messages are equal if all that they say is equal; they need not
    be of the same batch.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def payload(self) -> bytes:
            """What was sent."""

        @property
        def batch(self) -> "Batch":
            """The messages that it travelled with."""

        @property
        def offset(self) -> int:
            """Its place in the batch."""

    else:  # Twice as fast as properties. To make a named tuple would be slower than a tuple.
        payload, batch, offset = _Fields.payload, _Fields.batch, _Fields.offset

    @property
    def sender(self) -> NodeId:
        """The node that sent it."""
        return self.batch.sender

    @property
    def incarnation(self) -> int:
        """Which life of the sender."""
        return self.batch.incarnation

    @property
    def number(self) -> int:
        """Its sender's messages counted from 0, per start of the sender."""
        return self.batch.number + self.offset

    @property
    def position(self) -> Position:
        """Where in the order it is; no other message is there."""
        first = self.batch.position
        return Position(first.view, first.index + self.offset)

    @property
    def view(self) -> View:
        """The view it was delivered in, which may be the transitional one after that of its
        position."""
        return self.batch.view

    @property
    def safe(self) -> bool:
        """Whether it was sent as safe: then every member of `view` delivers it, or fails."""
        return self.batch.safe

    @property
    def to(self) -> tuple[NodeId, ...] | None:
        """The peers that it is for; None if it is for all."""
        return self.batch.to

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return self._value() == other._value()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.position, self.sender, self.number))

    def __lt__(self, other: object) -> bool:
        """Refused: compare positions, which tell the order within a view."""
        return NotImplemented

    __le__ = __gt__ = __ge__ = __lt__

    def _value(self) -> tuple[object, ...]:
        who = (self.sender, self.incarnation, self.number)
        where = (self.position, self.view.id, self.view.transitional)
        return (where, who, self.safe, self.to, self.payload)

    def __repr__(self) -> str:
        return f"<Message {self.position} from {self.sender}: {self.payload[:40]!r}>"


class Batch:
    """The messages of one sender that travelled together, in order; never none."""

    __slots__ = (
        "_index",
        "incarnation",
        "number",
        "payloads",
        "safe",
        "sender",
        "size",
        "to",
        "view",
    )

    def __init__(self, deliver: Deliver, view: View) -> None:
        # The packet itself is not kept: its body has a copy of every payload.
        packet = deliver.packet
        self.view = view
        """The view they were delivered in."""
        self.payloads: tuple[bytes, ...] = deliver.payloads
        """What was sent, in this order."""
        single = len(self.payloads) == 1
        self.size = len(self.payloads[0]) if single else len(packet.body)
        """Bytes of the messages, about."""
        self.sender: NodeId
        """The node that sent them."""
        self.incarnation: int
        """Which life of the sender."""
        self.number: int
        """The sender's number of the first message."""
        self.sender, self.incarnation, self.number, _ = packet.span
        self.safe = packet.service is Service.SAFE
        """Whether they were sent with `safe=True`."""
        self.to = packet.destinations
        """The peers that they are for; None if they are for all."""
        self._index = deliver.index

    @property
    def position(self) -> Position:
        """Of the first message."""
        assert self._index is not None, "delivered, but at no place"
        return Position(self.view.id, self._index)

    def after(self, count: int) -> "Batch":
        """The batch without its first `count` messages, which were read already."""
        if not count:
            return self
        rest = copy.copy(self)
        rest.payloads = self.payloads[count:]
        rest.size = sum(map(len, rest.payloads))
        rest.number = self.number + count
        rest._index = self.position.index + count
        return rest

    def __len__(self) -> int:
        return len(self.payloads)

    def __iter__(self) -> Iterator[Message]:
        return messages(self, 0, len(self.payloads))

    def __repr__(self) -> str:
        return f"<Batch of {len(self)} from {self.sender} at {self.position}>"


def messages(batch: Batch, start: int, end: int) -> Iterator[Message]:
    """The messages of a batch from `start` to `end`, each made when it is asked for. This is the
    fastest way to make them that we know."""
    payloads = batch.payloads[start:end]
    return map(Message, zip(payloads, repeat(batch), count(start), strict=False))


Event: TypeAlias = Message | View
"""What `async for event in group` gives."""

Arrival: TypeAlias = Batch | View
"""What `group.batches()` gives."""

Payload: TypeAlias = bytes | bytearray | memoryview
"""Types of messages that can be sent; all but `bytes` are copied."""
