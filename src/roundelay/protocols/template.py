"""The template: a complete engine that orders nothing. Copy it to begin a new one.

A packet is broadcast as soon as it is there and delivered when it arrives. Nothing is sent twice,
so a lost frame is a lost message; nothing is held back, so two nodes that hear two senders in
different order deliver in different order. The checker convicts it of both, which is the first
exercise: make it order, then make it reliable.

What is here is what every engine has: its messages and their codec, a configuration with units
and bounds, handlers that append to an outbox, and the four calls of a view change.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

from roundelay.core.contract import Conclusion, Item, Origin, Outlet
from roundelay.core.description import Description, Promises, Properties
from roundelay.core.effects import Deliver, Effect, Kind, Receipt, Record, Refuse, Send
from roundelay.core.ids import NodeId, Packet, View
from roundelay.core.value import value
from roundelay.wire.packet import read_packet, write_packet
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer


@value
class Config:
    """What may be tuned; each field names its unit and what goes wrong at either extreme."""

    memory_packets: int = 1024
    """Packets of each sender remembered, to know copies again and to hand on at a view change.
    Too small: a late copy is delivered twice. Too large: memory."""


@value
class Data:
    """The only message of this engine."""

    number: int
    """Counts the sender's packets in this view. Spans do not identify packets: the pieces of a
    large message share theirs."""
    packet: Packet

    def __str__(self) -> str:
        return str(self.packet)


class TemplateCodec:
    """Data to bytes and back. An engine with several messages matches on the tag."""

    tags: Mapping[int, str] = {1: "DATA"}

    def encode(self, message: Data) -> tuple[int, bytes]:
        w = Writer()
        w.u64(message.number)
        write_packet(w, message.packet)
        return 1, w.done()

    def decode(self, tag: int, data: bytes, start: int) -> Data:
        if tag != 1:
            raise WireError(Reason.MALFORMED, f"tag {tag}")
        r = Reader(data, start)
        message = Data(r.u64(I64_MAX), read_packet(r))
        r.done()
        return message


class TemplateEngine:
    """Delivers whatever arrives, once."""

    codec = TemplateCodec()
    selective = True

    def __init__(self, node: NodeId, outlet: Outlet, config: Config | None = None) -> None:
        self.node = node
        self.config = config or Config()
        self._outlet = outlet
        self._out: list[Effect[Data]] = []

    def start(self, view: View) -> list[Effect[Data]]:
        self.view = view
        self.frozen = False
        self.sent = 0
        self.incarnations = dict.fromkeys(view.members, 0)
        """The latest life of each member that was heard of; earlier ones are over."""
        self.known: dict[NodeId, dict[int, Packet]] = {member: {} for member in view.members}
        """Packets of that life, by number, oldest arrival first."""
        self.undelivered: list[Packet] = []
        """What came once the view was frozen: `conclude` delivers it."""
        return self.submit()  # Packets may have waited for a view.

    def submit(self) -> list[Effect[Data]]:
        while packet := self._outlet.pull():
            self._out.append(Record(Kind.ORIGINATE, packet, self.view.id))
            self.sent += 1
            self._out.append(Send(Data(self.sent, packet), self.view.id))
            self._store(self.sent, packet)
            to = packet.destinations
            if to is not None and self.node not in to and packet.span.count:
                self._out.append(Receipt(packet.span, self.view.id))  # Nobody will ever say more.
        return self._drain()

    def receive(self, origin: Origin, message: Data) -> list[Effect[Data]]:
        match message:
            case Data():
                self._on_data(message)
            case _:
                assert_never(message)
        return self._drain()

    def expire(self, timer: str) -> list[Effect[Data]]:
        raise AssertionError(f"no timer was ever set, and {timer} expired")

    def freeze(self) -> bytes:
        self.frozen = True
        return b""

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        return [
            self._item(number, packet)
            for packets in self.known.values()
            for number, packet in packets.items()
        ]

    def absorb(self, item: Item) -> list[Record]:
        packet = read_packet(Reader(item.body))
        if packet.span.node not in self.view.members or len(item.key) != 3:
            return []
        self._store(item.key[2], packet)
        return [Record(Kind.RECEIVE, packet, self.view.id)]

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        # Sorted, so that members of one transitional view agree at least on what came last.
        late = sorted(self.undelivered, key=lambda packet: packet.span)
        return Conclusion(regular=tuple(Deliver(packet, self.view.id) for packet in late))

    def _on_data(self, m: Data) -> None:
        if m.packet.span.node not in self.view.members:
            self._out.append(Refuse("a packet that no member can have sent"))
            return
        self._out.append(Record(Kind.RECEIVE, m.packet, self.view.id))
        self._store(m.number, m.packet)

    def _store(self, number: int, packet: Packet) -> None:
        """Deliver a packet unless it is a copy, or keep it for `conclude` in a frozen view."""
        span = packet.span
        if span.incarnation < self.incarnations[span.node]:
            return  # Late: its sender has restarted since.
        if span.incarnation > self.incarnations[span.node]:
            self.incarnations[span.node] = span.incarnation
            self.known[span.node] = {}
        packets = self.known[span.node]
        if number in packets:
            return  # A copy.
        packets[number] = packet
        if len(packets) > self.config.memory_packets:
            del packets[next(iter(packets))]  # Oldest first: dicts keep the order of arrival.
        if packet.destinations is not None and self.node not in packet.destinations:
            return
        if self.frozen:
            self.undelivered.append(packet)
        else:
            self._out.append(Deliver(packet, self.view.id))

    def _item(self, number: int, packet: Packet) -> Item:
        w = Writer()
        write_packet(w, packet)
        member = self.view.members.index(packet.span.node)
        return Item((member, packet.span.incarnation, number), w.done())

    def _drain(self) -> list[Effect[Data]]:
        out, self._out = self._out, []
        return out


DESCRIPTION = Description(
    name="template",
    summary="A complete engine that orders nothing: copy it to begin a new one.",
    engine=TemplateEngine,
    config=Config,
    data_tags=("DATA",),
    packets_in=lambda message: 1,
    promises=Promises(Properties("D8 O1 O5 O6 L1", derived="O3f O3i O4 O5p O10")),
    static_only=True,
)
