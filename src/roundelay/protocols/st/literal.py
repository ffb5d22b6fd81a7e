"""The engine under the rules of the paper: to be shown, not used.

Names are the paper's, in small letters; its recovery is in `literal_recovery`. After
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

from collections.abc import Sequence

from roundelay.core.contract import Origin
from roundelay.core.effects import Kind, Receipt, Record
from roundelay.core.ids import Packet, View
from roundelay.protocols.st.literal_messages import (
    Abort,
    Ask,
    LiteralMessage,
    Ret,
    Rst,
    RstAck,
    RstPak,
    Vector,
)
from roundelay.protocols.st.literal_recovery import LiteralRecovery
from roundelay.protocols.st.literal_state import (
    HOLD,
    NO_MEMBER,
    PACK,
    READY,
    WATCH,
    WATCHES,
    Kept,
    Out,
    Phase,
    epoch_of,
)
from roundelay.protocols.st.messages import Name, Placed, Transmission


class LiteralMember(LiteralRecovery):
    """One member of a static group that runs ST as the paper has it."""

    def start(self, view: View) -> Out:
        self._reset(view)
        self._arm(READY, self._config.ready_s)
        if self._size > 1:
            self._arm(WATCH, self._config.silence_s / WATCHES)
        self._advance()
        return self._drain()

    def submit(self) -> Out:
        self._advance()
        return self._drain()

    def receive(self, origin: Origin, message: LiteralMessage) -> Out:
        peer = self._to.index[origin.node]
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
            self._out.append(NO_MEMBER)
            return
        transmission = message.transmission if isinstance(message, Placed | Ret) else None
        if transmission is not None and transmission.packet is not None and self._traced:
            self._out.append(Record(Kind.RECEIVE, transmission.packet, self._view.id))
        epoch = epoch_of(message)
        if epoch > self.epoch:
            if len(self._early) < 4 * self._config.buffer_packets:
                self._early.append((peer, message))
            return
        if epoch == self.epoch or isinstance(message, Ask | Abort):
            self._take(peer, message)

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
        to = self._to.everybody if t.packet is None else self._to(t.packet)
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
