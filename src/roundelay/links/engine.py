"""What engines on links share: everything but the order.

A `LinkEngine` pulls packets while there is room, wraps each into a content of its engine, and sends
it through the link of the view. What the link hands up goes to the `Order` of the engine, which
says what may be delivered. The end of a view is the same for all of them: the members that move on
together exchange what one of them lacks, so that their orders have seen the same contents, and each
order delivers what it holds.

Nothing is ever withdrawn: a node holds its own contents, and whoever moves on with it gets them.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from roundelay.core.contract import Conclusion, Item, Origin, Outlet
from roundelay.core.effects import Deliver, Effect, Kind, Record, Refuse, Suspect
from roundelay.core.ids import Key, NodeId, Packet, Service, View
from roundelay.links.ledger import Arrival
from roundelay.links.link import Link, LinkConfig
from roundelay.links.messages import Data, LinkCodec, Message
from roundelay.wire.primitives import Reason, WireError

C = TypeVar("C", bound="Content")
In = TypeVar("In", bound="Content", contravariant=True)

_SAFE = Service.SAFE
_NOT_SENT = Refuse("a packet that no member can have sent")
_NOT_SAID = Refuse("what no other member, in this life, can have said")

LINK_LAYER = "vs"
"""The layer of the trace in which the link's own sends and deliveries are recorded."""


class Content(Protocol):
    """What a link carries for an engine: a packet and what the engine says of it. A content without
    a packet only tells the engine's peers something: a dummy, or a null message."""

    @property
    def packet(self) -> Packet | None: ...


class Ordered(NamedTuple):
    """A packet that has its place in the order."""

    sender: int
    """The place of its sender in the view ..."""
    number: int
    """... and its number among the contents of that sender."""
    packet: Packet
    key: Key | None


class Order(Protocol[In]):
    """The order of one view, as one member sees it. Members are numbered by their place."""

    def sound(self, content: In) -> bool:
        """Whether any member can ever send this content in this view."""
        ...

    def arrive(self, sender: int, number: int, content: In) -> bool:
        """Take in the next content of a sender, own ones too. False, and nothing has changed, if
        that member cannot have sent it behind all that arrived of it."""
        ...

    def ready(self, stable: Sequence[int]) -> list[Ordered]:
        """What may be delivered now, in order, each once. `stable` says, by sender, up to which
        number every member has its contents: a safe packet waits for that."""
        ...

    def close(self) -> None:
        """Nothing more arrives: what was waited for is waited for no longer."""
        ...


class HoldBack:
    """Packets in their one order, of which a safe one holds back all behind it until every member
    has it."""

    def __init__(self) -> None:
        self.waiting: list[Ordered] = []

    def ready(self, stable: Sequence[int]) -> list[Ordered]:
        """Packets up to the first safe one that some member may lack."""
        waiting = self.waiting
        if not waiting:
            return waiting
        for i, (sender, number, packet, _) in enumerate(waiting):
            if packet.service is _SAFE and number > stable[sender]:
                self.waiting = waiting[i:]
                return waiting[:i]
        self.waiting = []
        return waiting


