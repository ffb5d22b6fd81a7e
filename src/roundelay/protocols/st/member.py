"""The engine under the safe rules: what a member does when something is to be sent, is heard, or
takes too long.

After every input `_advance` does whatever has become possible: hear what is on the channel, agree,
deliver, send. If a packet was missed, `recovery` ends the epoch.

Services. `fifo`, `causal`, `agreed` and `safe` packets are all delivered once every member that
they are for has them, and is known to know that of the others.

Destinations. A packet for nobody of the view is not sent at all. The sender of a packet that is not
for itself has its receipt once all members that it is for are known to have it.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from roundelay.core.contract import Conclusion, Item, Origin, Outlet
from roundelay.core.effects import (
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
from roundelay.protocols.st import ending
from roundelay.protocols.st.config import Config
from roundelay.protocols.st.lists import Collected, List, own_max, parts
from roundelay.protocols.st.logs import Entry, Logs
from roundelay.protocols.st.medium import REFLECTOR, Channel, Medium, Reflected
from roundelay.protocols.st.messages import (
    Again,
    Done,
    ListPart,
    Message,
    Name,
    Placed,
    Poll,
    Raised,
    Reset,
    StCodec,
    Taken,
    Transmission,
    Want,
)
from roundelay.protocols.st.recovery import Recovery
from roundelay.wire.primitives import Reason, WireError

READY = "ready"
REPEAT = "repeat"
WATCH = "watch"
"""Names of timers."""

STUCK_SILENCES = 4
"""If packets wait and nothing is delivered for so many times `silence_s`, the view ends."""
WATCHES = 4
"""How often silence is looked at before it is too long."""

_NO_MEMBER = Refuse("a transmission that no member can have sent")
_NO_LIST = Refuse("a list that no member can have made")

Out: TypeAlias = list[Effect[Message]]


class StMember:
    """One member of a group that runs ST."""

    codec = StCodec()
    selective = True

    def __init__(self, node: NodeId, outlet: Outlet, config: Config) -> None:
        self.node = node
        self.config = config
        self._outlet = outlet
        self._out: Out = []
        self._repeat = SetTimer(REPEAT, config.repeat_s)
        self._watch = SetTimer(WATCH, config.silence_s / WATCHES)

    def start(self, view: View) -> Out:
        size, me = len(view.members), view.members.index(self.node)
        self.view = view
        self.size = size
        self.me = me
        self.frozen = False
        make = Reflected if self.config.medium == "reflector" else Channel
        self.medium: Medium = make(view, me, self._out)
        self.logs = Logs(size, me, 0)
        self.recovery: Recovery | None = None
        self.last: Collected | None = None
        """Lists of the epoch before, as long as somebody may still be in it."""
        self.behind: set[int] = set()
        """Members that may still be in the epoch before: they were not heard in this one."""
        self.afar: deque[Entry] = deque()
        """Own packets that are not for this node and whose receipt is due."""
        self.rooms = [self.config.buffer_packets] * size
        """By member: packets that it has room for."""
        self.quiet = [0] * size
        """By member: how often in a row it was not heard between two looks."""
        self.stuck = 0
        """Looks at which something waited, and nothing had been delivered since the one before."""
        self._delivered = 0
        self._seen_done = (0, 0)
        """The epoch and how much was delivered, at the last look."""
        self._told_room = self.config.buffer_packets
        """What this node last said that it had room for."""
        self._untold = 0
        """Packets that were heard since this node last said something."""
        self._news = False
        """Whether there is something to acknowledge."""
        self._armed = ""
        """What the timer waits for: a word that is due soon, or that this node is there."""
        self._polled: set[int] = set()
        """Members that were asked for a word since the last repetition."""
        self._more = True
        """Whether packets may wait in the outlet."""
        self._kept_max = own_max(size)
        """Own packets that this node may keep: a list of them must be one that others can read."""
        self._id = view.id
        self._index = {member: i for i, member in enumerate(view.members)}
        self._everybody = tuple(range(size))
        self._places: dict[tuple[NodeId, ...], tuple[int, ...]] = {}
        self._traced = self._outlet.traced
        if size > 1:
            # Members begin a view together, and must not all repeat themselves at the same time:
            # what answers one of them would again and again be lost among what the others say.
            first_s = self.config.repeat_s * (size + me) / size
            self._out += (SetTimer(REPEAT, first_s), self._watch)
            self._arm("ready")
        self._advance()
        return self._drain()

    def submit(self) -> Out:
        self._more = True
        self._advance()
        return self._drain()

    def receive(self, origin: Origin, message: Message) -> Out:
        self._receive(self._index[origin.node], message)
        if not self.frozen:
            self._advance()
        return self._drain()

    def receive_many(self, origin: Origin, messages: Sequence[Message]) -> Out:
        peer = self._index[origin.node]
        for message in messages:
            self._receive(peer, message)
        if not self.frozen:
            self._advance()
        return self._drain()

    def expire(self, timer: str) -> Out:
        match timer:
            case "ready":
                self._armed = ""
                if self.recovery is None and not self.medium.waiting:
                    self._say()
                else:
                    self._arm("ready")
            case "repeat":
                self._out.append(self._repeat)
                self.medium.repeat()
                self._polled.clear()
                self.logs.forget()
                if self.recovery is not None:
                    self._repeat_recovery(self.recovery)
            case "watch":
                self._out.append(self._watch)
                self._suspect()
            case _:
                raise AssertionError(f"unknown timer {timer}")
        self._advance()
        return self._drain()

    # What others say

    def _receive(self, peer: int, message: Message) -> None:
        self.quiet[peer] = 0
        if self.frozen:
            return
        if isinstance(message, Placed | Raised | Taken):
            if isinstance(message, Taken) or self._sound(message.transmission):
                self.medium.receive(peer, message)
            else:
                self._out.append(_NO_MEMBER)
            return
        if peer == self.me:
            return
        match message:
            case Poll():
                self._news = True
                self._arm("ack")
            case Reset():
                if self._concerns(message.epoch):
                    self._stop()
                elif message.epoch == self.logs.epoch - 1:
                    self._send(Done(message.epoch, self._everybody), peer)
            case ListPart():
                if self._concerns(message.epoch):
                    self._take_part(message)
            case Want():
                self._answer(peer, message)
            case Again():
                self._take_again(message)
            case Done():
                if peer not in message.members or max(message.members) >= self.size:
                    self._out.append(_NO_MEMBER)
                elif self._concerns(message.epoch) and self.recovery is not None:
                    done = self.recovery.done
                    if self.me in done or self.me not in message.members:
                        done.update(message.members)

    def _concerns(self, epoch: int) -> bool:
        """Whether something is about the end of this epoch. What is about the next one tells that
        everybody is done with this one."""
        if epoch == self.logs.epoch + 1:
            self._all_done()
        return epoch == self.logs.epoch

    def _sound(self, t: Transmission) -> bool:
        """Whether a member of this view can have sent this transmission."""
        packet = t.packet
        if t.source >= self.size or len(t.ack) != self.size:
            return False
        if packet is not None and packet.span.node != self.view.members[t.source]:
            return False
        return packet is None or bool(self._to(packet))

    def _to(self, packet: Packet) -> tuple[int, ...]:
        """The members that a packet is for, by their places."""
        names = packet.destinations
        if names is None:
            return self._everybody
        places = self._places.get(names)
        if places is None:
            found = {self._index[name] for name in names if name in self._index}
            places = self._places[names] = tuple(sorted(found))
            if len(self._places) > 4 * self.config.buffer_packets:
                del self._places[next(iter(self._places))]
        return places

    def _hear(self, t: Transmission) -> None:
        """A transmission is heard at its place on the channel."""
        logs = self.logs
        self.quiet[t.source] = 0
        if t.epoch == logs.epoch + 1:
            self._all_done()
            logs = self.logs
        if t.epoch != logs.epoch:
            return
        if t.packet is not None and self._traced:
            self._out.append(Record(Kind.RECEIVE, t.packet, self._id))
        if self.recovery is not None:
            if t.packet is not None and self.me in self._to(t.packet):
                self.recovery.keep(Name(t.source, t.number), t.packet)
                self._plan(self.recovery)
            return
        if t.counts[self.me] < logs.got[t.source] or logs.goes_back(t) or self._invented(t):
            self._out.append(_NO_MEMBER)
            return
        if self.behind:
            self.behind.discard(t.source)
            if not self.behind:
                self.last = None
        self.rooms[t.source] = t.room
        logs.note(t)
        to = () if t.packet is None else self._to(t.packet)
        if not logs.hear(t, to):
            self._stop()
            return
        if t.packet is not None:
            self._news = True
            if t.source != self.me:
                self._untold += 1

    def _invented(self, t: Transmission) -> bool:
        """Whether it tells of own packets that were never sent, is not this node's own, or is more
        than members can have sent."""
        logs = self.logs
        if t.ack[self.me] > logs.next or logs.too_far(t):
            return True
        if t.packet is not None and logs.waiting > 2 * (self.config.buffer_packets + self.size):
            return True  # Members send no more than there is room for.
        if t.source != self.me or t.packet is None:
            return False
        entry = logs.known.get(Name(self.me, t.number))
        return entry is None or entry.packet != t.packet

    # What can be done now

    def _advance(self) -> None:
        heard = self.medium.heard
        while True:
            while heard:
                self._hear(heard.popleft())
            if self.recovery is None:
                self._deliver()
                self._transmit()
            elif len(self.recovery.done) == self.size:
                self._go_on(self.recovery)
                continue
            if not heard:
                break
        if self.recovery is None and self.size > 1 and self._news:
            if self._untold >= self.config.ack_packets and not self.medium.waiting:
                self._say()
            else:
                self._arm("ack")

    def _deliver(self) -> None:
        """Pre-acknowledge and deliver what may be."""
        logs, emit, view, traced = self.logs, self._out.append, self._id, self._traced
        gap = logs.gap
        if not gap and logs.accepted:
            for entry in logs.agree():
                self._news = True
                if traced:
                    emit(Record(Kind.STABLE, entry.packet.span, view, level=1))
        for source in gap:
            if source not in self._polled and source != self.me:
                self._polled.add(source)
                self._send(Poll(), source)
        if logs.agreed:
            for entry in logs.deliverable():
                if traced:
                    emit(Record(Kind.STABLE, entry.packet.span, view, level=2))
                emit(Deliver(entry.packet, view))
                self._delivered += 1
            if self._told_room < self.size <= self._room():
                self._news = True  # Others wait to hear that there is room.
            if self.size == 1:
                logs.forget()  # Nothing is ever repeated.
        self._give_receipts()

    def _give_receipts(self) -> None:
        """Of own packets that are not for this node, once those that they are for have them."""
        acks, me = self.logs.acks, self.me
        while self.afar:
            entry = self.afar[0]
            if any(acks[member][me] <= entry.name.number for member in entry.to):
                return
            self.afar.popleft()
            self._out.append(Receipt(entry.packet.span, self._id))

    def _window(self) -> int:
        """How many more packets this node may send."""
        room = min(self.rooms)
        if room:
            room = max(1, room // self.size)
        logs = self.logs
        window = logs.least() + min(self.config.window_packets, room) - logs.next
        return min(window, self._kept_max - logs.kept)

    def _room(self) -> int:
        """Packets that this node has room for."""
        return max(0, self.config.buffer_packets - self.logs.waiting)

    def _transmit(self) -> None:
        """Send what waits, as far as the window allows."""
        if not self._more:
            return
        window = self._window()
        while window > 0:
            packet = self._outlet.pull()
            if packet is None:
                self._more = False
                return
            self._out.append(Record(Kind.ORIGINATE, packet, self._id))
            to = self._to(packet)
            if not to:
                if packet.span.count:
                    self._out.append(Receipt(packet.span, self._id))
                continue
            window -= 1
            name = self.logs.make(to, packet)
            if self.me not in to and packet.span.count:
                self.afar.append(self.logs.known[name])
            self._put(packet)
            self.logs.count(to)

    def _say(self) -> None:
        """Tell what was heard, without a packet."""
        self._put(None)

    def _put(self, packet: Packet | None) -> None:
        """Put a transmission on the channel."""
        logs = self.logs
        self._told_room = self._room()
        self.medium.send(
            Transmission(
                self.me,
                logs.epoch,
                logs.next,
                tuple(logs.sent),
                tuple(logs.expected),
                logs.pack(),
                logs.done(),
                self._told_room,
                packet,
            )
        )
        self._news = False
        self._untold = 0
        self._arm("ready")

    def _arm(self, what: str) -> None:
        """See to it that this node says something in time."""
        if self.size == 1 or self.frozen or self._armed == what == "ack":
            return
        self._armed = what
        delay_s = self.config.ack_s if what == "ack" else self.config.ready_s
        self._out.append(SetTimer(READY, delay_s))

    # The end of an epoch

    def _stop(self) -> None:
        """A recovery begins."""
        if self.recovery is not None:
            return
        self.recovery = Recovery(self.logs)
        self._send(Reset(self.logs.epoch))
        self._tell_list(self.recovery.list, None)
        self._plan(self.recovery)

    def _tell_list(self, made: List, peer: int | None) -> None:
        for part in parts(made, self.config.part_bytes):
            self._send(part, peer)

    def _take_part(self, m: ListPart) -> None:
        self._stop()
        recovery = self.recovery
        assert recovery is not None
        try:
            if recovery.collected.take(m):
                self._plan(recovery)
        except WireError:
            self._out.append(_NO_LIST)

    def _plan(self, recovery: Recovery) -> None:
        """See whether something more is here, and say so if it is all."""
        recovery.plan()
        if recovery.order is None or self.me in recovery.done:
            return
        if recovery.complete:
            recovery.done.add(self.me)
            self._tell_done(recovery)
        else:
            self._ask(recovery)

    def _tell_done(self, recovery: Recovery, peer: int | None = None) -> None:
        self._send(Done(recovery.epoch, tuple(sorted(recovery.done))), peer)

    def _ask(self, recovery: Recovery) -> None:
        for peer, want in recovery.questions():
            if peer != self.me:
                self._send(want, peer)

    def _repeat_recovery(self, recovery: Recovery) -> None:
        if recovery.young:
            recovery.young = False
            return
        if recovery.collected.missing:
            self._send(Reset(recovery.epoch))
        if self.me in recovery.done:
            self._tell_done(recovery)
            self._send(Want(recovery.epoch, ()))  # Who has gone on says so.
        else:
            recovery.attempts += 1
            recovery.asked.clear()
            self._ask(recovery)

    def _answer(self, peer: int, m: Want) -> None:
        """Give another what it lacks at the end of an epoch."""
        recovery, last = self.recovery, self.last
        if recovery is not None and m.epoch == recovery.epoch:
            lists: Mapping[int, List] = recovery.collected.lists
            if self.me in recovery.done:
                self._tell_done(recovery, peer)
        elif m.epoch == self.logs.epoch - 1 and last is not None:
            lists = last.lists
            self._send(Done(m.epoch, self._everybody), peer)
        else:
            if m.epoch == self.logs.epoch - 1:
                self._send(Done(m.epoch, self._everybody), peer)
            elif m.epoch == self.logs.epoch:
                self._stop()
            return
        for member in m.lists:
            if member in lists:
                self._tell_list(lists[member], peer)
        for name in m.packets:
            packet = self._packet(name)
            if packet is not None:
                self._send(Again(m.epoch, name, packet), peer)

    def _packet(self, name: Name) -> Packet | None:
        if self.recovery is not None:
            return self.recovery.packet(name)
        entry = self.logs.known.get(name)
        return None if entry is None else entry.packet

    def _take_again(self, m: Again) -> None:
        recovery = self.recovery
        if recovery is None or m.epoch != recovery.epoch or recovery.order is None:
            return
        source = m.name.source
        if source >= self.size or self.view.members[source] != m.packet.span.node:
            self._out.append(_NO_MEMBER)
            return
        if m.name in recovery.lacking():
            if self._traced:
                self._out.append(Record(Kind.RECEIVE, m.packet, self._id))
            recovery.keep(m.name, m.packet)
            self._plan(recovery)

    def _all_done(self) -> None:
        """Somebody is in the next epoch, so everybody is done with this one."""
        recovery = self.recovery
        if recovery is not None and self.me in recovery.done:
            recovery.done.update(range(self.size))
            self._go_on(recovery)

    def _go_on(self, recovery: Recovery) -> None:
        """All have all: deliver what is left, and begin the next epoch."""
        claimed = {entry.name for entry in self.logs.agreed}
        for item in recovery.left():
            packet = recovery.packet(item.name)
            assert packet is not None, "a member was done without a packet"
            if self._traced and item.name not in claimed:
                self._out.append(Record(Kind.STABLE, packet.span, self._id, level=1))
            self._out.append(Deliver(packet, self._id))
        self.last = recovery.collected
        self.recovery = None
        self.logs = Logs.after(self.logs, recovery.collected.lists)
        self.behind = set(range(self.size)) - {self.me}
        self._give_receipts()
        self._arm("ack")
        self._news = True
        self._more = True

    # What takes too long

    def _suspect(self) -> None:
        """Look who is silent. Where there is a reflector, it alone hears everybody, and everybody
        hears it."""
        for member in range(self.size):
            self.quiet[member] += 1
        limit = WATCHES + 1
        silent = [m for m in range(self.size) if m != self.me and self.quiet[m] >= limit]
        if self.config.medium == "reflector" and self.me != REFLECTOR:
            silent = [m for m in silent if m == REFLECTOR]
        if silent and min(self.quiet[m] for m in silent) % limit == 0:
            names = tuple(self.view.members[m] for m in silent)
            self._out.append(Suspect(names, "nothing is heard of it"))
        done = (self.logs.epoch, self._delivered)
        if done != self._seen_done or not (self.recovery or self._waits):
            self._seen_done, self.stuck = done, 0
            return
        self.stuck += 1
        if self.stuck % (STUCK_SILENCES * WATCHES) == 0:
            self._out.append(self._accuse())

    @property
    def _waits(self) -> bool:
        """Whether packets are here that are not delivered, or were sent and not acknowledged."""
        return self.logs.waiting > 0 or self.logs.least() < self.logs.next

    def _accuse(self) -> Suspect:
        """Nothing comes of the view: say who keeps it from going on, if that is known."""
        members, logs, recovery = self.view.members, self.logs, self.recovery
        if recovery is None:
            late = [
                k for k in range(self.size) if logs.acks[k][self.me] < logs.next and k != self.me
            ]
            if late:
                return Suspect(tuple(members[k] for k in late), "nothing is acknowledged")
            return Suspect((), "nothing is agreed on")
        if self.me in recovery.done:
            late = [k for k in range(self.size) if k not in recovery.done]
            return Suspect(tuple(members[k] for k in late), "it fails to receive")
        return Suspect((), "what was lost does not come")

    # The end of a view

    def freeze(self) -> bytes:
        self.frozen = True
        if self.recovery is None:
            self.recovery = Recovery(self.logs)
        return ending.summarize(self.logs.epoch, self.logs.done())

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        self._read(summaries)
        recovery = self.recovery
        assert recovery is not None, "a frozen member has a list"
        items = [
            item
            for collected in (self.last, recovery.collected, recovery.ahead)
            if collected is not None
            for _, made in sorted(collected.lists.items())
            for item in ending.list_items(made, self.config.part_bytes)
        ]
        packets = {name: entry.packet for name, entry in self.logs.known.items()} | recovery.late
        return [*items, *(ending.packet_item(name, packets[name]) for name in sorted(packets))]

    def absorb(self, item: Item) -> list[Record]:
        absorbed = ending.unpack(item, self.view.members)
        recovery = self.recovery
        assert recovery is not None, "a frozen member has a list"
        if isinstance(absorbed, ListPart):
            self._lists(absorbed.epoch).take(absorbed)
            return []
        name, packet = absorbed
        if name.source == self.me and name.number >= self.logs.next:
            raise WireError(Reason.IMPLAUSIBLE, "a packet that this node never sent")
        if name not in self.logs.known:
            recovery.late.setdefault(name, packet)
        return [Record(Kind.RECEIVE, packet, self._id)]

    def _lists(self, epoch: int) -> Collected:
        """Where lists of an epoch are kept at the end of a view: those of the epoch before, of this
        one, or of the next one, if others are ahead."""
        recovery = self.recovery
        assert recovery is not None
        if epoch == recovery.epoch:
            return recovery.collected
        if epoch == recovery.epoch - 1:
            self.last = self.last or Collected(self.size, epoch)
            return self.last
        if epoch == recovery.epoch + 1:
            if recovery.ahead is None:
                recovery.ahead = Collected(self.size, epoch)
            return recovery.ahead
        raise WireError(Reason.IMPLAUSIBLE, "a list of an epoch that is not here")

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        read = self._read(summaries)
        recovery = self.recovery
        assert recovery is not None, "a frozen member has a list"
        known = self.logs.known
        packets = {name: entry.packet for name, entry in known.items()} | recovery.late
        delivered = frozenset(name for name, entry in known.items() if entry.delivered)
        end = ending.End(self.me, self._id, read, packets, delivered)
        here = {*read, *(self._index[node] for node in obligations if node in self._index)}
        lists: Mapping[int, List] = recovery.collected.lists
        before: Mapping[int, List] = {} if self.last is None else self.last.lists
        ahead = {} if recovery.ahead is None else recovery.ahead.lists
        ahead = {member: made for member, made in ahead.items() if member in here}
        if ahead or max(summary.epoch for summary in read.values()) > recovery.epoch:
            end.earlier(lists)
            lists, before = ahead, lists
        elif len(lists) < self.size:
            lists = {member: made for member, made in lists.items() if member in here}
        end.last(lists, ending.heard(sorted(read), lists, before, self.size))
        receipts = [
            Receipt(entry.packet.span, self._id) for entry in self.afar if entry.packet.span.count
        ]
        return Conclusion(tuple(end.regular), (*end.late, *receipts))

    def _read(self, summaries: Mapping[NodeId, bytes]) -> dict[int, ending.Summary]:
        read: dict[int, ending.Summary] = {}
        for node, summary in summaries.items():
            if node not in self._index:
                raise WireError(Reason.IMPLAUSIBLE, f"{node} was not in this view")
            read[self._index[node]] = ending.read_summary(summary, self.size)
        return read

    def _send(self, message: Message, to: int | None = None) -> None:
        if self.size > 1:
            peer = None if to is None else self.view.members[to]
            self._out.append(Send(message, self._id, peer))

    def _drain(self) -> Out:
        out = self._out.copy()
        self._out.clear()
        return out
