"""The engine under the rules of the paper: to be shown, not used.

Names are the paper's, in small letters; the order that its recovery makes is in `sort_line`. After
one lost packet two members may deliver in different orders: `docs/st.md` tells how, and
`roundelay audit st` how often.

It runs on static groups, over a network that is one channel. What the paper leaves open is done so:

- An RR has the numbers that the next packet will have, and is for everybody.
- While members agree on a line, packets that were sent before are accepted, and none is passed on.
- Of several RSTs the first on the channel counts: the others are in what their senders answer.
- The line is not what a member expects next: that is kept, and grows with what comes again.
- Members that have nothing to wait for go on; others lay aside what belongs to the next epoch.
- Lost words of the agreement are not repeated. Whoever then hears nothing of a member for
  `silence_s` aborts the group.
- The window is 1 at least, and the constant H is 1.
"""

from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

from roundelay.core.contract import Origin, Outlet
from roundelay.core.effects import (
    CancelTimer,
    Deliver,
    Effect,
    Kind,
    Receipt,
    Record,
    Refuse,
    Send,
    SetTimer,
    Suspect,
)
from roundelay.core.ids import NodeId, Packet, View
from roundelay.core.value import value
from roundelay.protocols.st.config import Config
from roundelay.protocols.st.literal_messages import (
    Abort,
    Ask,
    LiteralCodec,
    LiteralMessage,
    Ret,
    Rst,
    RstAck,
    RstPak,
    Vector,
)
from roundelay.protocols.st.messages import Name, Placed, Transmission
from roundelay.protocols.st.sort_line import least, losses, lowered, repaired, sort_point

READY = "ready"
"""Timers: to say that this node is there ..."""
PACK = "pack"
"""... to send the oldest own packet again that is not pre-acknowledged ..."""
HOLD = "hold"
"""... to deliver what is pre-acknowledged for too long ..."""
ASK = "ask"
"""... to ask for packets that do not come again ..."""
WATCH = "watch"
"""... and to look who is silent."""
WATCHES = 4
"""How often silence is looked at before it is too long."""

_NO_MEMBER = Refuse("something that no member can have sent")

Out: TypeAlias = list[Effect[LiteralMessage]]


class Phase(Enum):
    """What a member is doing."""

    SEND = "send"
    PAKS = "collects RST_PAKs"
    ACKS = "collects RST_ACKs"
    RETS = "waits for packets"
    STOPPED = "stopped"

    def __str__(self) -> str:
        return self.value


@value
class Kept:
    """A packet in a log."""

    name: Name
    to: tuple[int, ...]
    pseq: int
    """Its number among those of its source for this member."""
    ack: Vector
    packet: Packet

    def __str__(self) -> str:
        return str(self.name)


