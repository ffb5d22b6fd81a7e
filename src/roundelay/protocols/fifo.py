"""FIFO: each sender's packets in its order, without gaps; no order between senders.

The smallest engine that loses nothing, and the yardstick for the others: whatever order among
senders costs, it costs on top of this. The work is done by `links`: this is the shell that pulls
packets while there is room and delivers what arrives.

Services: `fifo`, `causal` and `agreed` are all delivered in FIFO order, since this engine has no
other. A `safe` packet waits until every member of the view has it, and what its sender sent
after it waits behind it, at destinations and at all others alike: so that a view ends at the
same place of each sender's packets everywhere.

Destinations: all members receive and acknowledge a packet, and those it is for deliver it. Its
sender, if it is not among them, has its receipt once they are known to have it; of a safe packet,
once all are. A packet for nobody of the view is not sent at all.

The end of a view: everything that members who move on together hold without gaps is delivered, one
sender after the other. In the old view, except that a safe packet which nobody knows to have
reached all of it goes to the transitional view, with what its sender sent after it; none does if
nobody left. Nothing is ever withdrawn: a node holds its own packets.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from roundelay.core.contract import Conclusion, Item, Origin, Outlet
from roundelay.core.description import Capacity, Description, Promises, Properties
from roundelay.core.effects import Deliver, Effect, Kind, Receipt, Record, Refuse
from roundelay.core.ids import NodeId, Packet, Service, View
from roundelay.links.link import Link, LinkConfig
from roundelay.links.messages import Data, LinkCodec, header_bytes
from roundelay.links.messages import Message as LinkMessage
from roundelay.wire.packet import decode_packet, encode_packet
from roundelay.wire.primitives import Reason, WireError

Message: TypeAlias = LinkMessage[Packet]

_SAFE = Service.SAFE
_ORIGINATE, _RECEIVE, _STABLE = (
    Kind.ORIGINATE,
    Kind.RECEIVE,
    Kind.STABLE,
)  # Slow to get at in an Enum.
_NOT_SENT = Refuse("a packet that no member can have sent")
_NOT_SAID = Refuse("what no other member, in this life, can have said")

Config = LinkConfig
"""Nothing of its own to tune."""


class FifoEngine:
    """One member of a group without an order among its senders."""

    codec = LinkCodec(encode_packet, decode_packet)
    selective = True

    def __init__(self, node: NodeId, outlet: Outlet, config: Config | None = None) -> None:
        self.node = node
        self.config = config or Config()
        self._outlet = outlet
        self._out: list[Effect[Message]] = []

    def start(self, view: View) -> list[Effect[Message]]:
        self.view = view
        self._view_id, self._members = view.id, view.members
        self.link = Link(view, self.node, self.codec, self.config)
        self._traced = self._outlet.traced
        self.delivered = [0] * len(view.members)
        """By sender: packets delivered, or passed over where they are not for this node."""
        self._waiting: list[deque[Packet]] = [deque() for _ in view.members]
        """By sender: packets here without gaps and not delivered ..."""
        self._waiting_count = 0
        """... and how many there are of all senders."""
        self._afar: deque[tuple[int, Packet]] = deque()
        """Own packets that are not for this node and whose receipt is due, with their numbers."""
        return self._advance(self.link.allowance(self._outlet.waiting))

    def submit(self) -> list[Effect[Message]]:
        most = self.link.allowance(self._outlet.waiting)
        # Since the last input nothing has changed but what waits.
        return self._advance(most) if most > 0 else []

    def receive(self, origin: Origin, message: Message) -> list[Effect[Message]]:
        self._receive(origin, message)
        return self._advance()

    def receive_many(self, origin: Origin, messages: Sequence[Message]) -> list[Effect[Message]]:
        for message in messages:
            self._receive(origin, message)
        return self._advance()

    def _receive(self, origin: Origin, message: Message) -> None:
        """Give a frame to the link, unless it is refused."""
        if type(message) is not Data:
            if not self.link.receive(origin, message):
                self._out.append(_NOT_SAID)
        elif not self._genuine(message.sender, message.content):
            self._out.append(_NOT_SENT)
        elif not self.link.receive(origin, message):
            self._out.append(_NOT_SAID)
        elif self._traced:
            self._out.append(Record(_RECEIVE, message.content.span, self._view_id))

    def expire(self, timer: str) -> list[Effect[Message]]:
        self.link.expire(timer)
        return self._advance()

    def _genuine(self, sender: int, packet: Packet) -> bool:
        """Whether that member can have sent it: under its own name, and to somebody."""
        members = self._members
        return (
            sender < len(members)
            and members[sender] == packet.span.node
            and (packet.destinations is None or self._for_somebody(packet.destinations))
        )

    def _for_somebody(self, destinations: tuple[NodeId, ...]) -> bool:
        return not set(destinations).isdisjoint(self.view.members)

    def _advance(self, most: int = 0) -> list[Effect[Message]]:
        """Deliver, record what is stable, and send so many of the packets that wait; then more of
        them, if there is more room than before."""
        link, out, view_id = self.link, self._out, self._view_id
        self._out = []
        while not link.frozen:
            if link.out:
                out += link.out
                link.out.clear()
            for sender, number, packet in link.pop_arrived():
                if self._waiting_count or packet.service is _SAFE:
                    self._waiting[sender].append(packet)
                    self._waiting_count += 1
                else:  # The usual case: nothing is before it, and it waits for nobody.
                    self.delivered[sender] = number
                    if packet.destinations is None or self.node in packet.destinations:
                        out.append(Deliver(packet, view_id))
            if self._waiting_count or self._afar:
                out += self._no_longer_waiting()
            if link.ledger.risen:
                stable = link.pop_stable()
                if self._traced:
                    out += [Record(_STABLE, p.span, view_id, level=1) for p in stable]
                most = max(most, link.allowance(self._outlet.waiting))
            if not most:
                break
            most -= 1
            out += self._send()
        return out

    def _no_longer_waiting(self) -> list[Deliver | Receipt]:
        """Packets that may be delivered by now, and receipts that may be given."""
        found: list[Deliver | Receipt] = []
        for sender, waiting in enumerate(self._waiting):
            if waiting:
                found += self._ready(sender, self.link.ledger.stable[sender])
        while self._afar and self._arrived(*self._afar[0]):
            found += self._receipt(self._afar.popleft()[1])
        return found

    def _send(self) -> list[Effect[Message]]:
        """Send the next packet that waits."""
        packet = self._outlet.pull()
        assert packet is not None, "as many as wait can be pulled"
        destinations = packet.destinations
        record = Record(_ORIGINATE, packet, self._view_id)
        if destinations is not None and not self._for_somebody(destinations):
            return [record, *self._receipt(packet)]
        self.link.send(packet)
        if destinations is not None and self.node not in destinations:
            self._afar.append((self.link.ledger.received[self.link.me], packet))
        return [record]

    def _receipt(self, packet: Packet) -> list[Receipt]:
        """Of a packet that is not for this node; none if it completes no message."""
        return [Receipt(packet.span, self.view.id)] if packet.span.count else []

    def _arrived(self, number: int, packet: Packet) -> bool:
        """Whether an own packet is known to be with everybody that waits for it."""
        ledger, me = self.link.ledger, self.link.me
        if packet.service is Service.SAFE or packet.destinations is None:
            return ledger.stable[me] >= number
        members, known = enumerate(self.view.members), ledger.known[me]
        return all(known[m] >= number for m, n in members if n in packet.destinations)

    def _ready(self, sender: int, stable: int) -> list[Deliver]:
        """A sender's packets up to the first safe one above `stable`."""
        ready: list[Deliver] = []
        waiting = self._waiting[sender]
        delivered = self.delivered[sender]
        while waiting:
            packet = waiting[0]
            if packet.service is _SAFE and delivered >= stable:
                break
            waiting.popleft()
            self._waiting_count -= 1
            delivered += 1
            if packet.destinations is None or self.node in packet.destinations:
                ready.append(Deliver(packet, self.view.id))
        self.delivered[sender] = delivered
        return ready

    # The end of a view

    def freeze(self) -> bytes:
        return self.link.freeze()

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        return self.link.seal(summaries)

    def absorb(self, item: Item) -> list[Record]:
        arrival = self.link.unpack(item)
        if not self._genuine(arrival.sender, arrival.content):
            raise WireError(Reason.IMPLAUSIBLE, "a packet that no member can have sent")
        self.link.absorb(arrival)
        return [Record(Kind.RECEIVE, arrival.content.span, self.view.id)]

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        """Obligations change nothing here: a sender that is still there left no gap."""
        for sender, _, packet in self.link.pop_arrived():
            self._waiting[sender].append(packet)
        senders = range(len(self.view.members))
        stable = self.link.agreed_stable(summaries)
        regular = [deliver for s in senders for deliver in self._ready(s, stable[s])]
        received = self.link.ledger.received
        late = [deliver for s in senders for deliver in self._ready(s, received[s])]
        receipts = [receipt for _, packet in self._afar for receipt in self._receipt(packet)]
        return Conclusion(tuple(regular), (*late, *receipts))


def _tune(capacity: Capacity, timers: Mapping[str, float]) -> Mapping[str, float]:
    """Every sender has a window of its own: together they fill the receive buffer."""
    return {"window_packets": max(2, capacity.window_packets // max(1, capacity.nodes - 1))}


DESCRIPTION = Description(
    name="fifo",
    summary="Each sender's messages in its order, without gaps; no order between senders.",
    engine=FifoEngine,
    config=Config,
    data_tags=("DATA",),
    header_bytes=header_bytes,
    packets_in=lambda message: type(message) is Data,
    promises=Promises(
        Properties("O1r S1 S3 S4 L1 L4", derived="D8 O1"),
        in_views=Properties("S2"),
    ),
    alarm="silence_s",
    shared_options=("heartbeat_s",),
    tune=_tune,
    simulation="roundelay.sim.engines.fifo",
)
