"""What an application gets: messages, one by one or as batches, and views."""

from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(slots=True, eq=False)
class Message:
    """One message, delivered at its place in the group's order."""

    payload: bytes
    batch: "Batch"
    offset: int
    """Its place in the batch."""

    @property
    def sender(self) -> NodeId:
        return self.batch.sender

    @property
    def number(self) -> int:
        """Its sender's messages counted from 0, per start of the sender."""
        return self.batch.number + self.offset

    @property
    def position(self) -> Position:
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

    def __repr__(self) -> str:
        return f"<Message {self.position} from {self.sender}: {self.payload[:40]!r}>"


class Batch:
    """The messages of one sender that travelled together, in order; never none."""

    __slots__ = ("_deliver", "number", "payloads", "sender", "size", "view")

    def __init__(self, deliver: Deliver, view: View) -> None:
        packet = deliver.packet
        self._deliver = deliver
        self.view = view
        """The view they were delivered in."""
        self.payloads: tuple[bytes, ...] = deliver.payloads
        self.size = len(packet.body)
        """Bytes that they took on their way, about."""
        self.sender: NodeId
        self.number: int
        """The sender's number of the first message."""
        self.sender, _, self.number, _ = packet.span

    @property
    def incarnation(self) -> int:
        """Which life of the sender: 0 at its first start."""
        return self._deliver.packet.span.incarnation

    @property
    def position(self) -> Position:
        """Of the first message."""
        view, index = self._deliver.view, self._deliver.index
        assert view is not None, "delivered, but ordered in no view"
        assert index is not None, "delivered, but at no place"
        return Position(view, index)

    @property
    def safe(self) -> bool:
        return self._deliver.packet.service is Service.SAFE

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
