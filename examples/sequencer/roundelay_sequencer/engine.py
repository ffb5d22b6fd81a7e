"""A fixed sequencer: every member multicasts its packets, and the smallest member orders them.

Packets and orders travel on a link (`roundelay.links`), which is reliable, keeps what each member
sent in its order, and suspects members that are silent or deaf. So all that is left to do here is
to number packets, to deliver them by their numbers, and to end a view.

The smallest member of a view is its sequencer. Whenever it has packets without a number, its own
among them, it multicasts an Order, which gives them the next numbers 1, 2, 3 ... of the view. A
packet is delivered when it and its number are here and everything before it was delivered.

Services: `fifo`, `causal` and `agreed` packets are treated alike. A `safe` packet waits until all
members have it, its number, and everything before it; what is ordered after it waits behind it.

The end of a view: members that move on together exchange what one of them lacks, and then hold the
same packets and the same numbers.

- They deliver by number as far as they hold everything: in the old view, except that a safe packet
  of which nobody knows that all members have it goes to the transitional view, with what is behind.
- Behind a gap, which only packets of members that are gone can leave, they deliver in the
  transitional view what was sent by members that told all they have: their packets depend on none
  of those that are missing.
- Packets of such members that have no number here are delivered last, without one. They may have a
  number: the sequencer, if it is not here, may have given it out and delivered them. And whoever
  ended this view in an earlier attempt has delivered them like this. So nothing is ever withdrawn.

Hence two sides of a partition may deliver one message at different places.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from roundelay.core.contract import Conclusion, Item, Origin, Outlet
from roundelay.core.description import Capacity, Description, OneOrder, Promises, Properties
from roundelay.core.effects import Deliver, Effect, Kind, Record, Refuse, SetTimer, Suspect
from roundelay.core.ids import NodeId, Packet, Service, Span, View
from roundelay.core.value import value
from roundelay.links.link import Link, LinkConfig
from roundelay.links.messages import Data
from roundelay.wire.primitives import Reason, WireError
from roundelay_sequencer.messages import (
    CODEC,
    ORDER_PACKETS_MAX,
    Content,
    Message,
    Order,
    packets_in,
)

SEQUENCER = 0
"""The place in a view of the member that orders: the smallest comes first."""

PROGRESS = "progress"
"""The timer that checks whether anything is delivered."""


@value
class Config(LinkConfig):
    """As of a link, and how much one Order may say."""

    order_packets: int = 64
    """Most packets that one Order gives a number. Too small: the sequencer's window fills up with
    orders; too large: an Order does not fit into a small datagram."""

    def __post_init__(self) -> None:
        LinkConfig.__post_init__(self)
        if self.window_packets < 2:
            raise ValueError("window_packets is 2 at least: one is kept for an order")
        if not 0 < self.order_packets <= ORDER_PACKETS_MAX:
            raise ValueError(f"order_packets is between 1 and {ORDER_PACKETS_MAX}")


class Arrived(NamedTuple):
    """A packet that is here and was not delivered."""

    on_link: int
    """Its number among all that its sender sent on the link, orders included."""
    packet: Packet


class Place(NamedTuple):
    """A number of the view, and whose next packet it belongs to."""

    number: int
    sender: int
    on_link: int
    """The number on the link of the Order that gave it out."""


class Unconfirmed(NamedTuple):
    """A packet that was delivered, and of which it is not known that all members have it."""

    span: Span
    place: Place
    on_link: int


class SequencerEngine:
    """One member of a group whose smallest member orders."""

    codec = CODEC
    selective = False

    def __init__(self, node: NodeId, outlet: Outlet, config: Config | None = None) -> None:
        self.node = node
        self.config = config or Config()
        self._outlet = outlet
        self._out: list[Effect[Message]] = []

    def start(self, view: View) -> list[Effect[Message]]:
        self.view = view
        self.link: Link[Content] = Link(view, self.node, self.codec, self.config)
        self.me = self.link.me
        self.numbered = 0
        """Numbers of this view that are known here, from 1 on."""
        self.delivered = 0
        """Packets delivered in this view: those with the numbers up to this one."""
        self.unordered = 0
        """Own packets that have no number."""
        self._arrived: list[deque[Arrived]] = [deque() for _ in view.members]
        """By sender, in its order: packets that are here and were not delivered."""
        self._places: deque[Place] = deque()
        """Numbers whose packets were not delivered."""
        self._unconfirmed: deque[Unconfirmed] = deque()
        """In the order of delivery."""
        self._to_order: deque[tuple[int, Packet]] = deque()
        """At the sequencer: packets without a number and their senders, as they arrived."""
        self._delivered_before = 0
        """What `delivered` was when progress was last checked."""
        if len(view.members) > 1:
            self._out.append(SetTimer(PROGRESS, self.config.stall_s))
        return self._advance()

    def submit(self) -> list[Effect[Message]]:
        return self._advance()

    def receive(self, origin: Origin, message: Message) -> list[Effect[Message]]:
        content = message.content if isinstance(message, Data) else None
        if isinstance(message, Data) and not self._genuine(message.sender, message.content):
            return [Refuse("a packet or an order that no member can have sent")]
        if not self.link.receive(origin, message):
            return [Refuse("what no other member, in this life, can have said")]
        if isinstance(content, Packet):
            self._out.append(Record(Kind.RECEIVE, content, self.view.id))
        return self._advance()

    def expire(self, timer: str) -> list[Effect[Message]]:
        if timer == PROGRESS:
            self._check_progress()
        else:
            self.link.expire(timer)
        return self._advance()

    def _genuine(self, sender: int, content: Content) -> bool:
        """Whether that member can have sent it."""
        members = self.view.members
        if isinstance(content, Order):
            known = all(named < len(members) for named in content.senders)
            return sender == SEQUENCER and known
        return members[sender : sender + 1] == (content.span.node,) and content.destinations is None

    def _check_progress(self) -> None:
        """Suspect the view if something waits to be delivered and nothing was for a while."""
        waits = bool(self._places) or any(self._arrived)
        if waits and self.delivered == self._delivered_before:
            self._out.append(Suspect((), "nothing is delivered"))
        self._delivered_before = self.delivered
        self._out.append(SetTimer(PROGRESS, self.config.stall_s))

    def _advance(self) -> list[Effect[Message]]:
        """Do what has become possible: deliver, order, send."""
        if not self.link.frozen:
            self._flush()
            while self._may_send() and (packet := self._outlet.pull()) is not None:
                self._out.append(Record(Kind.ORIGINATE, packet, self.view.id))
                self.unordered += 1
                self.link.send(packet)
                self._flush()
        out, self._out = self._out, []
        return out

    def _may_send(self) -> bool:
        """Whether there is room for an own packet. The sequencer keeps the last place of its window
        for an order; others wait while too much of theirs has no number."""
        kept = 1 if self.me == SEQUENCER else 0
        return self.link.room > kept and self.unordered < self.config.window_packets

    def _flush(self) -> None:
        """Take in what the link brought, order it, and deliver what may be."""
        self._pop_arrived()
        while self._to_order and self.link.room:
            self._order()
            self._pop_arrived()
        self._out += self.link.out
        self.link.out.clear()
        self._confirm()
        while (ready := self._next()) is not None:
            self._deliver(*ready)
            self._confirm()
        self.link.pop_stable()

    def _pop_arrived(self) -> None:
        for sender, on_link, content in self.link.pop_arrived():
            if isinstance(content, Order):
                self._note(content, on_link)
                continue
            self._arrived[sender].append(Arrived(on_link, content))
            if self.me == SEQUENCER:
                self._to_order.append((sender, content))

    def _note(self, order: Order, on_link: int) -> None:
        """An Order arrived, perhaps before the packets that it is about."""
        for sender in order.senders:
            self.numbered += 1
            self._places.append(Place(self.numbered, sender, on_link))
            if sender == self.me:
                self.unordered -= 1

    def _order(self) -> None:
        """At the sequencer: give the packets that wait their numbers."""
        senders: list[int] = []
        while self._to_order and len(senders) < self.config.order_packets:
            sender, packet = self._to_order.popleft()
            senders.append(sender)
            key = (self.numbered + len(senders), 0)
            self._out.append(Record(Kind.ORDER, packet, self.view.id, key, level=1))
        self.link.send(Order(tuple(senders)))

    # Delivering

    def _next(self) -> tuple[Place, Arrived] | None:
        """The packet that is delivered next, if it may be."""
        if not self._places or not self._arrived[self._places[0].sender]:
            return None
        place = self._places[0]
        arrived = self._arrived[place.sender][0]
        if arrived.packet.service is Service.SAFE and (
            self._unconfirmed or not _all_have(place, arrived.on_link, self.link.ledger.stable)
        ):
            return None
        return place, arrived

    def _deliver(self, place: Place, arrived: Arrived) -> None:
        self._places.popleft()
        self._arrived[place.sender].popleft()
        self.delivered = place.number
        self._unconfirmed.append(Unconfirmed(arrived.packet.span, place, arrived.on_link))
        self._out.append(Deliver(arrived.packet, self.view.id, (place.number, 0)))

    def _confirm(self) -> None:
        """Record as stable, in the order of delivery, what all members are known to have."""
        stable, waiting = self.link.ledger.stable, self._unconfirmed
        while waiting and _all_have(waiting[0].place, waiting[0].on_link, stable):
            span = waiting.popleft().span
            self._out.append(Record(Kind.STABLE, span, self.view.id, level=1))

    # The end of a view

    def freeze(self) -> bytes:
        return self.link.freeze()

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        return self.link.seal(summaries)

    def absorb(self, item: Item) -> list[Record]:
        arrival = self.link.unpack(item)
        content = arrival.content
        if not self._genuine(arrival.sender, content):
            raise WireError(Reason.IMPLAUSIBLE, "what no member can have sent")
        self.link.absorb(arrival)
        if isinstance(content, Order):
            return []
        return [Record(Kind.RECEIVE, content, self.view.id)]

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        self._pop_arrived()
        regular = self._safe_to_deliver(self.link.agreed_stable(summaries))
        late = self._up_to_the_end(obligations)
        for sender, name in enumerate(self.view.members):
            if name in obligations:
                late += [Deliver(packet, self.view.id) for _, packet in self._arrived[sender]]
        return Conclusion(tuple(regular), tuple(late))

    def _safe_to_deliver(self, stable: Sequence[int]) -> list[Deliver]:
        """What is delivered in the old view: everything without a gap, up to the first safe packet
        that a member which is not here may lack, or something before it."""
        all_have = all(_all_have(u.place, u.on_link, stable) for u in self._unconfirmed)
        ready: list[Deliver] = []
        while self._places and self._arrived[self._places[0].sender]:
            place = self._places[0]
            on_link, packet = self._arrived[place.sender][0]
            all_have = all_have and _all_have(place, on_link, stable)
            if packet.service is Service.SAFE and not all_have:
                break
            self._places.popleft()
            self._arrived[place.sender].popleft()
            ready.append(Deliver(packet, self.view.id, (place.number, 0)))
        return ready

    def _up_to_the_end(self, obligations: tuple[NodeId, ...]) -> list[Deliver]:
        """What has a number and is delivered in the transitional view: everything up to the first
        gap, and behind it what was sent by `obligations`."""
        late: list[Deliver] = []
        gap = False
        for place in self._places:
            arrived = self._arrived[place.sender]
            gap = gap or not arrived
            if arrived:
                packet = arrived.popleft().packet
                if not gap or packet.span.node in obligations:
                    late.append(Deliver(packet, self.view.id, (place.number, 0)))
        return late


def _all_have(place: Place, on_link: int, stable: Sequence[int]) -> bool:
    """Whether all members have a packet and its number, given what all have of each sender."""
    return on_link <= stable[place.sender] and place.on_link <= stable[SEQUENCER]


def _tune(capacity: Capacity, timers: Mapping[str, float]) -> Mapping[str, float]:
    """Every sender has a window of its own: together they fill the receive buffer."""
    return {"window_packets": max(2, capacity.window_packets // max(1, capacity.nodes - 1))}


DESCRIPTION = Description(
    name="sequencer",
    summary="Every member multicasts its messages, and the smallest member orders them.",
    engine=SequencerEngine,
    config=Config,
    data_tags=("DATA",),
    packets_in=packets_in,
    promises=Promises(
        Properties(
            "O1 O1r O2 O3f O3i O4 O5 O6 O9 O10 S1 S3 S4 S5 K1 K2 K4 L1 L4",
            derived="D8 O2r O5p O11",
        ),
        in_views=Properties("S2"),
        one_order=OneOrder.NEVER,
    ),
    alarm="silence_s",
    shared_options=("heartbeat_s", "order_packets"),
    tune=_tune,
    simulation="roundelay_sequencer.simulation",
)
