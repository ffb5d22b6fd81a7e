"""The safe rules: a majority promises before a token is made anew, and holds what is confirmed.

Theory of operation
===================

An *epoch* is the time of one token. Since it has one token, its decisions form one line, and every
member that has taken in a decision of the epoch has that line up to there. Whoever waits for the
token in vain asks all members to promise that they take nothing of an earlier epoch any more. A
majority of promises suffices: of the chains that they tell of, the one whose last decision is of
the latest epoch, and the longest of those, is the one that the new epoch extends.

A decision is confirmed once a majority holds it, in the epoch of its chain, with the requests of
the chain up to it. Any later epoch begins with the promises of a majority, so one of those who
promised held the decision. By induction over epochs the chain that is chosen contains it.
Majorities are of the members of the view, not of the ring, which shrinks.

A member that did not promise in time is off the ring: it is *masked*. It still promises, and still
tells what it holds, so it counts for majorities. Once it has taken in a decision it asks to be put
on the ring again. The view remains as it is, unless the member stays silent.
"""

from collections.abc import Mapping, Sequence

from roundelay.core.contract import Conclusion, Item
from roundelay.core.effects import CancelTimer, Kind, Record, SetTimer
from roundelay.core.ids import NodeId, View
from roundelay.protocols.fc import ending
from roundelay.protocols.fc.member import Member
from roundelay.protocols.fc.messages import (
    FIRST_EPOCH,
    PART_DECISIONS,
    Dec,
    DecisionId,
    Epoch,
    Message,
    Promise,
    Regen,
    Rejoin,
    Stale,
)
from roundelay.protocols.fc.state import EPOCHS_AHEAD_MAX, GRACE, NO_DECISION, NOT_ASKED
from roundelay.wire.primitives import Reason, WireError
from roundelay.wire.summaries import by_place


