"""What an application gets: messages, one by one or as batches, and views."""

import copy
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from roundelay.core.effects import Deliver
from roundelay.core.ids import NodeId, Service, View, ViewId


class Position(NamedTuple):
    """The place of a message: the same at every member that delivers it."""

    view: ViewId
    index: int  # type: ignore[assignment]  # A field; tuple.index has no use here.
    """Counts the messages of the view from 0."""

    def __str__(self) -> str:
        return f"{self.view}:{self.index}"


class Message:
    """One message, delivered at its place in the group's order: a value, never changed."""

    # Read-only by properties: a frozen dataclass takes twice as long to make.
    __slots__ = ("_batch", "_offset", "_payload")

    def __init__(self, payload: bytes, batch: "Batch", offset: int) -> None:
        self._payload = payload
        self._batch = batch
        self._offset = offset

    @property
    def payload(self) -> bytes:
        return self._payload

    @property
    def batch(self) -> "Batch":
        """What it travelled with."""
        return self._batch

    @property
    def offset(self) -> int:
        """Its place in the batch."""
        return self._offset

    @property
    def sender(self) -> NodeId:
        return self._batch.sender

    @property
    def incarnation(self) -> int:
        """Which life of the sender."""
        return self._batch.incarnation

    @property
    def number(self) -> int:
        """Its sender's messages counted from 0, per start of the sender."""
        return self._batch.number + self._offset

    @property
    def position(self) -> Position:
        first = self._batch.position
        return Position(first.view, first.index + self._offset)

    @property
    def view(self) -> View:
        """The view it was delivered in, which may be the transitional one after that of its
        position."""
        return self._batch.view

    @property
    def safe(self) -> bool:
        """Whether it was sent as safe: then every member of `view` delivers it, or fails."""
        return self._batch.safe

    def __eq__(self, other: object) -> bool:
        """Equal if nothing tells them apart but the batches they are in."""
        if not isinstance(other, Message):
            return NotImplemented
        return self._value() == other._value()

    def __hash__(self) -> int:
        return hash((self.position, self.sender, self.number))

    def _value(self) -> tuple[object, ...]:
        who = (self.sender, self.incarnation, self.number)
        return (self.position, who, self.safe, self.view, self._payload)

    def __repr__(self) -> str:
        return f"<Message {self.position} from {self.sender}: {self.payload[:40]!r}>"


class Batch:
    """The messages of one sender that travelled together, in order; never none."""

    __slots__ = (
        "_index",
        "_ordered_in",
        "incarnation",
        "number",
        "payloads",
        "safe",
        "sender",
        "size",
        "view",
    )

    def __init__(self, deliver: Deliver, view: View) -> None:
        # The packet itself is not kept: its body has a copy of every payload.
        packet = deliver.packet
        self.view = view
        """The view they were delivered in."""
        self.payloads: tuple[bytes, ...] = deliver.payloads
        single = len(self.payloads) == 1
        self.size = len(self.payloads[0]) if single else len(packet.body)
        """Bytes of the messages, about."""
        self.sender: NodeId
        self.incarnation: int
        """Which life of the sender."""
        self.number: int
        """The sender's number of the first message."""
        self.sender, self.incarnation, self.number, _ = packet.span
        self.safe = packet.service is Service.SAFE
        self._ordered_in = deliver.view
        self._index = deliver.index

    @property
    def position(self) -> Position:
        """Of the first message."""
        view, index = self._ordered_in, self._index
        assert view is not None, "delivered, but ordered in no view"
        assert index is not None, "delivered, but at no place"
        return Position(view, index)

    def after(self, count: int) -> "Batch":
        """The batch without its first messages, for whoever has read those."""
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
        for offset, payload in enumerate(self.payloads):
            yield Message(payload, self, offset)

    def __repr__(self) -> str:
        return f"<Batch of {len(self)} from {self.sender} at {self.position}>"


Event: TypeAlias = Message | View
"""What `async for event in group` gives."""

Arrival: TypeAlias = Batch | View
"""What `group.batches()` gives."""

Payload: TypeAlias = bytes | bytearray | memoryview
"""What can be sent; what is not `bytes` is copied."""
