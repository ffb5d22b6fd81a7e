"""A reliable FIFO multicast in one view, for engines that assume one below them. Pure.

Theory of operation
===================

A content is broadcast once. Receivers take each sender's contents in the order of their numbers,
keep what comes early, and ask for what is missing: its sender first, then whoever else has it.
Every frame tells what its sender has. What everybody has is forgotten, and makes room for more: a
sender is never more than a window ahead of the slowest member.

A member that has nothing to send sends heartbeats: soon after it received something, so that the
sender learns of it, else now and then, as a sign of life. A heartbeat counts its sender's own
contents too, so the loss of the last one is noticed. A member that is silent for long, or that does
not receive what is sent to it again and again, is suspected. A member that asks in vain for what it
lacks suspects the view as a whole: nobody has that any more, or it never was.

The end of a view: members that move on together tell each other what they have without gaps
(`freeze`), exchange what one of them lacks (`seal`, `absorb`), and then hold the same. A content
behind a gap that none of them can fill is lost, and so is its sender: nobody lacks its own. Hence
what was taken from a link, in each sender's order, is the same at all of them.

A sender that has much under way sends full packets alone: the last of those that wait may still be
filled, and goes once fewer are under way. Receivers acknowledge that many at once, so no timer is
waited for. On a link with little traffic nothing waits.

The owner of a link calls `pop_arrived` and `pop_stable` after every input, and passes on the
effects in `out`.
"""

import math
from collections.abc import Mapping, Sequence
from operator import sub
from typing import Generic, TypeVar

from roundelay.core.contract import Item, Origin
from roundelay.core.effects import Effect, Send, SetTimer, Suspect
from roundelay.core.ids import NodeId, View
from roundelay.core.value import value
from roundelay.links.ledger import (
    AHEAD_MAX,
    SUMMARY_MEMBERS_MAX,
    Arrival,
    Ledger,
    Summary,
    read_summary,
)
from roundelay.links.messages import REQUEST_MAX, Data, Heartbeat, LinkCodec, Message, Request
from roundelay.wire.primitives import Reason, WireError

P = TypeVar("P")

HEARTBEAT = "heartbeat"
MISSING = "missing"
SILENCE = "silence"

NEVER = 1 << 62
"""More packets than are ever under way."""

SILENCE_CHECKS = 4
"""How often, in the time `silence_s`, a member checks who has been heard. A member that falls
silent is suspected at the check after this many; more checks find it sooner, and cost timers."""


@value
class LinkConfig:
    """Timers in seconds, for a LAN. Packets are counted, whatever their size."""

    heartbeat_s: float = 0.020
    """Longest silence of a member. Too short: idle members keep each other busy; too long: a
    lost last packet is missed late, and few heartbeats fit into `silence_s`."""
    ack_s: float = 0.005
    """Until what was received is acknowledged by a member that sends nothing. Too short: a frame
    for every packet from every member; too long: safe packets and full windows wait for it."""
    missing_s: float = 0.005
    """Until a missing packet is asked for, and asked for again. Shorter than the network takes
    there and back: packets come twice; too long: a lost packet holds up those behind it."""
    silence_s: float = 0.120
    """Until a silent member is suspected, or up to a quarter longer. Too short: a burst of loss or
    a loaded node expels a member; too long: a crash stops safe packets, and soon all, so long."""
    stall_s: float = 1.0
    """Until a member that is heard and yet receives nothing is suspected, and until one that asks
    in vain suspects the view. Too short: congestion expels members; too long: one deaf member stops
    everybody."""
    window_packets: int = 64
    """Of one sender, not yet acknowledged by all. Too small: the wire idles while the sender
    waits; too large: receivers overrun, and a view change has as much to exchange."""
    ack_packets: int = 24
    """Received of one sender before a silent member acknowledges at once; half a window and one, if
    that is less. Too small: as `ack_s`; too large: a stream moves a window in every `ack_s`."""
    fill_packets: int = 24
    """Own packets under way from which on one that is not full waits for more; half a window and
    one, if that is less. Too small: messages of a moderate load wait for acknowledgments; too
    large: a heavy load goes out in packets that are hardly filled. Less than `ack_packets`: packets
    that are not full wait up to `ack_s`. With 0 no packet ever waits to be filled."""
    request_packets: int = 32
    """Asked for at a time, of one sender. Too small: slow repair; too large: bursts of packets
    that arrive twice."""
    sender_attempts: int = 2
    """Times that a packet is asked of its sender before others are asked too. Too small: they
    are asked for what its sender is about to repeat; too large: the loss of one path lasts."""

    def __post_init__(self) -> None:
        if not 0 < self.window_packets <= AHEAD_MAX:
            raise ValueError(f"window_packets is between 1 and {AHEAD_MAX}")
        if not 0 < self.request_packets <= REQUEST_MAX:
            raise ValueError(f"request_packets is between 1 and {REQUEST_MAX}")