class LinkEngine(Generic[C]):
    """One member of a group whose order is `Order`. Engines fill in the methods below."""

    codec: LinkCodec[C]
    selective = False

    def __init__(self, node: NodeId, outlet: Outlet, config: LinkConfig) -> None:
        self.node = node
        self._link_config = config
        self._outlet = outlet
        self._out: list[Effect[Message[C]]] = []

    # For engines to fill in

    def _new_order(self, view: View) -> Order[C]:
        """The order of a new view, and whatever else begins with it."""
        raise NotImplementedError

    def _wrap(self, packet: Packet) -> C:
        """The content that carries an own packet; it is sent at once."""
        raise NotImplementedError

    def _handed_up(self, sender: int, content: C) -> None:
        """The link handed up a content, which the order has taken in."""

    def _tend(self) -> None:
        """The end of every input while the view lasts: send what only the engine knows of."""

    def _on_timer(self, timer: str) -> None:
        raise AssertionError(f"unknown timer {timer}")

    # Inputs

    def start(self, view: View) -> list[Effect[Message[C]]]:
        self.view = view
        self.me = view.members.index(self.node)
        self.link: Link[C] = Link(view, self.node, self.codec, self._link_config)
        self.own_waiting = 0
        """Own packets that were sent and are not delivered here. What waits for its place in the
        order is acknowledged, so the window of the link does not bound it: this does."""
        self._traced = self._outlet.traced
        self._forged = False
        """Something arrived that no member can have sent."""
        self.order = self._new_order(view)
        return self._advance(pull=True)

    def submit(self) -> list[Effect[Message[C]]]:
        if self.link.allowance(self._outlet.waiting, self.own_waiting) > 0:
            return self._advance(pull=True)
        return []  # Since the last input nothing has changed but what waits.

    def receive(self, origin: Origin, message: Message[C]) -> list[Effect[Message[C]]]:
        return self._advance() if self._receive(origin, message) else self._pop_out()

    def receive_many(
        self, origin: Origin, messages: Sequence[Message[C]]
    ) -> list[Effect[Message[C]]]:
        for message in messages:
            self._receive(origin, message)
        return self._advance()

    def expire(self, timer: str) -> list[Effect[Message[C]]]:
        if timer in self.link.TIMERS:
            self.link.expire(timer)
        else:
            self._on_timer(timer)
        return self._advance()

    def _receive(self, origin: Origin, message: Message[C]) -> bool:
        """Give a frame to the link; False if it is refused."""
        packet: Packet | None = None
        if type(message) is Data:
            packet = message.content.packet
            if not self._genuine(message.sender, message.content):
                self._out.append(_NOT_SENT)
                return False
        if not self.link.receive(origin, message):
            self._out.append(_NOT_SAID)
            return False
        if packet is not None and self._traced:
            self._out.append(Record(Kind.RECEIVE, packet, self.view.id))
        return True

    def _genuine(self, sender: int, content: C) -> bool:
        """Whether that member can have sent it: a packet under its own name, for everybody."""
        packet = content.packet
        if packet is not None and (
            sender >= len(self.view.members)
            or self.view.members[sender] != packet.span.node
            or packet.destinations is not None
        ):
            return False
        return self.order.sound(content)

    # Sending and delivering

    def _advance(self, *, pull: bool = False) -> list[Effect[Message[C]]]:
        """Deliver and send, until nothing more can be done now. Without `pull`, nothing is sent
        unless there is more room than before: what waits was looked at then."""
        if not self.link.frozen:
            if self._pump() or pull:
                while self._send_packets(
                    self.link.allowance(self._outlet.waiting, self.own_waiting)
                ):
                    self._pump()
            self._tend()
        return self._pop_out()

    def _pop_out(self) -> list[Effect[Message[C]]]:
        out, self._out = self._out, []
        return out

    def _send_waiting(self) -> None:
        """Send what waits, also a packet that might still be filled: others wait for a word."""
        room = min(self.link.room, self._link_config.window_packets - self.own_waiting)
        if self._send_packets(room):
            self._pump()

    def _send_packets(self, most: int) -> bool:
        """Send so many of the packets that wait; whether there was any."""
        sent = 0
        while sent < most and (packet := self._outlet.pull()) is not None:
            sent += 1
            self.own_waiting += 1
            self._out.append(Record(Kind.ORIGINATE, packet, self.view.id))
            if self._traced:
                self._out.append(Record(Kind.ORIGINATE, packet, self.view.id, layer=LINK_LAYER))
            self.link.send(self._wrap(packet))
        return sent > 0

    def _pump(self) -> bool:
        """Do what the link asks for, and deliver what may be delivered; whether there may be more
        room for own packets now."""
        link, out = self.link, self._out
        arrived = link.pop_arrived()
        if arrived:
            self._hand_up(arrived)
        if link.out:
            out += link.out
            link.out.clear()
        risen, own_waiting = link.ledger.risen, self.own_waiting
        if arrived or risen:  # Else no packet can have become ready.
            for ordered in self.order.ready(link.ledger.stable):
                out.append(self._deliver(ordered))
        if risen:
            for content in link.pop_stable():
                packet = content.packet
                if self._traced and packet is not None:
                    out.append(Record(Kind.STABLE, packet.span, self.view.id, level=1))
        return risen or self.own_waiting < own_waiting

    def _hand_up(self, arrived: list[Arrival[C]]) -> None:
        arrive, handed_up = self.order.arrive, self._handed_up
        for sender, number, content in arrived:
            if not arrive(sender, number, content):
                # A forged frame took the place of a real one. The next view starts afresh.
                if not self._forged:
                    self._forged = True
                    reason = f"what {self.view.members[sender]} sends does not fit together"
                    self._out.append(Suspect((), reason))
                continue
            packet = content.packet
            if self._traced and packet is not None:
                self._out.append(Record(Kind.DELIVER, packet, self.view.id, layer=LINK_LAYER))
            handed_up(sender, content)

    def _deliver(self, ordered: Ordered) -> Deliver:
        if ordered.sender == self.me:
            self.own_waiting -= 1
        return Deliver(ordered.packet, self.view.id, ordered.key)

    # The end of a view

    def freeze(self) -> bytes:
        return self.link.freeze()

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        return self.link.seal(summaries)

    def absorb(self, item: Item) -> list[Record]:
        arrival = self.link.unpack(item)
        packet = arrival.content.packet
        if not self._genuine(arrival.sender, arrival.content):
            raise WireError(Reason.IMPLAUSIBLE, "a packet that no member can have sent")
        self.link.absorb(arrival)
        return [] if packet is None else [Record(Kind.RECEIVE, packet, self.view.id)]

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        """Obligations change nothing here: a sender that is still there left no gap."""
        link = self.link
        self._hand_up(link.pop_arrived())
        self.order.close()
        regular = [self._deliver(o) for o in self.order.ready(link.agreed_stable(summaries))]
        late = [self._deliver(o) for o in self.order.ready(link.ledger.received)]
        records = tuple(effect for effect in self._out if isinstance(effect, Record))
        self._out = []
        return Conclusion(tuple(regular), tuple(late), records=records)
