"""Totem single-ring ordering.

Follows [Totem95]; section numbers in comments refer to it. The ring itself, with its token, its
requests and its flow control, is `membership.ring`: recovery uses one too. Here is what makes it
an engine: when packets are delivered, when the token rests, and how a view ends.

    paper                    here                       meaning
    my_high_delivered        self.delivered             last sequence number delivered
    safe                     packet.service is SAFE     delivered once everybody has it
    token loss timeout       "token_loss"               the view is over
    token retransmission     "token_retransmit"         our last token is sent again
    accelerated window       config.accelerated         packets that follow the token

Deviations: an idle ring rests instead of spinning, with the node that will probably send next (see
`membership.next_sender`); a packet from the next one who sends shows that the token is not lost,
just as the token itself does; a ring of one has no token on the wire; at a view change what was
safe at one member alone counts for nothing, only what some member had delivered does.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from roundelay.core.contract import Conclusion, Item, Origin, Outlet
from roundelay.core.description import Capacity, Description, Promises, Properties
from roundelay.core.effects import (
    CancelTimer,
    Deliver,
    Effect,
    Kind,
    Record,
    Refuse,
    Send,
    SetTimer,
    Suspect,
)
from roundelay.core.ids import NodeId, Packet, Service, View
from roundelay.core.value import value
from roundelay.membership.next_sender import NextSender
from roundelay.membership.ring import Ring, RingConfig, Token
from roundelay.wire.packet import decode_packet, encode_packet
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer

_SEQ = struct.Struct(">Q")
_SAFE = Service.SAFE

LOSS = "token_loss"
RETRANSMIT = "token_retransmit"
HOLD = "token_hold"

HOLD_SHARE = 0.7
"""For how long the token of an idle ring rests on a real node, as a share of the time after which a
token is sent again. Smaller: processes wake up more often for nothing. Near 1: the token is sent
again although it rests."""

ACCELERATED = 1000
"""Packets that follow the token on a real node: all of a visit, whatever its length. Fewer: the
successor waits for packets that it need not wait for. It depends on nothing that nodes may have
differently, since they must have it alike."""
PATIENCE_MAX = 3
"""The most times the usual time after which the token is sent again. Smaller: the copies of a slow
ring make it slower; larger: a token that is lost again and again makes an end of the view."""

BUFFER_BYTES = 32 * 1024 * 1024
"""Bytes of packets that a real node keeps for the slowest member of the ring. Smaller: the ring
waits for that member sooner. Larger: memory."""


@value
class Config:
    """Timers for a LAN; counts as in `RingConfig`."""

    token_loss_s: float = 0.100
    """Without a token for so long, the view is over. Too short: a loaded node is expelled."""
    token_retransmit_s: float = 0.015
    """Until a token whose passing on nothing shows is sent again; four fit into the loss."""
    token_hold_s: float = 0.008
    """How long the token of an idle ring rests; shorter than the retransmission."""
    idle_rotations: int = 3
    """Visits without anything to do before the token rests."""
    window_packets: int = 80
    visit_packets: int = 20
    requests_max: int = 30
    buffer_packets: int = 4096
    fail_to_receive_visits: int = 250
    accelerated: int = 0
    """`accelerated_packets` of the ring."""

    def __post_init__(self) -> None:
        if self.accelerated < 0:
            raise ValueError(
                f"accelerated={self.accelerated}; it is a number of packets, or 0 for the ring of "
                f"the paper"
            )

    def ring(self, size: int) -> RingConfig:
        """Of a ring of so many; with nobody else in it a token tells nobody of anything."""
        return RingConfig(
            self.window_packets,
            self.visit_packets,
            self.requests_max,
            self.buffer_packets,
            self.fail_to_receive_visits,
            self.accelerated if size > 1 else 0,
        )


@value
class TokenPass:
    """The token, to the successor."""

    token: Token

    def __str__(self) -> str:
        return str(self.token)


@value
class Data:
    """A packet at its place, from its sender or from whoever was asked for it."""

    seq: int
    packet: Packet

    def __str__(self) -> str:
        return f"{self.seq}: {self.packet}"


@value
class HoldCancel:
    """To the node where the token rests: somebody has something to say."""


Message: TypeAlias = TokenPass | Data | HoldCancel


class TotemCodec:
    """Totem's messages to bytes and back."""

    tags: Mapping[int, str] = {1: "TOKEN", 2: "DATA", 3: "HOLDCANCEL"}

    def encode(self, message: Message) -> tuple[int, bytes]:
        if type(message) is Data:
            return 2, encode_packet(message.packet, _SEQ.pack(message.seq))
        if type(message) is TokenPass:
            return 1, message.token.encode()
        return 3, b""

    def decode(self, tag: int, data: bytes, start: int) -> Message:
        if tag == 2:
            packet = decode_packet(data, start + _SEQ.size)
            (seq,) = _SEQ.unpack_from(data, start)
            if seq > I64_MAX:
                raise WireError(Reason.MALFORMED, f"packet {seq} of a view")
            return Data(seq, packet)
        if tag == 1:
            return TokenPass(Token.decode(data, start))
        if tag != 3 or len(data) != start:
            raise WireError(Reason.MALFORMED, f"tag {tag}, {len(data) - start} bytes")
        return HoldCancel()