class Link(Generic[P]):
    """One member's end of the multicast of one view."""

    TIMERS = frozenset({HEARTBEAT, MISSING, SILENCE})
    """The timers that are the link's; an engine on links gives its own other names."""

    def __init__(self, view: View, node: NodeId, codec: LinkCodec[P], config: LinkConfig) -> None:
        size = len(view.members)
        assert size <= SUMMARY_MEMBERS_MAX, f"{size} members; a summary holds {SUMMARY_MEMBERS_MAX}"
        self.view = view
        self.me = view.members.index(node)
        self.config = config
        self.frozen = False
        self.ledger: Ledger[P] = Ledger(self.me, size)
        self.pop_arrived = self.ledger.pop_arrived
        """Contents that can be used now: each sender's in order, own ones too. Bound here, as is
        the next: every input passes them."""
        self.pop_stable = self.ledger.pop_stable
        """Contents that everybody has by now; each is told once, by sender in order."""
        self.out: list[Effect[Message[P]]] = []
        self._codec = codec
        self._place = {member: i for i, member in enumerate(view.members)}
        self._lives: dict[NodeId, int] = {}
        """The life of each member that is in this view: the first heard of."""
        self._missed = [0] * size
        """By member: checks in a row since it was last heard."""
        self._told = (0,) * size
        """By sender: what this node has, as it told all last ..."""
        self._tell_soon = False
        """... and whether it has more, and the timer is armed after which it tells again."""
        self._missing_armed = False
        """The timer for what is missing is armed."""
        self._asked = [0] * size
        """By sender: requests in a row that brought nothing forward."""
        self._stalls = 0
        """Checks in a row at which an own content was not stable and none had become so."""
        self._stalled_at = 0
        self._asked_max = math.ceil(config.stall_s / config.missing_s)
        """Requests in vain before the view is given up."""
        self._stalls_max = math.ceil(config.stall_s * SILENCE_CHECKS / config.silence_s)
        half = config.window_packets // 2 + 1
        self._ack_packets = min(config.ack_packets, half)
        self._fill_packets = min(config.fill_packets, half) or NEVER
        # Effects that many frames repeat.
        self._arm_ack = SetTimer(HEARTBEAT, min(config.ack_s, config.heartbeat_s))
        self._arm_heartbeat = SetTimer(HEARTBEAT, config.heartbeat_s)
        if size > 1:
            self._set(HEARTBEAT, config.heartbeat_s)
            self._set(SILENCE, config.silence_s / SILENCE_CHECKS)

    @property
    def room(self) -> int:
        """How many contents may be sent now."""
        if self.frozen:
            return 0
        outstanding = self.ledger.received[self.me] - self.ledger.stable[self.me]
        return self.config.window_packets - outstanding

    def allowance(self, waiting: int, undelivered: int = 0) -> int:
        """How many of the packets that wait are to be sent now, the first ones. The last of them
        may be one that is still being filled: if much is under way, it is left to be filled.
        `undelivered` are own packets that their sender has not delivered itself."""
        if not waiting or self.frozen:
            return 0
        ledger, me = self.ledger, self.me
        under_way = ledger.received[me] - ledger.stable[me]
        if undelivered > under_way:
            under_way = undelivered
        if under_way + waiting > self._fill_packets:
            waiting -= 1
        room = self.config.window_packets - under_way
        return waiting if waiting < room else room

    # Inputs

    def send(self, content: P) -> None:
        """Broadcast an own content; it arrives here at once."""
        ledger, me = self.ledger, self.me
        stable = ledger.stable[me]
        number = ledger.add(content)
        assert number - stable <= self.config.window_packets, "the window is full"
        self._broadcast(Data(me, number, stable, tuple(ledger.received), content))

    def receive(self, origin: Origin, message: Message[P]) -> bool:
        """Take in a frame; False if no other member of the view, in this life, can have sent it."""
        node, life, me = origin.node, origin.incarnation, self.me
        member = self._place.get(node, me)
        if member == me or self._lives.get(node, life) != life:
            return False  # The second: it restarted in a static group, and is not who it was.
        ledger = self.ledger
        if type(message) is Data:  # By type, not by `match`: this is every packet's way.
            sender, stable = message.sender, message.stable
            if sender >= ledger.size or sender == me or stable > ledger.received[sender]:
                return False
            if message.number > stable + AHEAD_MAX:
                return False
            if not ledger.note_received(member, message.received):
                return False
            before = ledger.received[sender]
            if stable > ledger.stable[sender]:
                ledger.raise_stable(sender, stable)
            ledger.store(sender, message.number, message.content)
            received = ledger.received[sender]
            if received > before and not self.frozen:
                self._asked[sender] = 0
                if received - self._told[sender] >= self._ack_packets:
                    self._broadcast(Heartbeat(tuple(ledger.received)))
                elif not self._tell_soon:
                    self._tell_soon = True
                    self.out.append(self._arm_ack)
        elif type(message) is Heartbeat:
            if not ledger.note_received(member, message.received):
                return False
        elif type(message) is Request:
            if message.sender >= ledger.size:
                return False
            self._on_request(node, message)
        self._lives[node] = life
        self._missed[member] = 0
        if ledger.lacking:
            self._arm_missing()
        if self.frozen:
            ledger.pop_stable()  # The owner no longer does.
        return True

    def expire(self, timer: str) -> None:
        match timer:
            case "heartbeat":
                self._broadcast(Heartbeat(self._received()))
            case "missing":
                self._on_missing()
            case "silence":
                self._on_silence()
            case _:
                raise AssertionError(f"unknown timer {timer}")

    def note_sent(self, sent: Sequence[int]) -> None:
        """By sender, contents up to these numbers exist: ask for what is missing of them."""
        self.ledger.note_sent(sent)
        self._arm_missing()

    # The exchange

    def can_hold(self, received: Sequence[int]) -> bool:
        """Whether a member can have so much of every sender's: of this node's contents no more than
        it sent, and of others' no more than a sender can be ahead of what all, this node among
        them, have."""
        here = self.ledger.received
        return (
            len(received) == self.ledger.size
            and received[self.me] <= here[self.me]
            and max(map(sub, received, here)) <= AHEAD_MAX
        )

    def _arm_missing(self) -> None:
        """Arm the timer after which missing contents are asked for, unless it is armed."""
        if self.ledger.lacking and not self._missing_armed and not self.frozen:
            self._missing_armed = True
            self._set(MISSING, self.config.missing_s)

    def _on_missing(self) -> None:
        self._missing_armed = False
        in_vain = False
        for sender in range(self.ledger.size):
            numbers = self.ledger.missing(sender, self.config.request_packets)
            if numbers:
                to = self.view.members[self._whom_to_ask(sender)]
                self.out.append(Send(Request(sender, numbers), self.view.id, to))
                in_vain = in_vain or self._asked[sender] % self._asked_max == 0
        if in_vain:  # Its sender is heard, or it were suspected by now: nobody has it any more.
            self.out.append(Suspect((), "what is missing does not come"))
        self._arm_missing()

    def _whom_to_ask(self, sender: int) -> int:
        attempt = self._asked[sender]
        self._asked[sender] += 1
        holders = self.ledger.holders(sender)
        if attempt < self.config.sender_attempts or not holders:
            return sender
        return holders[attempt % len(holders)]

    def _on_request(self, node: NodeId, m: Request) -> None:
        if self.frozen:
            return
        stable = self.ledger.stable[m.sender]
        for number in m.numbers:
            content = self.ledger.held[m.sender].get(number)
            if content is not None and number > stable:
                again = Data(m.sender, number, stable, self._received(), content)
                self.out.append(Send(again, self.view.id, node))

    def _on_silence(self) -> None:
        """Check which members were not heard, and whether own contents become stable."""
        silent: list[NodeId] = []
        for member, name in enumerate(self.view.members):
            if member != self.me:
                self._missed[member] += 1
                if self._missed[member] % (SILENCE_CHECKS + 1) == 0:
                    silent.append(name)
        deaf = self._deaf()
        if silent:
            self.out.append(Suspect(tuple(silent), "nothing is heard"))
        elif deaf:
            self.out.append(Suspect(deaf, "nothing is acknowledged"))
        self._set(SILENCE, self.config.silence_s / SILENCE_CHECKS)

    def _deaf(self) -> tuple[NodeId, ...]:
        """Who has acknowledged nothing of this node for too long."""
        stable = self.ledger.stable[self.me]
        waiting = self.ledger.received[self.me] > stable == self._stalled_at
        self._stalled_at = stable
        self._stalls = self._stalls + 1 if waiting else 0
        if not waiting or self._stalls % self._stalls_max:
            return ()
        known = self.ledger.known[self.me]
        return tuple(
            n for n, number in zip(self.view.members, known, strict=True) if number <= stable
        )

    def _broadcast(self, message: Data[P] | Heartbeat) -> None:
        if self.ledger.size > 1:
            self._told = message.received
            self._tell_soon = False
            self.out += (Send(message, self.view.id), self._arm_heartbeat)

    def _received(self) -> tuple[int, ...]:
        return tuple(self.ledger.received)

    def _set(self, timer: str, delay_s: float) -> None:
        self.out.append(SetTimer(timer, delay_s))

    # The end of the view

    def freeze(self) -> bytes:
        """Send no more, and sum up what is held."""
        self.frozen = True
        return self.ledger.summary()

    def seal(self, summaries: Mapping[NodeId, bytes]) -> list[Item]:
        """Contents that another member of this view, by its summary, lacks; WireError if a
        summary is not one."""
        read = self._read(summaries)
        for summary in read.values():
            for sender, stable in enumerate(summary.stable):
                self.ledger.raise_stable(sender, stable)
        self.ledger.pop_stable()  # Nobody lacks it. Whatever is yet to be taken stays to be taken.
        others = [s.received for node, s in read.items() if self._place[node] != self.me]
        if not others:
            return []
        lowest = [min(numbers) for numbers in zip(*others, strict=True)]
        return [
            Item((sender, number), self._codec.pack(held[number]))
            for sender, held in enumerate(self.ledger.held)
            for number in sorted(held)
            if number > lowest[sender]
        ]

    def unpack(self, item: Item) -> Arrival[P]:
        """What an item says, not yet taken in; WireError if it is none of this view."""
        if len(item.key) != 2:
            raise WireError(Reason.IMPLAUSIBLE, "not an item of this view")
        sender, number = item.key
        ledger = self.ledger
        far = sender >= ledger.size or number > ledger.stable[sender] + AHEAD_MAX
        unsent = sender == self.me and number > ledger.received[self.me]
        if far or unsent or not number:
            raise WireError(Reason.IMPLAUSIBLE, f"no content has the number {sender}.{number}")
        return Arrival(sender, number, self._codec.unpack(item.body))

    def absorb(self, arrival: Arrival[P]) -> None:
        """Take in what another member sealed."""
        self.ledger.store(*arrival)
        self.ledger.pop_stable()

    def agreed_stable(self, summaries: Mapping[NodeId, bytes]) -> list[int]:
        """By sender, what every member of the view has, as far as all who move on together know:
        where none is left behind, that is everything."""
        read = self._read(summaries)
        if len(read) == self.ledger.size:
            return list(self.ledger.received)
        return [max(lines) for lines in zip(*(s.stable for s in read.values()), strict=True)]

    def _read(self, summaries: Mapping[NodeId, bytes]) -> dict[NodeId, Summary]:
        read: dict[NodeId, Summary] = {}
        for node in sorted(summaries):
            summary = read[node] = read_summary(summaries[node], self.ledger.size)
            beyond = map(int.__gt__, summary.stable, self.ledger.received)
            if node not in self._place or any(beyond):
                raise WireError(Reason.MALFORMED, f"not a summary of this view: {node}")
        return read
