"""The rules that ask nobody: whoever waits for the token in vain makes it anew at once.

Members may then extend different decisions with one number, so what a member knows is a tree. It
builds on the decision with the largest number; of several, on that of the newest ring, and then of
the last member. When a decision is final, `paper` and `link` say in different ways. Neither is
safe outside of the paper's assumptions, and the paper's way is not even inside of them if k is 2 or
more. A member that sees that another has confirmed something else, or that more members in a row
are silent than may fail, says so, once, and confirms nothing more.
"""

from collections import deque

from roundelay.core.contract import Outlet
from roundelay.core.effects import Suspect
from roundelay.core.ids import NodeId
from roundelay.protocols.fc.chain import Entry
from roundelay.protocols.fc.config import Config
from roundelay.protocols.fc.forward import ForwardConfirmation
from roundelay.protocols.fc.member import Member
from roundelay.protocols.fc.messages import (
    FIRST_EPOCH,
    Dec,
    DecisionId,
    Epoch,
    Rejoin,
    Run,
)
from roundelay.protocols.fc.state import EPOCHS_AHEAD_MAX, NO_DECISION, runs_of


class LiteralMember(Member):
    """One member under the rules `paper` or `link`."""

    def __init__(self, node: NodeId, outlet: Outlet, config: Config) -> None:
        super().__init__(node, outlet, config)
        self.literal = config.rules == "paper"

    def _begin(self) -> None:
        self.best: Dec | None = None
        """The decision to build on."""
        self.made = 0
        """The number of the last own decision."""
        self.counter = FIRST_EPOCH.counter
        """The largest that was heard of."""
        self.decisions: dict[DecisionId, Dec] = {}
        self.forward = ForwardConfirmation(self.config.k)
        self.log: dict[int, DecisionId] = {}
        """What was confirmed, by number."""
        self.diverged = False
        """Whether another has confirmed something else, or may have."""
        self.place = [0] * self.size
        """By sender: its last request that was delivered."""
        self.kept: deque[tuple[int, int]] = deque()
        """Requests that were delivered and are still here, oldest first."""
        self.here = 0
        """The number up to which what was confirmed is here, with its requests."""
        self._begun: tuple[int, tuple[Run, ...]] = (0, ())
        """The decision that is being delivered, and its requests."""

    # Decisions

    def _on_decision(self, peer: int, d: Dec) -> None:
        if d.epoch.counter > self.counter + EPOCHS_AHEAD_MAX:
            self._out.append(NO_DECISION)
            return
        if not self._learn(d):
            return
        before = self.best
        token = self._follows(d) and d.number > self.made
        if before is None or _rank(d) > _rank(before):
            self._build_on(d)
            if token:
                self.holding = True
            elif self.holding:
                self._drop_token()
            self.failures = 0
            self._wait(d.maker, 0)
            for member in d.ring:
                self.joiners.pop(member, None)

    def _on_copies(self, peer: int, decisions: tuple[Dec, ...]) -> None:
        for decision in decisions:
            self._on_decision(peer, decision)

    def _learn(self, d: Dec) -> bool:
        """Keep a decision that is new, and see what it confirms; whether it is new."""
        id_ = d.id
        if id_ in self.decisions or d.number <= self.done - self.config.buffer_packets:
            return False
        if d.number > self.chain.floor + 2 * self.config.buffer_packets:
            return False
        if len(self.decisions) >= 4 * self.config.buffer_packets:
            self._out.append(NO_DECISION)  # So many of so few numbers are forged.
            return False
        self.decisions[id_] = d
        self.counter = max(self.counter, d.epoch.counter)
        if not self.chain.holds(id_):
            self.chain.lay_aside(d)
        if self.literal and not self.diverged:
            for decision in self.forward.see(d):
                self._settle(decision)
        self._detect(d)
        held = min(d.have[d.maker], d.confirmed.number)
        if held > self.holds[d.maker]:
            self.holds[d.maker] = held
            self.stuck[d.maker] = 0
            self.stable = min(self.holds)
        return True

    def _build_on(self, d: Dec) -> None:
        self.best = d
        self.ring, self.version = d.ring, d.version
        self._connect()

    def _connect(self) -> None:
        """Let the chain end with the decision to build on, if what leads to it is here."""
        if self.best is None or self.chain.tip.id == self.best.id:
            return
        path = self.chain.path(self.best.id)
        if path is None:
            self._ask_decisions()
            return
        for decision in path:
            if not self.chain.fits(decision):
                return
            self._put(decision)

    def _settle(self, d: Dec) -> None:
        """Confirm a decision."""
        self.confirmed = d.id
        self.log[d.number] = d.id
        self.log.pop(d.number - self.config.buffer_packets, None)
        self.settled.append(Entry(d, d.id, (), 0))

    def _detect(self, d: Dec) -> None:
        """Whether this decision shows that another member has confirmed something else."""
        told = [d.confirmed]
        if self.literal:
            told.append(d.parent)  # Its maker builds on it, and so will confirm it.
        for id_ in told:
            mine = self.log.get(id_.number)
            if mine is not None and mine != id_:
                self._diverge(id_.number, f"{mine} was confirmed here, and {id_} elsewhere")
                return

    def _detect_silence(self, silent: list[int]) -> None:
        """Whether of these members, which follow one another, more have failed than the rules bear:
        nothing at all was heard of them while this node waited."""
        gone = [member for member in silent if self.quiet[member] + 1 >= self._wait_ticks]
        if len(gone) == len(silent) > self.config.k:
            names = " ".join(self.view.members[member] for member in gone)
            why = f"{names} are silent, and k is {self.config.k}"
            self._diverge(self.confirmed.number + 1, why)

    def _diverge(self, number: int, how: str) -> None:
        if not self.diverged:
            self.diverged = True
            self._out.append(Suspect((), f"diverged at {number}: {how}"))

    def _confirm(self) -> None:
        self._connect()
        if not self.literal and not self.diverged:
            self._confirm_below()
        if self.here < self.confirmed.number:
            self._advance_here()

    def _advance_here(self) -> None:
        settled, done, here = self.settled, self.done, max(self.here, self.done)
        while here - done < len(settled) and self.requests.here(runs_of(settled[here - done])):
            here += 1
        self.here = self.holds[self.me] = here
        self.stable = min(self.holds)

    def _confirm_below(self) -> None:
        """Confirm what decisions by k further members are on top of."""
        if self.best is None or self.chain.tip.id != self.best.id:
            return
        makers: set[int] = set()
        number = self.chain.number
        while number > self.confirmed.number and len(makers) <= self.config.k:
            decision = self.chain.at(number).decision
            assert decision is not None
            if len(makers | {decision.maker}) > self.config.k:
                break
            makers.add(decision.maker)
            number -= 1
        for each in range(self.confirmed.number + 1, number + 1):
            entry = self.chain.at(each)
            assert entry.decision is not None
            if entry.decision.parent != self.confirmed:
                self._diverge(each, f"{entry.id} does not extend {self.confirmed}")
                return
            self._settle(entry.decision)

    def _fresh_runs(self, entry: Entry) -> tuple[Run, ...] | None:
        """Without requests that were delivered already: two chains may order one request."""
        number, runs = self._begun
        if number == entry.id.number:
            return runs
        decision = entry.decision
        assert decision is not None
        fresh: list[Run] = []
        for sender, first, count in decision.runs:
            done = self.place[sender]
            if first > done + 1:
                self._diverge(
                    entry.id.number, f"{Run(sender, first, count)} without what is before it"
                )
                return None
            if first + count - 1 > done:
                fresh.append(Run(sender, done + 1, first + count - 1 - done))
                self.place[sender] = first + count - 1
        self._begun = entry.id.number, tuple(fresh)
        for run in fresh:
            self.kept.extend((run.sender, number) for number in range(run.first, run.last + 1))
        return tuple(fresh)

    def _forget(self) -> None:
        """Keep as many delivered requests as there is room for, and half as many decisions: what
        is new waits aside in the other half."""
        room = self.config.buffer_packets
        while len(self.kept) > room and not self._part:
            sender, number = self.kept.popleft()
            self.requests.forget(sender, number)
        line = self.done - room // 2
        if self.chain.floor + room // 8 < line < self.chain.number:
            for id_ in [id_ for id_ in self.decisions if id_.number < line]:
                del self.decisions[id_]
            self.chain.forget(line)

    def _window(self) -> int:
        return self.config.window_packets - (self.sent - self.place[self.me])

    def _have(self, number: int) -> tuple[int, ...]:
        return tuple(min(n, number) for n in self.holds)

    def _epoch(self) -> Epoch:
        return FIRST_EPOCH if self.best is None else self.best.epoch

    def _base(self) -> tuple[DecisionId, tuple[Run, ...]]:
        best = self.best
        self._connect()
        if best is None or self.chain.tip.id == best.id:
            return super()._base()
        return best.id, ()  # What this chain has ordered is not known here.

    def _use(self) -> bool:
        """While it is not known what the decision to build on has ordered, nothing can be ordered:
        the token rests. Else a member that is alone on its ring would decide without end."""
        if self.best is None or self.chain.tip.id == self.best.id:
            return super()._use()
        self._rest()
        return False

    def _put(self, decision: Dec) -> None:
        """What it takes off the chain is kept: others may build on it."""
        if self.chain.holds(decision.parent):
            dropped = self.chain.since(decision.number, self.chain.number)
            super()._put(decision)
            for other in dropped:  # A later decision may extend it after all.
                self.chain.lay_aside(other)
        self.idle_ticks = 0

    def _decided(self, decision: Dec) -> None:
        self.made = decision.number
        self.best = decision
        self._learn(decision)

    def _copies(self, first: int, last: int) -> list[Dec]:
        return [d for id_, d in self.decisions.items() if first <= id_.number <= last]

    def _repeats(self) -> bool:
        return not self.literal and self.best is not None and self.best.maker == self.me

    def _wanted(self) -> tuple[int, int, int] | None:
        best = self.best
        if best is None or self.chain.tip.id == best.id:
            return None
        missing = self.chain.missing(best.id)
        if self.chain.holds(missing):
            return None
        return min(self.confirmed.number + 1, missing.number), missing.number, best.maker

    # A token is made anew

    def _timeout(self) -> None:
        """Go on without whoever is between the maker of the last decision and this node."""
        self.failures += 1
        ring, best, me = self.ring, self.best, self.me
        if me not in ring:
            self._wait(ring[0], 0)
            return
        first = 0 if best is None else (ring.index(best.maker) + 1) % len(ring)
        place = ring.index(me)
        silent = [ring[i % len(ring)] for i in range(first, place + (place < first) * len(ring))]
        if best is not None and best.maker == me:
            silent = [member for member in ring if member != me]
        self._accuse(silent, "it does not answer")
        self._detect_silence(silent)
        self.counter += 1
        self._drop_token()
        self._make(tuple(m for m in ring if m not in silent), Epoch(self.counter, me))

    # Off the ring and on it again

    def _rejoin(self) -> Rejoin | None:
        return None if self.best is None else Rejoin(self.best.epoch, self.done)

    def _readmit(self, peer: int, m: Rejoin) -> None:
        if peer not in self.ring:
            self.joiners[peer] = None


def _rank(d: Dec) -> tuple[int, int, int]:
    return d.number, d.version, d.maker