class TotemEngine:
    """One member of the ring."""

    codec = TotemCodec()
    selective = False

    def __init__(self, node: NodeId, outlet: Outlet, config: Config | None = None) -> None:
        self.node = node
        self.config = config or Config()
        self._outlet = outlet
        self._out: list[Effect[Message]] = []
        # Effects that every visit repeats.
        self._arm_loss = SetTimer(LOSS, self.config.token_loss_s)
        retransmit_s = self.config.token_retransmit_s
        self._arm_retransmit = tuple(
            SetTimer(RETRANSMIT, retransmit_s * k) for k in range(1, PATIENCE_MAX + 1)
        )

    def start(self, view: View) -> list[Effect[Message]]:
        self.view = view
        size = len(view.members)
        self.ring: Ring[Packet] = Ring(view.members.index(self.node), size, self.config.ring(size))
        self.delivered = 0
        self.frozen = False
        self.stopped = False
        """This node has taken the token out of the ring: no copy of it may be used again."""
        self.held: Token | None = None
        """The token while it rests here, not yet used."""
        self.next = NextSender(view.members[0])
        """The token rests with whom it names once everybody has everything."""
        self._patience = 0
        """How much later than usual the token is sent again: one more after each rotation in which
        it was, and one less after each in which it was not. On a slow ring it is only late."""
        self._sent_again = False
        """Whether it was since it was here."""
        self._has_token: NodeId | None = None
        """Who sent the newest packet since the token was here."""
        self.idle = 0
        """Visits in a row without anything to do."""
        self.claimed = 0
        """Up to here this node has claimed that all have everything."""
        self._cancelled = False
        self._went_on = False
        """A packet proved that the token was used after this node passed it on."""
        self._traced = self._outlet.traced
        self._others = frozenset(view.members) - {self.node}
        self._successor = view.members[self.ring.successor]
        self._acquire = Record(Kind.TOKEN, view=view.id, tag="acquire")
        self._release_row = Record(Kind.TOKEN, view=view.id, tag="release")
        if self.ring.size == 1:
            self._visit_alone()
        else:
            self._out.append(self._arm_loss)
            if self.ring.me == 0:
                self._visit(Token(0))
        return self._drain()

    def submit(self) -> list[Effect[Message]]:
        if self.ring.size == 1:
            self._visit_alone()
        elif self.held is not None:
            self._release()
        elif self.idle >= self.config.idle_rotations and not self._cancelled:
            self._cancelled = True  # Once is enough until the token has been here.
            if (holder := self.next.guess) != self.node:
                self._out.append(Send(HoldCancel(), self.view.id, holder))
        return self._drain()

    def receive(self, origin: Origin, message: Message) -> list[Effect[Message]]:
        if type(message) is Data:  # By type, not by `match`: every packet comes this way.
            self._store(message.seq, message.packet)
            self._catch_up()
        else:
            self._answer(message)
        return self._drain()

    def receive_many(self, origin: Origin, messages: Sequence[Message]) -> list[Effect[Message]]:
        """As `receive` for each in turn; but packets that left behind their token and are here
        with it come first."""
        if self.config.accelerated:
            messages = _packets_first(messages)
        for message in messages:
            if type(message) is Data:
                self._store(message.seq, message.packet)
            else:
                self._catch_up()
                self._answer(message)
        self._catch_up()
        return self._drain()

    def expire(self, timer: str) -> list[Effect[Message]]:
        match timer:
            case "token_loss":
                self._out.append(Suspect((), "the token is lost"))
            case "token_retransmit":
                if self.ring.last is not None and self.held is None:
                    self._sent_again = True
                    self._send_token(self.ring.last)
            case "token_hold":
                if self.held is not None:
                    self._release()
            case _:
                raise AssertionError(f"unknown timer {timer}")
        return self._drain()

    # Packets and the token

    def _store(self, seq: int, packet: Packet) -> None:
        """Keep a packet that arrived, unless it cannot be true."""
        ring, sender = self.ring, packet.span.node
        if sender not in self._others or packet.destinations is not None:
            self._check_own(seq, packet)
            return
        if seq > ring.high_seq:
            if self.held is not None:  # While the token rests here nobody has a new number.
                self._out.append(Refuse("a packet with a number that nobody can have given out"))
                return
            if sender != self._has_token:
                self._has_token = sender
                if not self.frozen:
                    self._out.append(self._arm_loss)
        if self._traced:
            self._out.append(Record(Kind.RECEIVE, packet, self.view.id))
        if not ring.store(seq, packet) or self.frozen:
            return
        if not self._went_on and ring.last is not None and seq > ring.last.seq:
            self._went_on = True
            if self.held is None:
                # The token reached the successor: wait for its way round the rest of the ring.
                self._out.append(self._arm_retransmit[self._patience])

    def _check_own(self, seq: int, packet: Packet) -> None:
        """A packet arrived that no other member can have sent: a copy of an own one, which was
        stored when it was sent, or a forged one."""
        if self._held_own(seq, packet):
            if self._traced:
                self._out.append(Record(Kind.RECEIVE, packet, self.view.id))
        else:
            self._out.append(Refuse("a packet that no member can have sent"))

    def _held_own(self, seq: int, packet: Packet) -> bool:
        """Whether it is a copy of a packet that this node sent."""
        own = packet.span.node == self.node and packet.destinations is None
        return own and (0 < seq <= self.ring.discarded or self.ring.have.get(seq) == packet)

    def _catch_up(self) -> None:
        """Deliver what arrivals have made complete."""
        if self.ring.aru > self.delivered and not self.frozen:
            self._deliver()

    def _answer(self, message: Message) -> None:
        """Anything but a packet."""
        if type(message) is TokenPass:
            self._on_token(message.token)
        elif self.held is not None and not self.frozen:
            self._release()

    def _on_token(self, token: Token) -> None:
        over = self.frozen or self.stopped
        if over or self.held is not None:
            return
        if not self.ring.accepts(token):
            if token.token_seq > self.ring.token_seq:  # Else it was here already.
                self._out.append(Refuse("a token that cannot be the ring's"))
            return
        self._out += (self._arm_loss, self._acquire)
        self._has_token = None
        if self._sent_again:
            self._sent_again = False
            self._patience = min(self._patience + 1, PATIENCE_MAX - 1)
        elif self._patience:
            self._patience -= 1
        self._cancelled = False
        ring, seq = self.ring, token.seq
        quiet = (
            token.aru == seq == ring.high_seq == ring.aru
            and not token.requests
            and not token.backlog
            and not self._outlet.waiting
            and ring.last is not None
            and ring.last.seq == seq
        )
        self.idle = self.idle + 1 if quiet else 0
        if (
            self.idle > self.config.idle_rotations
            and ring.safe_line == seq
            and self.next.guess == self.node
        ):
            self.held = token
            self._out.append(CancelTimer(RETRANSMIT))
            self._out.append(SetTimer(HOLD, self.config.token_hold_s))
        else:
            self._use(token)

    def _release(self) -> None:
        """End the rest: use the token and pass it on."""
        token, self.held = self.held, None
        assert token is not None
        if self._outlet.waiting:
            self.idle = 0
        self._use(token, rested=True)
        self._out.append(CancelTimer(HOLD))  # Others wait for what is sent, so that goes first.

    def _visit(self, token: Token) -> None:
        """A token that did not come over the wire: the first."""
        self._out.append(self._acquire)
        self._use(token)

    def _use(self, token: Token, *, rested: bool = False) -> None:
        """§5.1: one visit."""
        waiting, pull = self._outlet.waiting, self._outlet.pull
        visit = self.ring.visit(token, waiting, pull, rested=rested)
        for seq, packet in visit.again:
            self._out.append(Send(Data(seq, packet), self.view.id))
        behind: list[Effect[Message]] = []
        if visit.fresh:
            early = len(visit.fresh) - visit.behind
            self._originate(visit.fresh[:early], self._out)
            self._originate(visit.fresh[early:], behind)
        self._out.append(self._release_row)
        if visit.accused is not None:
            self.stopped = True
            accused = self.view.members[visit.accused]
            self._out += behind
            self._out.append(CancelTimer(RETRANSMIT))
            self._out.append(Suspect((accused,), "it fails to receive"))
            return
        self.ring.forward(visit.token)
        self._send_token(visit.token)
        self._out += behind
        if self.ring.aru > self.delivered:
            self._deliver()
        self._claim_stable()

    def _originate(self, fresh: Sequence[tuple[int, Packet]], sends: list[Effect[Message]]) -> None:
        """Record new packets, and add to `sends` what sends them."""
        emit, view, traced, alone = (
            self._out.append,
            self.view.id,
            self._traced,
            self.ring.size == 1,
        )
        for seq, packet in fresh:
            if traced:
                emit(Record(Kind.ORIGINATE, packet, view))
                emit(Record(Kind.ORDER, packet.span, view, (seq, 0), level=1))
            if not alone:
                sends.append(Send(Data(seq, packet), view))

    def _send_token(self, token: Token) -> None:
        self._went_on = False
        self._out.append(Send(TokenPass(token), self.view.id, self._successor))
        self._out.append(self._arm_retransmit[self._patience])

    def _visit_alone(self) -> None:
        """A ring of one: each packet is ordered, safe and delivered as it comes."""
        token = self.ring.last or Token(0)
        while self._outlet.waiting:
            visit = self.ring.visit(token, self._outlet.waiting, self._outlet.pull)
            self._originate(visit.fresh, self._out)
            token = visit.token
            for _ in range(2):  # Two rotations at once.
                self.ring.forward(token)
            self._deliver()
            self._claim_stable()

    def _deliver(self) -> None:
        """§5.2: in order, without gaps; a safe packet waits, and so does what is behind it."""
        ring, emit, view = self.ring, self._out.append, self.view.id
        for seq in range(self.delivered + 1, ring.aru + 1):
            packet = ring.have[seq]
            if packet.service is _SAFE and seq > ring.safe_line:
                return
            self.delivered = seq
            emit(Deliver(packet, view, (seq, 0)))
            if packet.span.node != self.next.repeated:
                self.next.note(packet.span.node)

    def _claim_stable(self) -> None:
        """Claim what everybody has, and forget it."""
        line = min(self.ring.safe_line, self.delivered)
        if line == self.claimed:
            return
        if self._traced:
            for seq in range(self.claimed + 1, line + 1):
                span = self.ring.have[seq].span
                self._out.append(Record(Kind.STABLE, span, self.view.id, level=1))
        self.claimed = line
        self.ring.discard(line)

    # The end of a view

    def freeze(self) -> bytes:
        self.frozen = True
        w = Writer()
        w.u64(self.ring.aru)
        w.u64(self.delivered)
        return w.done()

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        lowest = min(_summary(summary)[0] for summary in summaries.values())
        return [
            Item((seq,), encode_packet(self.ring.have[seq]))
            for seq in sorted(self.ring.have)
            if seq > lowest
        ]

    def absorb(self, item: Item) -> list[Record]:
        packet = decode_packet(item.body, 0)
        if len(item.key) != 1 or not 0 < item.key[0] <= self.ring.limit:
            raise WireError(Reason.IMPLAUSIBLE, "not an item of this ring")
        (seq,) = item.key
        member = packet.span.node in self._others and packet.destinations is None
        if not member and not self._held_own(seq, packet):
            raise WireError(Reason.IMPLAUSIBLE, "a packet that no member can have sent")
        self.ring.store(seq, packet)
        return [Record(Kind.RECEIVE, packet, self.view.id)]

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        """§7: first what the old view allows, then, up to the first gap, all, and behind it what
        members sent that are bound to have it."""
        high_delivered = max(_summary(summary)[1] for summary in summaries.values())
        regular: list[Deliver] = []
        while (packet := self.ring.have.get(self.delivered + 1)) is not None:
            if packet.service is _SAFE and self.delivered + 1 > high_delivered:
                break
            self.delivered += 1
            regular.append(Deliver(packet, self.view.id, (self.delivered, 0)))
        late: list[Deliver] = []
        gap = False
        for seq in range(self.delivered + 1, self.ring.high_seq + 1):
            packet = self.ring.have.get(seq)
            gap = gap or packet is None
            if packet is not None and (not gap or packet.span.node in obligations):
                late.append(Deliver(packet, self.view.id, (seq, 0)))
        self.delivered = self.ring.high_seq
        return Conclusion(tuple(regular), tuple(late))

    def _drain(self) -> list[Effect[Message]]:
        out = self._out.copy()
        self._out.clear()
        return out