class SafeMember(Member):
    """One member under the safe rules."""

    def _begin(self) -> None:
        self.promised: Epoch = FIRST_EPOCH
        """Nothing of an earlier epoch is taken in."""
        self.accepted: Epoch = FIRST_EPOCH
        """The epoch of the last decision on the chain."""
        self.have = [0] * self.size
        """By member: what it is known to hold of the chain of that epoch."""
        self.promises: dict[int, DecisionId] | None = None
        """Who has promised the epoch that this node is about to begin, and where its chain ends."""
        self.target: DecisionId | None = None
        """A decision that cannot be put on the chain before its parents have come ..."""
        self.source = self.me
        """... and who has them."""
        self.beyond = 0
        """The largest counter of an epoch that another promised and this node did not."""
        self.copied = 0
        """Another member has confirmed up to this number of the chain."""

    # Decisions

    def _on_decision(self, peer: int, d: Dec) -> None:
        if d.epoch < self.promised:
            self._send(Stale(self.promised), peer)
            return
        if not self._possible(d):
            self._out.append(NO_DECISION)
            return
        if d.epoch > self.promised:
            self._rise(d.epoch)
        if d.epoch == self.accepted and d.number <= self.chain.number:
            self._note(d)  # A copy, or late.
            return
        self.chain.lay_aside(d)
        self._go_for(d.id, peer)
        later = self.target
        if later is not None and self.chain.path(later):  # It came before its parent.
            self._go_for(later, self.source)

    def _possible(self, d: Dec) -> bool:
        """Whether what is known here allows for this decision."""
        if d.epoch.counter > self.promised.counter + EPOCHS_AHEAD_MAX:
            return False
        if d.epoch > self.promised and d.epoch.regenerator == self.me:
            return False
        chain = self.chain
        if d.epoch != self.accepted:
            return True
        if d.have[self.me] > self.held:
            return False
        return not chain.floor < d.number <= chain.number or chain.holds(d.id)

    def _on_copies(self, peer: int, decisions: tuple[Dec, ...]) -> None:
        if self.target is None:
            return
        for decision in decisions:
            if decision.epoch <= self.target.epoch and not self.chain.holds(decision.id):
                self.chain.lay_aside(decision)
                self._asked &= ~1  # It is an answer: ask for more at once.
        self._go_for(self.target, peer)

    def _go_for(self, target: DecisionId, peer: int) -> None:
        """Put what leads to this decision on the chain, if it is all here; else ask for it."""
        path = self.chain.path(target)
        if path is None:
            known = self.target
            if known is None or (target.epoch, target.number) >= (known.epoch, known.number):
                self.target, self.source = target, peer
            self._ask_decisions()
            return
        if path and path[0].number <= self.confirmed.number:
            self._out.append(NO_DECISION)  # It contradicts what is confirmed.
            return
        for decision in path:
            if not self.chain.fits(decision):
                self._out.append(NO_DECISION)
                return
            self._put(decision)
        self._reached(target)

    def _reached(self, id_: DecisionId) -> None:
        """The chain ends with a decision that another made."""
        known = self.target
        if known is not None and (known.epoch, known.number) <= (id_.epoch, id_.number):
            self.target = None
        decision = self.chain.tip.decision
        if decision is None or decision.id != id_:
            return
        if id_.epoch != self.accepted:
            self.accepted = id_.epoch
            self.have = [0] * self.size
        self.ring, self.version = decision.ring, decision.version
        self._note(decision)
        if self.promises is not None:
            self._grace_over()  # A better chain may have been promised meanwhile.
            return
        self.failures = 0
        for member in decision.ring:
            self.joiners.pop(member, None)
        if self._follows(decision) and decision.epoch == self.promised:
            self.holding = True
        self._wait(decision.maker, 0)
        if self.me not in decision.ring:
            self._ask_back()
        if self.held < decision.number - 2:
            self._look_for_requests()

    def _ask_back(self) -> None:
        """Ask to be put on the ring again, for every decision that comes: a node that is busy has
        no time for ticks, and must be heard all the same."""
        self._advance_held()
        if (word := self._rejoin()) is not None:
            self._send(word)

    def _look_for_requests(self) -> None:
        """Requests that were ordered two decisions ago should have come by now."""
        self._advance_held()
        if self.held < self.chain.number - 2:
            self._ask_requests()

    def _note(self, d: Dec) -> None:
        """Learn from a decision of this epoch what others hold and have confirmed."""
        have, me = self.have, self.me
        for member, number in enumerate(d.have):
            if number > have[member] and member != me:
                have[member] = number
        if d.confirmed.number > self.copied and d.epoch == self.accepted:
            self.copied = d.confirmed.number

    def _confirm(self) -> None:
        have, chain = self.have, self.chain
        have[self.me] = self.held
        number = max(sorted(have)[self.size - self.quorum], self.copied)
        number = min(number, chain.tip.id.number)
        if number > self.confirmed.number:
            for each in range(self.confirmed.number + 1, number + 1):
                self.settled.append(chain.at(each))
            self.confirmed = chain.at(number).id
        confirmed, holds = self.confirmed.number, self.holds
        risen = False
        for member, held in enumerate(have):
            known = min(held, confirmed)
            if known > holds[member]:
                holds[member] = known
                self.stuck[member] = 0
                risen = True
        if risen:
            self.stable = min(holds)
            self._more = True

    def _comes_after(self, cause: DecisionId) -> bool:
        return cause.number <= self.confirmed.number or self.chain.holds(cause)

    def _have(self, number: int) -> tuple[int, ...]:
        self._advance_held()
        self.have[self.me] = number if self.held == number - 1 else self.held
        return tuple(self.have)

    def _epoch(self) -> Epoch:
        return self.promised

    def _decided(self, decision: Dec) -> None:
        self._advance_held()

    def _wanted(self) -> tuple[int, int, int] | None:
        if self.target is None:
            return None
        missing = self.chain.missing(self.target)
        return self.confirmed.number + 1, missing.number, self.source

    # A token is made anew

    def _timeout(self) -> None:
        self.failures += 1
        self._regenerate()

    def _regenerate(self) -> None:
        """Ask all for the promise that a new epoch needs."""
        counter = max(self.promised.counter, self.beyond) + 1
        self.promised = Epoch(counter, self.me)
        self.promises = {self.me: self.chain.tip.id}
        self.target = None
        self._drop_token()
        confirmed, tip = self.confirmed.number, self.chain.number
        self._send(Regen(self.promised, confirmed, self.accepted, tip))
        self._wait_again()

    def _wait_again(self) -> None:
        tip = self.chain.tip.decision
        maker = self.ring[0] if tip is None or tip.maker not in self.ring else tip.maker
        self._wait(maker, self.size - 1)

    def _on_word(self, peer: int, message: Message) -> None:
        match message:
            case Regen():
                self._on_regen(peer, message)
            case Promise():
                self._on_promise(peer, message)
            case Stale():
                self._on_stale(message)
            case _:
                raise AssertionError(f"not a word of these rules: {message}")

    def _on_regen(self, peer: int, m: Regen) -> None:
        far = m.epoch.counter > self.promised.counter + EPOCHS_AHEAD_MAX
        if m.epoch.regenerator != peer or far or m.accepted >= m.epoch:
            self._out.append(NO_DECISION)
            return
        if m.epoch < self.promised:
            self._send(Stale(self.promised), peer)
            return
        if m.epoch > self.promised:
            self._rise(m.epoch)
            self._wait_again()
        tip = self.chain.tip.id
        common = m.confirmed
        if m.accepted == self.accepted:
            common = max(common, m.tip)
        lacking: Sequence[Dec] = ()
        if (tip.epoch, tip.number) > (m.accepted, m.tip):
            first = max(common + 1, tip.number - PART_DECISIONS + 1)
            lacking = self.chain.since(first, tip.number)
        self._send(Promise(m.epoch, tip, tuple(lacking)), peer)

    def _on_promise(self, peer: int, m: Promise) -> None:
        if m.epoch != self.promised or m.epoch.regenerator != self.me:
            if m.epoch.regenerator != self.me or m.epoch > self.promised:
                self._out.append(NOT_ASKED)
            return
        if self.promises is None or peer in self.promises:
            return  # The epoch has begun, or it was asked twice.
        tip = m.tip
        sound = all(map(self._sound, m.decisions)) and tip.epoch < m.epoch
        if not sound or max(tip.maker, tip.epoch.regenerator) >= self.size:
            self._out.append(NO_DECISION)
            return
        for decision in m.decisions:
            if not self.chain.holds(decision.id):
                self.chain.lay_aside(decision)
        self.promises[peer] = tip
        if len(self.promises) == self.quorum and len(self.promises) < self.size:
            self._out.append(SetTimer(GRACE, self.config.stagger_s))
        elif len(self.promises) == self.size:
            self._grace_over()

    def _on_stale(self, m: Stale) -> None:
        if m.promised <= self.promised:
            return
        if m.promised.counter > self.promised.counter + EPOCHS_AHEAD_MAX:
            self._out.append(NO_DECISION)
            return
        self.beyond = max(self.beyond, m.promised.counter)
        if self.promises is not None or self.chain.tip.id.maker == self.me:
            self._regenerate()

    def _rise(self, epoch: Epoch) -> None:
        """Another begins a later epoch: take in nothing of earlier ones from here on."""
        self.promised = epoch
        self.target = None
        self._drop_token()
        if self.promises is not None:
            self.promises = None
            self._out.append(CancelTimer(GRACE))

    def _grace_over(self) -> None:
        """A majority has promised, and whoever else wanted to had the time for it."""
        promises = self.promises
        if promises is None or len(promises) < self.quorum:
            return
        best, peer = self._best(promises)
        if self.chain.holds(best):
            self._conclude_attempt()
        else:
            self._go_for(best, peer)

    def _best(self, promises: Mapping[int, DecisionId]) -> tuple[DecisionId, int]:
        """The end of the chain that the new epoch extends, and who has it."""
        peer = max(promises, key=lambda place: (promises[place].epoch, promises[place].number))
        return promises[peer], peer

    def _conclude_attempt(self) -> None:
        """The chain is here that the new epoch extends: make its first decision."""
        promises = self.promises
        if promises is None or len(promises) < self.quorum:
            return
        best, _ = self._best(promises)
        if self.chain.tip.id != best:
            return
        self.promises = None
        self.target = None
        self._out.append(CancelTimer(GRACE))
        before = self.ring
        self.accepted = self.promised
        self.have = [0] * self.size
        self.joiners.clear()
        removed = [place for place in before if place not in promises]
        if self.static:
            self._accuse(removed, "it does not answer")
        self._make(tuple(sorted(promises)), self.promised)

    # Off the ring and on it again

    def _rejoin(self) -> Rejoin | None:
        if self.chain.tip.decision is None or self.accepted != self.promised:
            return None
        return Rejoin(self.accepted, self.held)

    def _readmit(self, peer: int, m: Rejoin) -> None:
        if m.epoch > self.promised or m.epoch != self.accepted:
            return
        if m.held > self.chain.number:
            return
        if m.held > self.have[peer]:
            self.have[peer] = m.held
        if peer not in self.ring:
            self.joiners[peer] = None

    # The end of a view

    def freeze(self) -> bytes:
        self.frozen = True
        self._advance_held()
        return ending.summarize(self.chain, self.confirmed.number, self.delivered, self.requests)

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        return ending.items(self.chain, self.requests, self._read(summaries))

    def absorb(self, item: Item) -> list[Record]:
        absorbed = ending.unpack(item, self.view.members)
        if isinstance(absorbed, Dec):
            if not self._sound(absorbed):
                raise WireError(Reason.IMPLAUSIBLE, "a decision that no member can have made")
            if not self.chain.holds(absorbed.id):
                self.chain.absorb(absorbed)
            return []
        if absorbed.sender == self.me and absorbed.number > self.sent:
            raise WireError(Reason.IMPLAUSIBLE, "a request that this node never sent")
        self.requests.absorb(absorbed.sender, absorbed.number, absorbed.packet)
        return [Record(Kind.RECEIVE, absorbed.packet, self._id)]

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        obliged = frozenset(self._index[node] for node in obligations)
        end = ending.End(self.chain, self.requests, self._id, self._read(summaries), obliged)
        return end.conclude(self.delivered, self.confirmed.number)

    def _read(self, summaries: Mapping[NodeId, bytes]) -> dict[int, ending.Summary]:
        return by_place(summaries, self._index, ending.read_summary)
