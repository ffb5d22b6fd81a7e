"""What members do under all rules: send requests, make decisions, deliver what is confirmed.

After every input `_advance` does whatever has become possible: see what is held, confirm, deliver,
forget, send, and use the token. How a token is made anew and what confirms a decision is left to
`safe` and `literal`.

Services. `fifo`, `causal` and `agreed` packets are delivered when their decision is confirmed. A
`safe` packet is delivered once every member of the view is known to hold it, also one that is off
the ring, and what is ordered after it waits behind it.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import TypeAlias

from roundelay.core.contract import Conclusion, Item, Origin, Outlet
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
from roundelay.protocols.fc.chain import Chain, Entry
from roundelay.protocols.fc.config import Config
from roundelay.protocols.fc.messages import (
    ASK_RUNS,
    BATCH_MAX,
    FIRST_EPOCH,
    PART_DECISIONS,
    ROOT,
    Ask,
    Dec,
    DecisionId,
    Epoch,
    FcCodec,
    Message,
    Rejoin,
    Req,
    Run,
)
from roundelay.protocols.fc.messages import Chain as Copies
from roundelay.protocols.fc.requests import Requests

WAIT = "wait"
HOLD = "hold"
GRACE = "grace"
TICK = "tick"
"""Names of timers. Ticks come every `repeat_s`, for what is repeated and what is counted."""

ANSWER_PACKETS = 32
"""Most requests that are sent again for one frame that asks. Larger: the answer overflows the
receive buffer of the one who asked."""
EPOCHS_AHEAD_MAX = 2**32
"""By how much a member may count on: more than any group counts in a view."""
DOUBLINGS_MAX = 6
"""How often the wait for a token doubles if it is made anew in vain."""
ASKING_SILENCES = 10
"""A member that is heard and gets nothing is suspected after so many times `silence_s`. Smaller: a
slow application costs its node the view. Larger: a group waits long for a member that small frames
reach and large ones do not."""

_SAFE = Service.SAFE
_NO_REQUEST = Refuse("a request that no member can have sent")
NO_DECISION = Refuse("a decision that no member can have made")
NOT_ASKED = Refuse("an answer to what nobody asked")

Out: TypeAlias = list[Effect[Message]]


class Member:
    """One member of a group that runs FC."""

    codec = FcCodec()
    selective = False

    def __init__(self, node: NodeId, outlet: Outlet, config: Config) -> None:
        self.node = node
        self.config = config
        self._outlet = outlet
        self._out: Out = []
        self._tick = SetTimer(TICK, config.repeat_s)
        self._hold = SetTimer(HOLD, config.idle_s)
        self._silence_ticks = (
            ceil(config.silence_s / config.repeat_s) + 1
        )  # The first is cut short.
        self._wait_ticks = ceil(config.wait_s / config.repeat_s)

    def start(self, view: View) -> Out:
        size, me = len(view.members), view.members.index(self.node)
        self.view = view
        self.size = size
        self.me = me
        self.frozen = False
        self.static = not view.id.seq
        """A static group is view 0, which never ends."""
        self.quorum = size // 2 + 1
        self.requests = Requests(size, self.config.buffer_packets)
        self.chain = Chain(size, self.config.buffer_packets)
        self.ring: tuple[int, ...] = tuple(range(size))
        """The members that the token visits, as the last decision says."""
        self.version = 1
        self.sent = 0
        """Own requests."""
        self.held = 0
        """The number up to which all requests on the chain are here."""
        self.confirmed: DecisionId = ROOT
        self.settled: deque[Entry] = deque()
        """Decisions that are confirmed and not delivered."""
        self.delivered = 0
        """Packets."""
        self.done = 0
        """The number of the last decision that is delivered as a whole."""
        self.holds = [0] * size
        """By member: the confirmed number up to which it is known to hold everything."""
        self.stable = 0
        """The least of them."""
        self.holding = me == 0
        """Whether the token is here."""
        self.joiners: dict[int, None] = {}
        """Members that want to be on the ring again."""
        self.failures = 0
        """How often in a row the token was waited for in vain."""
        self.quiet = [0] * size
        """By member: ticks since it was heard."""
        self.stuck = [0] * size
        """By member: ticks since it was up to date, or got something."""
        self.idle_ticks = 0
        """Ticks since the chain has grown."""
        self._part = 0
        """How many packets of the first settled decision are delivered."""
        self._told = 0
        """The number of the last decision whose confirmation is recorded."""
        self._paced = False
        """Whether the token rests here."""
        self._asked = 0
        """Since the last tick: 1 if decisions were asked for, 2 if requests were."""
        self._asked_last = Run(me, 0, 0)
        """The last requests that were asked for."""
        self._attempts = 0
        """Ticks in a row at which something was asked for in vain."""
        self._unordered = 0
        """Ticks since an own request was sent that has no place."""
        self._more = True
        """Whether packets may wait in the outlet."""
        self._full = False
        """Whether as much is kept for others as may be."""
        self._id = view.id
        self._index = {member: i for i, member in enumerate(view.members)}
        self._traced = self._outlet.traced
        self._begin()
        if size > 1:
            self._out.append(self._tick)
            self._wait(0, size - 1)
        self._advance()
        return self._drain()

    def submit(self) -> Out:
        self._more = True
        if self._full or (self.size > 1 and self._allowance() <= 0):
            return []
        self._advance()
        return self._drain()

    def receive(self, origin: Origin, message: Message) -> Out:
        peer = self._index[origin.node]
        if peer != self.me:  # What it says itself is no news; of an earlier life, it is over.
            self._receive(peer, message)
            if not self.frozen:
                self._advance()
        return self._drain()

    def receive_many(self, origin: Origin, messages: Sequence[Message]) -> Out:
        peer = self._index[origin.node]
        if peer != self.me:
            for message in messages:
                if type(message) is not Req and not self.frozen:
                    self._advance()  # What came before may be what it waits for.
                self._receive(peer, message)
            if not self.frozen:
                self._advance()
        return self._drain()

    def expire(self, timer: str) -> Out:
        match timer:
            case "wait":
                self._timeout()
            case "hold":
                if self.holding:
                    self._decide()
            case "grace":
                self._grace_over()
            case "tick":
                self._on_tick()
            case _:
                raise AssertionError(f"unknown timer {timer}")
        self._advance()
        return self._drain()

    # For the rules to fill in

    def _begin(self) -> None:
        """A view begins."""
        raise NotImplementedError

    def _on_decision(self, peer: int, decision: Dec) -> None:
        """Its maker says so. It is sound in itself."""
        raise NotImplementedError

    def _on_copies(self, peer: int, decisions: tuple[Dec, ...]) -> None:
        """Decisions that were asked for. Each is sound in itself."""
        raise NotImplementedError

    def _on_word(self, peer: int, message: Message) -> None:
        """What only some rules know: promises, and what belongs to them."""
        raise NotImplementedError

    def _timeout(self) -> None:
        """The token did not come."""
        raise NotImplementedError

    def _grace_over(self) -> None:
        raise NotImplementedError

    def _confirm(self) -> None:
        """Confirm what can be confirmed, and see what others hold."""
        raise NotImplementedError

    def _have(self, number: int) -> tuple[int, ...]:
        """What is known to be held, by member, when this node has made a decision so numbered."""
        raise NotImplementedError

    def _epoch(self) -> Epoch:
        """In which the next decision is made."""
        raise NotImplementedError

    def _decided(self, decision: Dec) -> None:
        """An own decision is on the chain, and about to be sent."""
        raise NotImplementedError

    def _copies(self, first: int, last: int) -> list[Dec]:
        """Decisions with these numbers that are here."""
        return self.chain.since(first, last)

    def _fresh_runs(self, entry: Entry) -> tuple[Run, ...] | None:
        """The requests of a confirmed decision that are to be delivered; None if that must not
        go on."""
        assert entry.decision is not None
        return entry.decision.runs

    def _repeats(self) -> bool:
        """Whether a decision that nobody seems to have got is sent again."""
        return True

    def _wanted(self) -> tuple[int, int, int] | None:
        """Decisions that are missing: the first and the last number, and who has them."""
        raise NotImplementedError

    def _rejoin(self) -> Rejoin | None:
        """What to say in order to be put on the ring again; None if it is too early."""
        raise NotImplementedError

    def _readmit(self, peer: int, message: Rejoin) -> None:
        """A member wants to be on the ring again."""
        raise NotImplementedError

    # What others say

    def _receive(self, peer: int, message: Message) -> None:
        self.quiet[peer] = 0
        if type(message) is Req:
            self._on_request(message)
        elif self.frozen:
            return
        elif type(message) is Dec:
            if message.maker == peer and self._sound(message):
                self._on_decision(peer, message)
            else:
                self._out.append(NO_DECISION)
        elif type(message) is Copies:
            if all(map(self._sound, message.decisions)):
                self._on_copies(peer, message.decisions)
            else:
                self._out.append(NO_DECISION)
        elif type(message) is Ask:
            self._answer(peer, message)
        elif type(message) is Rejoin:
            self._readmit(peer, message)
        else:
            self._on_word(peer, message)

    def _on_request(self, m: Req) -> None:
        sender, packet = m.sender, m.packet
        if (
            self._index.get(packet.span.node) != sender
            or packet.destinations is not None
            or (sender == self.me and m.number > self.sent)
        ):
            self._out.append(_NO_REQUEST)
            return
        if self._traced:
            self._out.append(Record(Kind.RECEIVE, packet, self._id))
        self.requests.store(sender, m.number, packet)
        if self._asked & 2 and not self.frozen:
            last = self._asked_last
            if last.sender == sender and self.requests.arrived[sender] >= last.last:
                self._asked &= ~2  # The answer is here: ask for more at once.
                self._advance_held()
                self._ask_requests()

    def _sound(self, d: Dec) -> bool:
        """Whether a member of this view can have made this decision."""
        size, number, parent = self.size, d.number, d.parent
        if len(d.have) != size or d.maker >= size or d.maker not in d.ring:
            return False
        if max(d.epoch.regenerator, parent.epoch.regenerator, parent.maker) >= size:
            return False
        if parent.epoch > d.epoch or (number == 1 and parent != ROOT) or d.epoch < FIRST_EPOCH:
            return False
        if max(d.have) > number or d.confirmed.number > number or d.version > number + 1:
            return False
        packets = 0
        for sender, first, count in d.runs:
            packets += count
            if sender >= size or (sender == self.me and first + count - 1 > self.sent):
                return False
        return packets <= BATCH_MAX

    def _answer(self, peer: int, m: Ask) -> None:
        """Give another what it lacks, as far as it is here and fits."""
        if m.last:
            first = max(m.first, m.last - PART_DECISIONS + 1)
            if decisions := self._copies(first, m.last)[:PART_DECISIONS]:
                self._send(Copies(tuple(decisions)), peer)
        left = ANSWER_PACKETS
        for sender, first, count in m.runs:
            if sender >= self.size:
                self._out.append(NO_DECISION)
                return
            bodies = self.requests.bodies[sender]
            for number in range(first, first + min(count, left)):
                packet = bodies.get(number)
                if packet is not None:
                    left -= 1
                    self._send(Req(sender, number, packet), peer)

    # What can be done now

    def _advance(self) -> None:
        while True:
            if self.held < self.chain.tip.id.number:
                self._advance_held()
            self._confirm()
            if self.settled:
                self._deliver()
            self._forget()
            if self._more:
                self._pump()
            if not self.holding or not self._use():
                return

    def _advance_held(self) -> None:
        chain, requests, held = self.chain, self.requests, self.held
        tip = chain.tip.id.number
        while held < tip and requests.here(runs_of(chain.at(held + 1))):
            held += 1
        self.held = held

    def _deliver(self) -> None:
        """Deliver confirmed decisions whose requests are here, up to a safe packet that somebody
        may lack."""
        settled, requests, emit, view = self.settled, self.requests, self._out.append, self._id
        while settled:
            entry = settled[0]
            if not requests.here(runs_of(entry)):
                return
            number = entry.id.number
            runs = self._fresh_runs(entry)
            if runs is None:
                return
            if self._traced and number > self._told:
                self._tell_confirmed(number, runs)
            safe = number > self.stable
            place, index, part = 0, 0, self._part
            for sender, first, count in runs:
                bodies = requests.bodies[sender]
                for request in range(first, first + count):
                    packet = bodies[request]
                    place += 1
                    if place > part:
                        if safe and packet.service is _SAFE:
                            self._part = place - 1
                            return
                        self.delivered += 1
                        emit(Deliver(packet, view, (number, index)))
                    index += packet.span.count or 1
            self._part = 0
            self.done = number
            settled.popleft()

    def _tell_confirmed(self, number: int, runs: tuple[Run, ...]) -> None:
        self._told = number
        if not runs:
            self._out.append(Record(Kind.CONFIRM, None, self._id, (number, 0)))
        for packet, index in self._indexed(runs):
            self._out.append(Record(Kind.CONFIRM, packet.span, self._id, (number, index)))

    def _indexed(self, runs: tuple[Run, ...]) -> list[tuple[Packet, int]]:
        """The packets of a decision, and by how many messages each comes behind the first."""
        found: list[tuple[Packet, int]] = []
        index = 0
        for sender, first, count in runs:
            bodies = self.requests.bodies[sender]
            for request in range(first, first + count):
                packet = bodies[request]
                found.append((packet, index))
                index += packet.span.count or 1
        return found

    def _forget(self) -> None:
        """Forget what every member holds. If too much is kept for those who are behind, nothing new
        is sent: they are suspected. A static group goes on without them."""
        chain = self.chain
        if self.stable <= chain.floor and len(chain) < self.config.buffer_packets // 8:
            return
        line = min(self.stable, self.done)
        kept = chain.tip.packets - chain.at(chain.floor).packets + len(chain)
        if kept > self.config.buffer_packets and self.static:
            there = [n for i, n in enumerate(self.holds) if self._counts(i)]
            line = min(self.done, *there)
        if line > chain.floor:
            entry = chain.forget(line)
            for sender, number in enumerate(entry.ordered):
                self.requests.forget(sender, number)
            kept = chain.tip.packets - entry.packets + len(chain)
        self._full = kept > self.config.buffer_packets

    def _counts(self, member: int) -> bool:
        """Whether the group waits for this member: it is on the ring, or it is heard."""
        return member in self.ring or self.quiet[member] <= self._wait_ticks

    def _window(self) -> int:
        """How many more requests this node may send."""
        low = min(n for i, n in enumerate(self.holds) if i == self.me or self._counts(i))
        entry = self.chain.at(max(low, self.chain.floor))
        return self.config.window_packets - (self.sent - entry.ordered[self.me])

    def _allowance(self) -> int:
        """How many packets this node may send now. While an own request has no place yet, the last
        packet that waits is left to be filled: its request could get no place before that one."""
        if self.sent > self.chain.tip.ordered[self.me]:
            waiting = self._outlet.waiting - 1
            return min(waiting, self._window()) if waiting > 0 else 0
        return self._window()

    def _pump(self) -> None:
        """Send what waits, as far as the window allows."""
        if self._full:
            return
        alone = self.size == 1
        room = self.config.batch_packets if alone else self._allowance()
        while room > 0:
            packet = self._outlet.pull()
            if packet is None:
                self._more = False
                return
            room -= 1
            self.sent += 1
            if self._traced:
                self._out.append(Record(Kind.ORIGINATE, packet, self._id))
            self.requests.store(self.me, self.sent, packet)
            if not alone:
                self._out.append(Send(Req(self.me, self.sent, packet), self._id))

    # The token

    def _use(self) -> bool:
        """The token is here: decide, if there is a reason to; whether there was."""
        if self.requests.wanting(self.chain.tip.ordered) or self.joiners or self._hurries():
            self._decide()
            return True
        self._rest()
        return False

    def _rest(self) -> None:
        """Keep the token for a while."""
        if not self._paced and self.size > 1:
            self._paced = True
            self._out.append(self._hold)

    def _hurries(self) -> bool:
        """Whether others wait for a word about who holds the last request: it is passed on without
        a rest, for two rounds at most."""
        chain = self.chain
        last = chain.tip.decision
        if last is None or chain.real <= self.stable or last.number > chain.real + 2 * self.size:
            return False
        return any(last.have[member] < chain.real for member in self.ring)

    def _decide(self) -> None:
        """Make a decision, and thereby pass on the token."""
        ring = self.ring
        if self.joiners:
            ring = tuple(sorted({*ring, *self.joiners}))
            self.joiners.clear()
        self._make(ring, self._epoch())

    def _make(self, ring: tuple[int, ...], epoch: Epoch) -> None:
        """Make a decision on this ring, in this epoch."""
        parent, runs = self._base()
        evolved = ring != self.ring
        if evolved:
            self.ring = ring
            self.version += 1
        number = parent.number + 1
        decision = Dec(
            self.me,
            runs,
            number,
            self.version,
            ring,
            evolved,
            epoch,
            parent,
            self._have(number),
            self.confirmed,
        )
        if self._paced:
            self._paced = False
            self._out.append(CancelTimer(HOLD))
        self.holding = ring == (self.me,)
        self._put(decision)
        self._decided(decision)
        if self._traced:
            self._tell_order(decision)
        if self.size > 1:
            self._out.append(Send(decision, self._id))
            self._wait(self.me, self.me)

    def _base(self) -> tuple[DecisionId, tuple[Run, ...]]:
        """What the next decision extends, and the requests that it orders."""
        tip = self.chain.tip
        return tip.id, self.requests.choose(tip.ordered, self.config.batch_packets)

    def _tell_order(self, decision: Dec) -> None:
        key, view = decision.number, self._id
        if not decision.runs:
            self._out.append(Record(Kind.ORDER, None, view, (key, 0), 0))
        for packet, index in self._indexed(decision.runs):
            self._out.append(Record(Kind.ORDER, packet.span, view, (key, index), 0))

    def _put(self, decision: Dec) -> None:
        """Put a decision on the chain. What it takes off wants a place again."""
        for dropped in self.chain.put(decision):
            for run in dropped.runs:
                self.requests.recall(run.sender)
        self.held = min(self.held, decision.number - 1)
        self.idle_ticks = 0

    def _drop_token(self) -> None:
        self.holding = False
        if self._paced:
            self._paced = False
            self._out.append(CancelTimer(HOLD))

    def _follows(self, decision: Dec) -> bool:
        """Whether this node has the token after that decision."""
        ring = decision.ring
        place = ring.index(decision.maker) + 1
        return ring[place if place < len(ring) else 0] == self.me

    def _wait(self, maker: int, last: int) -> None:
        """Wait for the next decision, after one by `maker`: the member that follows it waits
        shortest. `last` stands in for a maker that there is not yet."""
        ring, me = self.ring, self.me
        if me not in ring:
            distance = len(ring) + me
        elif self.chain.tip.decision is None:
            distance = (me - last) % self.size or self.size
        else:
            distance = (ring.index(me) - ring.index(maker)) % len(ring) or len(ring)
        wait_s = self.config.wait_s
        if self.failures:
            doubled_s = wait_s * 2 ** min(self.failures, DOUBLINGS_MAX)
            wait_s = min(doubled_s, max(wait_s, self.config.silence_s))
        self._out.append(SetTimer(WAIT, wait_s + self.config.stagger_s * (distance - 1)))

    # What takes too long

    def _on_tick(self) -> None:
        self._out.append(self._tick)
        last = self.chain.tip.decision
        self.idle_ticks += 1
        for member in range(self.size):
            self.quiet[member] += 1
            behind = self.holds[member] < self.confirmed.number
            self.stuck[member] = self.stuck[member] + 1 if behind else 0
        self._ask_again()
        unheard = self.idle_ticks > 1  # Whoever is next may let the token rest for a tick.
        if unheard and last is not None and last.maker == self.me and self._repeats():
            self._send(last, last.ring[(last.ring.index(self.me) + 1) % len(last.ring)])
        self._repeat_requests()
        if self.me not in self.ring and (word := self._rejoin()) is not None:
            self._send(word)
        if not self.static:
            self._suspect()

    def _ask_again(self) -> None:
        self._asked = 0
        wanted, lacking = self._wanted(), self.held < self.chain.number
        self._attempts = self._attempts + 1 if wanted is not None or lacking else 0
        if wanted is not None:
            self._ask_decisions()
        if lacking and self._attempts > 1:
            self._ask_requests()

    def _ask_decisions(self) -> None:
        """Ask for decisions that are missing, once until the next tick."""
        wanted = self._wanted()
        if wanted is None or self._asked & 1:
            return
        first, last, peer = wanted
        self._asked |= 1
        self._send(Ask(max(first, last - PART_DECISIONS + 1), last), self._other(peer))

    def _ask_requests(self) -> None:
        """Ask for requests that were ordered and are not here, once until the next tick."""
        if self._asked & 2:
            return
        self._asked |= 2
        wanted: list[Run] = []
        left, peer = ANSWER_PACKETS, self.me
        for run, maker in self._lacking():
            if not wanted:
                peer = maker
            wanted.append(Run(run.sender, run.first, min(run.count, left)))
            left -= wanted[-1].count
            if not left or len(wanted) == ASK_RUNS:
                break
        if wanted:
            self._asked_last = wanted[-1]
            self._send(Ask(0, 0, tuple(wanted)), self._other(peer))

    def _lacking(self) -> Iterator[tuple[Run, int]]:
        """Requests on the chain that are not here, and the maker of their decision."""
        for number in range(self.held + 1, self.chain.number + 1):
            decision = self.chain.at(number).decision
            assert decision is not None
            for run in self.requests.lacking(decision.runs):
                yield run, decision.maker

    def _other(self, peer: int) -> int:
        """Whom to ask: first `peer`, then the others in turn."""
        others = [place for place in range(self.size) if place != self.me]
        before = others.index(peer) if peer != self.me else 0
        return others[(before + max(0, self._attempts - 1) // 2) % len(others)]

    def _repeat_requests(self) -> None:
        """Send the first own requests that have no place again, ever more rarely."""
        first = self.chain.tip.ordered[self.me] + 1
        if first > self.sent:
            self._unordered = 0
            return
        self._unordered += 1
        if self._unordered % self._wait_ticks == 0 and self._unordered.bit_count() <= 2:
            for number in range(first, min(self.sent, first + 7) + 1):
                self._send(Req(self.me, number, self.requests.bodies[self.me][number]))

    def _suspect(self) -> None:
        """Tell membership of members that are gone, and of a view without a majority."""
        limit = self._silence_ticks
        masked = [i for i in range(self.size) if i not in self.ring and i != self.me]
        gone = [i for i in masked if self.quiet[i] >= limit]
        if gone and min(self.quiet[i] for i in gone) % limit == 0:
            self._accuse(gone, "silent and off the ring")
            return
        if self.idle_ticks and self.idle_ticks % limit == 0:
            self._out.append(Suspect((), "no majority answers"))
            return
        deaf = [i for i in range(self.size) if self.stuck[i] and i != self.me]
        if self._full:
            behind = [i for i in deaf if self.holds[i] == self.stable]
            self._accuse(behind, "too far behind")
            return
        deaf = [i for i in deaf if self.stuck[i] % (ASKING_SILENCES * limit) == 0]
        self._accuse(deaf, "it fails to receive")

    def _accuse(self, places: Sequence[int], reason: str) -> None:
        if places:
            self._out.append(Suspect(tuple(self.view.members[i] for i in places), reason))

    # The end of a view

    def freeze(self) -> bytes:
        raise NotImplementedError

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        raise NotImplementedError

    def absorb(self, item: Item) -> list[Record]:
        raise NotImplementedError

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        raise NotImplementedError

    def _send(self, message: Message, to: int | None = None) -> None:
        peer = None if to is None else self.view.members[to]
        self._out.append(Send(message, self._id, peer))

    def _drain(self) -> Out:
        out, self._out = self._out, []
        return out


def runs_of(entry: Entry) -> tuple[Run, ...]:
    return () if entry.decision is None else entry.decision.runs