def _packets_first(messages: Sequence[Message]) -> Sequence[Message]:
    """Frames of the predecessor, those packets first that its token tells of."""
    told = next((m.token.seq for m in messages if type(m) is TokenPass), None)
    if told is None:
        return messages
    packets = [m for m in messages if type(m) is Data and m.seq <= told]
    return [*packets, *(m for m in messages if type(m) is not Data or m.seq > told)]


def _summary(summary: bytes) -> tuple[int, int]:
    """aru and the last number delivered, as `freeze` wrote them."""
    r = Reader(summary)
    aru, delivered = r.u64(), r.u64()
    r.done()
    return aru, delivered


def _tune(capacity: Capacity, timers: Mapping[str, float]) -> Mapping[str, float]:
    """Windows as large as receive buffers allow, memory bounded in bytes, a long rest, and tokens
    that leave before all packets of a visit."""
    window = capacity.window_packets
    kept = min(Config().buffer_packets, BUFFER_BYTES // capacity.datagram_bytes)
    return {
        "token_hold_s": HOLD_SHARE * timers["token_retransmit_s"],
        "visit_packets": capacity.visit_packets,
        "accelerated": ACCELERATED,
        "window_packets": window,
        "buffer_packets": max(2 * window, kept),
    }


DESCRIPTION = Description(
    name="totem",
    summary="A token goes round a ring; whoever has it sends, and gives its packets numbers.",
    engine=TotemEngine,
    config=Config,
    data_tags=("DATA",),
    packets_in=lambda message: type(message) is Data,
    promises=Promises(
        Properties(
            "O2 O2r O3f O3i O4 O5 O6 O9 O10 S1 S3 S4 S5 K1 K2 L1 L4",
            derived="O1 O1r O5p O11 K3",
        ),
        in_views=Properties("O8 S2", assumed="E6"),
    ),
    alarm="token_loss_s",
    shared_options=("accelerated",),
    tune=_tune,
    simulation="roundelay.sim.engines.totem",
)
