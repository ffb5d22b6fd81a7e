"""What takes too long: what is missing is asked for, what nobody heard is repeated, and whoever is
silent is suspected."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from roundelay.core.effects import (
    Suspect,
)
from roundelay.protocols.fc.messages import (
    ASK_RUNS,
    PART_DECISIONS,
    Ask,
    Dec,
    Rejoin,
    Req,
    Run,
)
from roundelay.protocols.fc.messages import Chain as Copies
from roundelay.protocols.fc.state import NO_DECISION, State

ANSWER_PACKETS = 32
"""Most requests that are sent again for one frame that asks. Larger: the answer overflows the
receive buffer of the one who asked."""
ASKING_SILENCES = 10
"""A member that is heard and gets nothing is suspected after so many times `silence_s`. Smaller: a
slow application costs its node the view. Larger: a group waits long for a member that small frames
reach and large ones do not."""


class Asking(State, ABC):
    """A member that asks, answers, repeats and suspects."""

    # For the rules to fill in

    @abstractmethod
    def _wanted(self) -> tuple[int, int, int] | None:
        """Decisions that are missing: the first and the last number, and who has them."""

    @abstractmethod
    def _rejoin(self) -> Rejoin | None:
        """What to say in order to be put on the ring again; None if it is too early."""

    def _copies(self, first: int, last: int) -> list[Dec]:
        """Decisions with these numbers that are here."""
        return self.chain.since(first, last)

    def _repeats(self) -> bool:
        """Whether a decision that nobody seems to have got is sent again."""
        return True

    # For all rules

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
                packet = self.requests.bodies[self.me][number]
                self._send(Req(self.me, number, packet, self.requests.causes[self.me][number]))

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
