"""The engine: what a member does when something is to be sent, arrives, or takes too long.

Everything that decides the order is here; `ledger` keeps the books, `token` the token. After every
input `_advance` does whatever has become possible, always in this order: deliver what may be
delivered, forget what is stable, send, and use the token.

Services. `fifo`, `causal` and `agreed` packets are delivered once F + 1 members are known to hold
them. A `safe` packet is delivered once all are, whatever F is, and what is ordered after it waits
behind it.

In views, and with F at least half of the members, a packet is not delivered either before its
sender is known to hold it. Who holds it knows its number: so nobody can have delivered what its
sender, on another side of a partition, takes back and sends again. See `ending`.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from roundelay.core.contract import Conclusion, Item, Origin, Outlet
from roundelay.core.effects import Deliver, Effect, Kind, Record, Refuse, Send, Suspect
from roundelay.core.ids import NodeId, Service, View
from roundelay.protocols.dtp import ending
from roundelay.protocols.dtp.ledger import Ledger, LiteralLedger
from roundelay.protocols.dtp.messages import NOBODY, Ack, DtpCodec, Message, Msg, Req
from roundelay.protocols.dtp.policy import Config, Policy
from roundelay.protocols.dtp.repetitions import (
    ACK,
    ASKING,
    DISARMING,
    MSG,
    REQ,
    SILENCE,
    WATCH,
    Repetitions,
    arming,
)
from roundelay.protocols.dtp.token import HOLD, TRST, LiteralToken, Token
from roundelay.wire.summaries import by_place

_SAFE = Service.SAFE
_ORIGINATE, _RECEIVE = Kind.ORIGINATE, Kind.RECEIVE
_ORDER, _STABLE = Kind.ORDER, Kind.STABLE

_NO_PACKET = Refuse("a packet that no member can have sent")
_NO_ACK = Refuse("an acknowledgment that no member can have sent")

HOPS_AHEAD_MAX = 2**32
"""Transfers of the token that a member can have missed: more than any group makes in a view."""

Out: TypeAlias = list[Effect[Message]]


class DtpEngine:
    """One member of a group whose token holder orders; which of the three, its policy says."""

    # Slots: so many attributes that `start` sets are slow to get at otherwise.
    __slots__ = (
        "_acquired",
        "_arm",
        "_batch",
        "_id",
        "_index",
        "_level",
        "_listens",
        "_more",
        "_out",
        "_outlet",
        "_released",
        "_repetitions",
        "_rotates",
        "_traced",
        "_window",
        "asking",
        "claimed",
        "config",
        "delivered",
        "frozen",
        "ledger",
        "literal",
        "node",
        "outstanding",
        "policy",
        "resilience",
        "sender_first",
        "silence",
        "silent",
        "size",
        "token",
        "view",
    )
    codec = DtpCodec()
    selective = False

    def __init__(self, node: NodeId, outlet: Outlet, config: Config, *, policy: Policy) -> None:
        self.node = node
        self.config = config
        self.policy = policy
        self.literal = config.rules == "paper"
        self._outlet = outlet
        self._out: Out = []
        self._window = config.window_packets
        self._batch = config.batch_packets
        self._arm = arming(config)
        self._listens = policy.listens

    def start(self, view: View) -> Out:
        size, me = len(view.members), view.members.index(self.node)
        room = self.config.buffer_packets
        self.view = view
        self.frozen = False
        self.size = size
        self.ledger = LiteralLedger(size, me, room) if self.literal else Ledger(size, me, room)
        self.token = LiteralToken(me) if self.literal else Token(me)
        self.delivered = 0
        self.resilience = min(self.config.resilience, size - 1)
        self.sender_first = bool(view.id.seq) and self.resilience >= size // 2 > 0
        """Whether a sender must be known to hold its packet. A static group, which is view 0, has
        no other side to be on."""
        self.outstanding = 0
        """Own packets without a number."""
        self.claimed = 0
        """Up to here this node has said that everything is stable."""
        self.silence = False
        """Whether the silence period of this holding has begun."""
        self.silent = False
        """Whether it is over."""
        self.asking = False
        """Whether something is missing and was asked for."""
        self._repetitions = Repetitions(self.config)
        self._id = view.id
        self._index = {member: i for i, member in enumerate(view.members)}
        self._acquired = Record(Kind.TOKEN, view=view.id, tag="acquire")
        self._released = Record(Kind.TOKEN, view=view.id, tag="release")
        self._more = True
        """Whether packets may wait in the outlet."""
        self._traced = self._outlet.traced
        self._rotates = self.policy.rotates or size == 1
        """Whether the token goes to the next in the ring; who is alone is its own next."""
        self._level = 1 if self.resilience else 2
        """Of claims: 2 as long as a member delivers what it holds at once, so that what all hold
        all have delivered."""
        if self.token.grip is HOLD:
            self._out.append(self._acquired)
        if size > 1:
            self._out.append(self._arm[WATCH])
        self._advance()
        return self._drain()

    def submit(self) -> Out:
        self._more = True
        if self.outstanding >= self._window:
            return []
        self._advance()
        return self._drain()

    def receive(self, origin: Origin, message: Message) -> Out:
        peer = self._index[origin.node]
        if peer == self.ledger.me:
            return []  # What it says itself is no news; of an earlier life, it is over.
        if isinstance(message, Msg):
            if self._forged_msg(message):
                return [_NO_PACKET]
            self._on_msg(peer, message)
        elif isinstance(message, Ack):
            if self._forged_ack(peer, message):
                return [_NO_ACK]
            self._on_ack(peer, message)
        else:
            self._on_req(peer, message)
        if not self.frozen:
            token = self.token
            if peer == token.next:
                token.answers = True  # Of interest while in TRST.
            self._advance()
        out, self._out = self._out, []
        return out

    def expire(self, timer: str) -> Out:
        match timer:
            case "repeat_msg":
                self._repeat_msgs()
            case "repeat_ack":
                self._repeat_ack()
            case "repeat_req":
                self._repeat_req()
            case "silence":
                self.silent = True
                self._advance()
            case "watch":
                self._check_token()
            case _:
                raise AssertionError(f"unknown timer {timer}")
        return self._drain()

    # What others say

    def _forged_msg(self, m: Msg) -> bool:
        """Whether no member can have sent a packet: it is under another's name, for some alone, or
        of this node, which has not sent so many."""
        packet, sender, ledger = m.packet, m.sender, self.ledger
        return (
            self._index.get(packet.span.node) != sender
            or packet.destinations is not None
            or (sender == ledger.me and m.number >= ledger.expected[sender])
        )

    def _on_msg(self, peer: int, m: Msg) -> None:
        ledger, sender = self.ledger, m.sender
        if self._traced:
            self._out.append(Record(_RECEIVE, m.packet, self._id))
        if sender == ledger.me:
            return
        if self._listens:
            ledger.note(sender, m.held)
        if not ledger.store(m) and peer == sender and self.token.grip is HOLD:
            # Its sender does not know its number. It may have none yet, or be stable.
            number = ledger.places.get((sender, m.number))
            if number is not None and not self.frozen:
                self._send(ledger.copy(number), peer)

    def _on_ack(self, peer: int, m: Ack) -> None:
        holder, copy = m.holder, m.next == NOBODY
        ledger, token = self.ledger, self.token
        if not ledger.learn(m):
            return
        if holder != ledger.me:
            ledger.note(holder, m.last)
        if copy or self.frozen:
            return
        before = token.grip
        after = token.note_transfer(m, ledger.held[ledger.me])
        if after is not before:
            if before is TRST:
                self._out.append(DISARMING[ACK])
            if after is HOLD:
                self._out.append(self._acquired)

    def _forged_ack(self, peer: int, m: Ack) -> bool:
        """Whether no member can have sent an acknowledgment: it names nobody, hands on a token
        that another has or that was handed on too often, or contradicts what is known here."""
        size, next_ = self.size, m.next
        for sender, _ in m.uids:
            if sender >= size:
                return True
        if m.holder >= size or (next_ >= size and next_ != NOBODY):
            return True
        if self.literal:
            return False
        if next_ != NOBODY and (m.holder != peer or m.hop > self.token.hop + HOPS_AHEAD_MAX):
            return True
        return self.ledger.contradicts(m)

    def _on_req(self, peer: int, m: Req) -> None:
        if self._listens:
            self.ledger.note(peer, m.held)
        if self.frozen:
            return
        token, repetitions = self.token, self._repetitions
        repetitions.note_request()
        successor = token.grip is TRST and token.next == peer
        if successor or token.grip is HOLD:
            for answer in self.ledger.answers(m):
                self._send(answer, peer)
        if successor:
            assert token.sent is not None
            repetitions.reset(ACK)
            self._send(token.sent, peer)

    # What can be done now

    def _advance(self) -> None:
        ledger = self.ledger
        missing = ledger.ready < ledger.top
        if missing:
            own = ledger.own_ready
            if ledger.extend() and self.asking:
                self._repetitions.reset(REQ)
            if ledger.own_ready > own:
                self._noted_own()
            missing = ledger.ready < ledger.top
        if self.delivered < ledger.ready:
            self._deliver()
        if self.claimed < ledger.low:
            self._claim_stable()
        if self._more and self.outstanding < self._window:
            self._pump()
        if missing:
            self._ask()
            return
        if self.asking:
            self.asking = False
            self._out.append(DISARMING[REQ])
        if self.token.grip is HOLD:
            self._use()

    def _noted_own(self) -> None:
        """Own packets have got numbers."""
        ledger = self.ledger
        self.outstanding = ledger.expected[ledger.me] - 1 - ledger.own_ready
        if self.outstanding:
            self._repetitions.reset(MSG)
        else:
            self._out.append(DISARMING[MSG])

    def _deliver(self) -> None:
        """Deliver as far as F allows."""
        ledger = self.ledger
        number, limit, low = self.delivered, ledger.ready, ledger.low
        if number < self.claimed:
            number = self.claimed  # The literal rules forget what nobody had.
        if self.resilience:
            limit = min(limit, sorted(ledger.held)[-1 - self.resilience])
        while number < limit:
            number += 1
            ack = ledger.acks[number]
            uid = ack.uids[number - ack.last - 1]
            packet = ledger.msgs[uid].packet
            if number > low and (
                packet.service is _SAFE or (self.sender_first and ledger.held[uid[0]] < number)
            ):
                break
            self.delivered = number
            self._out.append(Deliver(packet, self._id, (number, 0)))

    def _claim_stable(self) -> None:
        """Claim and forget what all hold."""
        ledger = self.ledger
        number, low = self.claimed, ledger.low
        assert self.literal or self.delivered >= low, "stable and not delivered"
        self.claimed = low
        while number < low:
            number += 1
            packet = ledger.drop(number)
            if self._traced and packet is not None:  # As above.
                if packet.service is _SAFE:
                    self._level = 1
                self._out.append(Record(_STABLE, packet.span, self._id, None, self._level))

    def _pump(self) -> None:
        """Send what waits, as far as the window allows."""
        ledger, me = self.ledger, self.ledger.me
        while self.outstanding < self._window:
            packet = self._outlet.pull()
            if packet is None:
                self._more = False
                return
            msg = Msg(me, ledger.expected[me], ledger.held[me], packet)
            if self._traced:
                self._out.append(Record(_ORIGINATE, packet, self._id))
            if self.size > 1:
                self._out.append(Send(msg, self._id))
                if not self.outstanding:
                    self._repetitions.reset(MSG)
                    self._out.append(self._arm[MSG])
            self.outstanding += 1
            ledger.store(msg)

    def _use(self) -> None:
        """The token is here, and nothing is missing."""
        while self.token.grip is HOLD and self.ledger.waiting:
            self._order()
        if self.token.grip is HOLD and self.size > 1:
            self._keep_silence()

    def _order(self) -> None:
        """Give the oldest packets that wait their numbers, and hand on the token."""
        ledger = self.ledger
        uids = tuple(islice(ledger.waiting, self._batch))
        own = ledger.own_ready
        ack = ledger.order(uids, self._choose(), self.token.hop + 1)
        if self._traced:
            for number, uid in enumerate(uids, ack.last - len(uids) + 1):
                span = ledger.msgs[uid].packet.span
                self._out.append(Record(_ORDER, span, self._id, (number, 0), 1))
        if ledger.own_ready > own:
            self._noted_own()
        self._deliver()
        if self.claimed < ledger.low:
            self._claim_stable()
        self._hand_on(ack)
        if self._more:
            self._pump()

    def _keep_silence(self) -> None:
        """Nothing to order: keep the token for a while, once, then hand it on."""
        if self.silent:
            ledger = self.ledger
            self._hand_on(Ack(ledger.me, (), ledger.top, self._choose(), self.token.hop + 1))
        elif not self.silence or self.literal:
            self.silence = True
            self._out.append(self._arm[SILENCE])

    def _choose(self) -> int:
        return self.ledger.next if self._rotates else self.ledger.least()

    def _hand_on(self, ack: Ack) -> None:
        if self.size == 1:
            return
        if self.silence and not self.silent:
            self._out.append(DISARMING[SILENCE])
        self.silence = self.silent = False
        self._repetitions.begin_transfer()
        self.token.pass_on(ack)
        self._out += (self._released, Send(ack, self._id), self._arm[ACK])

    # What takes too long

    def _ask(self) -> None:
        if not self.asking:
            self.asking = True
            self._repetitions.reset(REQ)
            self._send_req()

    def _send_req(self) -> None:
        self._repetitions.note_request()
        self._send(self.ledger.request())
        self._out.append(self._arm[REQ])

    def _repeat_req(self) -> None:
        self._send_req()
        self._count(REQ, (), "what is missing does not come")

    def _repeat_msgs(self) -> None:
        ledger = self.ledger
        for number in range(ledger.own_ready + 1, ledger.expected[ledger.me]):
            msg = ledger.msgs.get((ledger.me, number))
            assert msg is not None, f"own packet {number} was forgotten before it was ordered"
            self._send(msg)
        self._out.append(self._arm[MSG])
        self._count(MSG, (), "nobody orders what was sent")

    def _repeat_ack(self) -> None:
        sent = self.token.sent
        assert sent is not None, "no token was handed on"
        self._send(sent)
        self._out.append(self._arm[ACK])
        successor = (self.view.members[sent.next],)
        deaf = "it fails to receive"
        self._count(ACK, successor, deaf if self.token.answers else "it does not take the token")
        self._count(ASKING, successor, deaf)

    def _count(self, timer: str, members: tuple[NodeId, ...], reason: str) -> None:
        """One more repetition; after some, somebody is suspected."""
        if self._repetitions.exhausts(timer):
            self._out.append(Suspect(members, reason))

    def _check_token(self) -> None:
        """It is repeated by whoever handed it on, unless that one is gone too."""
        if self._repetitions.token_missed(self.token.hop):
            self._out.append(Suspect((), "the token is lost"))
        self._out.append(self._arm[WATCH])

    # The end of a view

    def freeze(self) -> bytes:
        self.frozen = True
        self.ledger.extend()
        return ending.summarize(self.ledger, self.token, self.delivered)

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        read = self._read(summaries)
        for summary in read.values():
            for member, number in enumerate(summary.held):
                if member != self.ledger.me:  # Nobody knows better what is held here.
                    self.ledger.note(member, number)
        return ending.items(self.ledger, min(s.held[m] for m, s in read.items()))

    def absorb(self, item: Item) -> list[Record]:
        packet = ending.absorb(self.ledger, self.view.members, item)
        return [] if packet is None else [Record(Kind.RECEIVE, packet, self._id)]

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        self.ledger.extend()
        obliged = frozenset(self._index[node] for node in obligations)
        end = ending.End(self.ledger, self._id, self._read(summaries), obliged)
        return end.conclude(self.delivered, sender_first=self.sender_first)

    def _read(self, summaries: Mapping[NodeId, bytes]) -> dict[int, ending.Summary]:
        return by_place(summaries, self._index, ending.read_summary)

    def _send(self, message: Message, to: int | None = None) -> None:
        peer = None if to is None else self.view.members[to]
        self._out.append(Send(message, self._id, peer))

    def _drain(self) -> Out:
        out, self._out = self._out, []
        return out
