"""What members do under all rules: hear others, make decisions, pass on the token.

After every input `_advance` does whatever has become possible: see what is held, confirm, deliver,
forget, send, and use the token. How a token is made anew and what confirms a decision is left to
`safe` and `literal`.
"""

from abc import abstractmethod
from collections.abc import Sequence

from roundelay.core.contract import Origin
from roundelay.core.effects import (
    CancelTimer,
    Kind,
    Record,
    Refuse,
    Send,
    SetTimer,
)
from roundelay.core.ids import View
from roundelay.protocols.fc.delivery import Delivery
from roundelay.protocols.fc.messages import (
    BATCH_MAX,
    FIRST_EPOCH,
    ROOT,
    Ask,
    Dec,
    DecisionId,
    Epoch,
    Message,
    Rejoin,
    Req,
    Run,
)
from roundelay.protocols.fc.messages import Chain as Copies
from roundelay.protocols.fc.state import (
    HOLD,
    NO_DECISION,
    NOT_ASKED,
    WAIT,
    Out,
)

DOUBLINGS_MAX = 6
"""How often the wait for a token doubles if it is made anew in vain."""

_NO_REQUEST = Refuse("a request that no member can have sent")


class Member(Delivery):
    """One member of a group that runs FC, under whatever rules."""

    # For the rules to fill in

    @abstractmethod
    def _begin(self) -> None:
        """A view begins."""

    @abstractmethod
    def _on_decision(self, peer: int, d: Dec) -> None:
        """Its maker says so. It is sound in itself."""

    @abstractmethod
    def _on_copies(self, peer: int, decisions: tuple[Dec, ...]) -> None:
        """Decisions that were asked for. Each is sound in itself."""

    def _on_word(self, peer: int, message: Message) -> None:
        """What only some rules know: promises, and what belongs to them."""
        self._out.append(NOT_ASKED)

    @abstractmethod
    def _timeout(self) -> None:
        """The token did not come."""

    def _grace_over(self) -> None:
        """Whoever was asked had the time to answer."""
        raise AssertionError("these rules ask nobody")

    @abstractmethod
    def _confirm(self) -> None:
        """Confirm what can be confirmed, and see what others hold."""

    def _comes_after(self, cause: DecisionId) -> bool:
        """Whether the next decision comes after this one."""
        return True

    @abstractmethod
    def _have(self, number: int) -> tuple[int, ...]:
        """What is known to be held, by member, when this node has made a decision so numbered."""

    @abstractmethod
    def _epoch(self) -> Epoch:
        """In which the next decision is made."""

    @abstractmethod
    def _decided(self, decision: Dec) -> None:
        """An own decision is on the chain, and about to be sent."""

    @abstractmethod
    def _readmit(self, peer: int, m: Rejoin) -> None:
        """A member wants to be on the ring again."""

    # Inputs

    def start(self, view: View) -> Out:
        self._reset(view)
        self._begin()
        if self.size > 1:
            self._out.append(self._tick)
            self._wait(0, self.size - 1)
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
        if self.requests.store(sender, m.number, packet) and m.cause.number > self.confirmed.number:
            self.requests.causes[sender][m.number] = m.cause
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

    # The token

    def _use(self) -> bool:
        """The token is here: decide, if there is a reason to; whether there was."""
        if (
            self.requests.wanting(self.chain.tip.ordered, self._comes_after)
            or self.joiners
            or self._hurries()
        ):
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
        return tip.id, self.requests.choose(
            tip.ordered, self.config.batch_packets, self._comes_after
        )

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