class LiteralMember:
    """One member of a static group that runs ST as the paper has it."""

    codec = LiteralCodec()
    selective = True

    def __init__(self, node: NodeId, outlet: Outlet, config: Config) -> None:
        self._node = node
        self._config = config
        self._outlet = outlet
        self._out: Out = []

    def start(self, view: View) -> Out:
        size = len(view.members)
        self._view = view
        self._size = size
        self._me = view.members.index(self._node)
        self._index = {member: i for i, member in enumerate(view.members)}
        self._traced = self._outlet.traced
        self.phase = Phase.SEND
        self.epoch = 0
        """Recoveries that are over."""
        self.tseq = 1
        self.pseq = [1] * size
        self.treq = [1] * size
        self.preq = [1] * size
        self.al = [[1] * size for _ in range(size)]
        """`al[h][j]`: what j expects next from h; `pal` likewise."""
        self.pal = [[1] * size for _ in range(size)]
        self.buf = [self._config.buffer_packets] * size
        self.rrl: list[Kept] = []
        self.prl: list[Kept] = []
        self.line: Vector = ()
        """On which the last recovery agreed ..."""
        self.order: tuple[int, ...] = ()
        """... and ORDR."""
        self.fail = 0
        self._sent: deque[tuple[Transmission, tuple[int, ...]]] = deque()
        """SL: own packets that some member that they are for may lack."""
        self._paks: dict[int, Vector] = {}
        self._acks: dict[int, RstAck] = {}
        self._again: dict[Name, Kept] = {}
        self._rest: list[Kept] = []
        """RRL from the sort point on."""
        self._early: deque[tuple[int, LiteralMessage]] = deque()
        """What came for the next epoch, with its sender."""
        self._own: deque[LiteralMessage] = deque()
        """What a node that is alone says to itself."""
        self._quiet = [0] * size
        self._asked = False
        """Whether this node has sent an RST in this epoch."""
        self._passed = 0
        """Packets that were moved to PRL, those that left it, and those that may not wait there
        any longer."""
        self._left = 0
        self._overdue = 0
        self._timers: dict[str, object] = {}
        self._arm(READY, self._config.ready_s)
        if size > 1:
            self._arm(WATCH, self._config.silence_s / WATCHES)
        self._advance()
        return self._drain()

    def submit(self) -> Out:
        self._advance()
        return self._drain()

    def receive(self, origin: Origin, message: LiteralMessage) -> Out:
        peer = self._index[origin.node]
        self._quiet[peer] = 0
        self._hear(peer, message)
        self._advance()
        return self._drain()

    def expire(self, timer: str) -> Out:
        self._timers.pop(timer, None)
        if self.phase is not Phase.STOPPED:
            self._expire(timer)
            self._advance()
        return self._drain()

    def _expire(self, timer: str) -> None:
        match timer:
            case "ready":
                if self.phase is Phase.SEND:
                    self._broadcast(Placed(0, 0, self._transmission(None)))
                self._arm(READY, self._config.ready_s)
            case "pack":
                if self.phase is Phase.SEND and self._sent:
                    self._broadcast(Placed(0, 0, self._sent[0][0]))
            case "hold":
                if self.phase is Phase.SEND:
                    while self._left < self._overdue:
                        self._stable(self.prl[0], 2)
                        self._deliver(self.prl.pop(0))
            case "ask":
                self._ask()
            case "watch":
                self._watch()
            case _:
                raise AssertionError(f"unknown timer {timer}")

    # Transmission

    def _advance(self) -> None:
        """Do whatever has become possible."""
        while True:
            if self.phase is Phase.SEND:
                self._acknowledge()
                self._transmit()
            if not self._own:
                break
            self._hear(self._me, self._own.popleft())
        if self.phase is not Phase.SEND:
            return
        self._keep(PACK, self._config.pack_s, self._sent[0][0].number if self._sent else None)
        if self._keep(HOLD, self._config.hold_s, self.prl[0].name if self.prl else None):
            self._overdue = self._passed

    def _transmit(self) -> None:
        while self._may_send():
            packet = self._outlet.pull()
            if packet is None:
                return
            self._out.append(Record(Kind.ORIGINATE, packet, self._view.id))
            to = self._to(packet)
            if not to:
                if packet.span.count:
                    self._out.append(Receipt(packet.span, self._view.id))
                continue
            transmission = self._transmission(packet)
            self.tseq += 1
            for member in to:
                self.pseq[member] += 1
            self._sent.append((transmission, to))
            self._broadcast(Placed(0, 0, transmission))
            self._arm(READY, self._config.ready_s)

    def _may_send(self) -> bool:
        heard = min(self.al[self._me])
        window = min(self._config.window_packets, max(1, min(self.buf) // self._size))
        return self.tseq < heard + window

    def _transmission(self, packet: Packet | None) -> Transmission:
        ack = tuple(self.treq)
        free = max(0, self._config.buffer_packets - len(self.rrl) - len(self.prl))
        counts = tuple(number - 1 for number in self.pseq)
        return Transmission(self._me, self.epoch, self.tseq, counts, ack, ack, ack, free, packet)

    # Acceptance, and what follows from it

    def _hear(self, peer: int, message: LiteralMessage) -> None:
        if self.phase is Phase.STOPPED:
            return
        if not self._sound(peer, message):
            self._out.append(_NO_MEMBER)
            return
        transmission = message.transmission if isinstance(message, Placed | Ret) else None
        if transmission is not None and transmission.packet is not None and self._traced:
            self._out.append(Record(Kind.RECEIVE, transmission.packet, self._view.id))
        epoch = _epoch(message)
        if epoch > self.epoch:
            if len(self._early) < 4 * self._config.buffer_packets:
                self._early.append((peer, message))
            return
        if epoch == self.epoch or isinstance(message, Ask | Abort):
            self._take(peer, message)

    def _take(self, peer: int, message: LiteralMessage) -> None:
        match message:
            case Placed():
                self._accept(message.transmission)
            case Rst():
                if self.phase is Phase.SEND:
                    self._enter_paks(message)
            case RstPak():
                if self.phase is Phase.PAKS:
                    self._on_pak(peer, message)
            case RstAck():
                if self.phase in (Phase.PAKS, Phase.ACKS):
                    self._on_ack(peer, message)
            case Ret():
                if self.phase is Phase.RETS:
                    self._on_again(message.transmission)
            case Ask():
                if message.source == self._me:
                    self._send_again(message.epoch, {peer: message.number})
            case Abort():
                self._stop("the group was aborted")

    def _accept(self, t: Transmission) -> None:
        """The action ACC, and the condition of a loss."""
        j, me = t.source, self._me
        to = self._everybody if t.packet is None else self._to(t.packet)
        pseq = t.counts[me] + 1
        if t.number == self.treq[j] or (pseq == self.preq[j] and me in to):
            self.treq[j] = t.number + (t.packet is not None)
            for h, number in enumerate(t.ack):
                self.al[h][j] = number
            self.buf[j] = t.room
            if t.packet is not None and me in to:
                self.preq[j] = pseq + 1
                self.rrl.append(Kept(Name(j, t.number), to, pseq, t.ack, t.packet))
        elif self.preq[j] < pseq and self.phase is Phase.SEND and not self._asked:
            self._asked = True
            self._broadcast(Rst(self.epoch, tuple(self.treq)))

    def _acknowledge(self) -> None:
        """The actions PACK and ACK."""
        al, pal = self.al, self.pal
        while self.rrl:
            p = self.rrl[0]
            j = p.name.source
            if p.name.number >= min(al[j][k] for k in p.to):
                break
            self.prl.append(self.rrl.pop(0))
            self._passed += 1
            for h, number in enumerate(p.ack):
                pal[h][j] = number
            self._stable(p, 1)
        while self.prl:
            p = self.prl[0]
            j = p.name.source
            if p.name.number >= min(pal[j][k] for k in p.to):
                break
            self._stable(p, 2)
            self._deliver(self.prl.pop(0))
        while self._sent:
            transmission, to = self._sent[0]
            if any(al[self._me][k] <= transmission.number for k in to):
                break
            self._sent.popleft()
            packet = transmission.packet
            if self._me not in to and packet is not None and packet.span.count:
                self._out.append(Receipt(packet.span, self._view.id))

    def _stable(self, p: Kept, level: int) -> None:
        if self._traced:
            self._out.append(Record(Kind.STABLE, p.packet.span, self._view.id, level=level))

    def _deliver(self, p: Kept) -> None:
        """Move the first packet of PRL to the application."""
        self._left += 1
        self._out.append(Deliver(p.packet, self._view.id))

    # Recovery

    def _enter_paks(self, rst: Rst) -> None:
        """Step (2)."""
        self.phase = Phase.PAKS
        self._paks = {}
        self.order = ()
        log = [p.name for p in self.rrl]
        self._broadcast(RstPak(self.epoch, lowered(log, tuple(self.treq), rst.line)))

    def _on_pak(self, peer: int, m: RstPak) -> None:
        """Steps (3) and (4)."""
        if peer in self._paks:
            return
        self._paks[peer] = m.line
        self.order += (peer,)
        if len(self._paks) < self._size:
            return
        self.phase = Phase.ACKS
        self._acks = {}
        self.line = least(self._paks.values())
        preq, pseq = tuple(self.preq), tuple(self.pseq)
        self._broadcast(RstAck(self.epoch, self.line, preq, pseq, self.order))

    def _on_ack(self, peer: int, m: RstAck) -> None:
        """Steps (5) and (6)."""
        if self.phase is Phase.PAKS or (m.line, m.order) != (self.line, self.order):
            self._abort("members came to different lines")
            return
        self._acks[peer] = m
        if len(self._acks) == self._size:
            self._enter_rets()

    def _enter_rets(self) -> None:
        """All agree: what is before the sort point is delivered, and what was lost comes again."""
        got = {member: m.preq for member, m in self._acks.items()}
        sent = {member: m.pseq for member, m in self._acks.items()}
        self.phase = Phase.RETS
        self.fail = len(losses(got, sent))
        point = sort_point([p.name for p in self.rrl], self.line)
        for p in self.rrl[:point]:
            self._stable(p, 1)
        for p in (*self.prl, *self.rrl[:point]):
            self._deliver(p)
        self._rest = self.rrl[point:]
        self._passed = self._left
        self.prl.clear()
        self.rrl.clear()
        self._again = {}
        self._send_again(self.epoch, {k: got[k][self._me] for k in got})
        self._arm(ASK, self._config.repeat_s)
        self._go_on()

    def _send_again(self, epoch: int, lacking: dict[int, int]) -> None:
        """Retransmit own packets that are not below the number of one of these members."""
        for transmission, to in self._sent:
            if any(k in to and transmission.counts[k] + 1 >= n for k, n in lacking.items()):
                self._broadcast(Ret(epoch, transmission))

    def _on_again(self, t: Transmission) -> None:
        me, name = self._me, Name(t.source, t.number)
        assert t.packet is not None
        to, pseq = self._to(t.packet), t.counts[me] + 1
        if me in to and self.preq[t.source] <= pseq < self._acks[t.source].pseq[me]:
            self._again.setdefault(name, Kept(name, to, pseq, t.ack, t.packet))
            self._go_on()

    def _missing(self) -> list[tuple[int, int]]:
        """Sources of which packets are missing, with the number of the first."""
        found: list[tuple[int, int]] = []
        for j in range(self._size):
            here = {p.pseq for p in self._again.values() if p.name.source == j}
            wanted = range(self.preq[j], self._acks[j].pseq[self._me])
            found += [(j, number) for number in wanted if number not in here][:1]
        return found

    def _ask(self) -> None:
        if self.phase is Phase.RETS:
            for j, number in self._missing():
                self._broadcast(Ask(self.epoch, j, number))
            self._arm(ASK, self._config.repeat_s)

    def _go_on(self) -> None:
        """If all that was lost is here, put it into RRL, and begin the next epoch."""
        if self._missing():
            return
        again = sorted(self._again.values(), key=lambda p: p.name)
        place = {member: i for i, member in enumerate(self.order)}
        self.rrl.extend(
            repaired(self._rest, again, self.fail, lambda p: (place[p.name.source], p.pseq))
        )
        for p in again:
            j, number = p.name
            self.preq[j] = max(self.preq[j], p.pseq + 1)
            self.treq[j] = max(self.treq[j], number + 1)
        self._out.append(CancelTimer(ASK))
        self.phase = Phase.SEND
        self.epoch += 1
        self._asked = False
        early, self._early = self._early, deque()
        for i, (peer, message) in enumerate(early):
            if _epoch(message) > self.epoch:
                self._early.extend(list(early)[i:])
                break
            self._take(peer, message)

    # The end of the group

    def _watch(self) -> None:
        """The paper aborts the group if a member fails."""
        self._quiet = [count + 1 for count in self._quiet]
        silent = [k for k in range(self._size) if k != self._me and self._quiet[k] > WATCHES]
        if silent:
            names = ", ".join(self._view.members[k] for k in silent)
            self._abort(f"nothing is heard of {names}")
        else:
            self._arm(WATCH, self._config.silence_s / WATCHES)

    def _abort(self, why: str) -> None:
        self._broadcast(Abort())
        self._stop(why)

    def _stop(self, why: str) -> None:
        self.phase = Phase.STOPPED
        self._out += [CancelTimer(timer) for timer in self._timers]
        self._timers.clear()
        self._out.append(Suspect((), f"aborted: {why}"))

    # Frames and timers

    @property
    def _everybody(self) -> tuple[int, ...]:
        return tuple(range(self._size))

    def _sound(self, peer: int, message: LiteralMessage) -> bool:
        """Whether that member can have sent this."""
        size = self._size
        match message:
            case Placed() | Ret():
                t = message.transmission
                if t.source != peer or len(t.ack) != size:
                    return False
                if t.packet is None:
                    return isinstance(message, Placed)
                return t.packet.span.node == self._view.members[peer] and bool(self._to(t.packet))
            case Rst() | RstPak():
                return len(message.line) == size
            case RstAck():
                vectors: Sequence[Vector] = (message.line, message.preq, message.pseq)
                whole = sorted(message.order) == list(range(size))
                return whole and all(len(vector) == size for vector in vectors)
            case Ask():
                return message.source < size
            case Abort():
                return True

    def _to(self, packet: Packet) -> tuple[int, ...]:
        """The members that a packet is for, by their places."""
        if packet.destinations is None:
            return self._everybody
        found = {self._index[name] for name in packet.destinations if name in self._index}
        return tuple(sorted(found))

    def _broadcast(self, message: LiteralMessage) -> None:
        if self._size == 1:
            self._own.append(message)
        else:
            self._out.append(Send(message, self._view.id))

    def _arm(self, timer: str, delay_s: float, what: object = None) -> None:
        self._timers[timer] = what
        self._out.append(SetTimer(timer, delay_s))

    def _keep(self, timer: str, delay_s: float, what: object) -> bool:
        """See to it that the timer runs for this alone; whether it was set."""
        if what is None:
            if timer in self._timers:
                del self._timers[timer]
                self._out.append(CancelTimer(timer))
            return False
        if self._timers.get(timer) == what:
            return False
        self._arm(timer, delay_s, what)
        return True

    def _drain(self) -> Out:
        out = self._out
        self._out = []
        return out


def _epoch(message: LiteralMessage) -> int:
    if isinstance(message, Placed):
        return message.transmission.epoch
    return 0 if isinstance(message, Abort) else message.epoch
