"""One case of an audit of FC, turn by turn, and whether members then disagree.

Every member has requests enough, and everybody has all requests, so that whoever has the token
decides. Turns go round the ring, twice and a little more. At its turn the decision of a member is
delivered; if it has made none, it has waited for the token in vain. Whoever is dead, or off the
ring as far as it knows, is passed over.

Under the rules `paper` and `link` only requests and decisions are carried: nothing is fetched.
Under `safe` all that members say is carried at once, except for decisions, which wait for their
turn and are lost as the case says.
"""

from typing import Any

from roundelay.core.value import value
from roundelay.experiments.audit.cases import Case
from roundelay.experiments.audit.driver import Group
from roundelay.protocols.fc.messages import Dec, DecisionId, Req

LATE_TURNS = 3
"""How many turns later a late copy comes."""
REQUESTS = 3
"""Of each member but the first, which has one: more than there are turns."""
FRAMES_MAX = 10_000
"""Frames besides decisions between two turns: more would be a loop."""


@value
class Outcome:
    """What came of a case."""

    diverged: bool
    """Two members that are alive and on the ring have confirmed different decisions for one
    number."""
    stuck: bool
    """Such a member has not confirmed the first two numbers."""
    commands: tuple[str, ...]
    """What was done, as a scenario says it."""


def play(case: Case, rules: str, k: int, *, until_divergence: bool = False) -> Outcome:
    """Play a case under these rules, to its end or to the turn in which members disagree."""
    run = _Run(case, rules, k)
    for turn in range(2 * case.size + 2):
        run.turn(turn)
        if until_divergence and run.outcome().diverged:
            break
    return run.outcome()


class _Run:
    def __init__(self, case: Case, rules: str, k: int) -> None:
        options = {"rules": rules, "k": str(k), "batch_packets": "1"}
        self.case = case
        self.safe = rules == "safe"
        self.group = Group("fc", case.size, options)
        self.made: dict[DecisionId, Dec] = {}
        self.due: list[tuple[int, int, int, Dec]] = []
        """Late copies: the turn before which each arrives, from whom, for whom, and what."""
        group = self.group
        group.submit(0, 1)
        for place in range(1, case.size):
            group.submit(place, REQUESTS)
        for place in (*range(1, case.size), 0):
            for to, message in group.under_way(place, lambda m: type(m) is Req):
                group.deliver(place, to, message)
        del group.told[:]  # A scenario says this shorter.

    def turn(self, turn: int) -> None:
        case, group = self.case, self.group
        place = turn % case.size
        for copy in [copy for copy in self.due if copy[0] <= turn]:
            self.due.remove(copy)
            group.deliver(*copy[1:])
        self._talk()
        if place in group.dead or not self._on_ring(place):
            return
        fails = place in case.failing and turn < case.size
        if fails and place in case.silent:
            self._crash(place)
            return
        if not group.under_way(place, _is_decision):
            group.expire(place, "hold" if "hold" in group.timers[place] else "wait")
            self._talk()
            if "grace" in group.timers[place]:
                group.expire(place, "grace")
                self._talk()
        if fails and case.crash:
            group.crash(place)
        self._pass_on(place, turn)
        self._talk()

    def outcome(self) -> Outcome:
        group = self.group
        logs = [
            self._log(member)
            for place, member in enumerate(group.engines)
            if place not in group.dead and self._on_ring(place)
        ]
        seen: dict[int, DecisionId] = {}
        diverged = any(
            seen.setdefault(number, id_) != id_ for log in logs for number, id_ in log.items()
        )
        stuck = any(1 not in log or 2 not in log for log in logs)
        return Outcome(diverged, stuck, tuple(group.told))

    def _on_ring(self, place: int) -> bool:
        """Whether a member is on the ring, as far as it knows."""
        member: Any = self.group.engines[place]
        return place in member.ring

    def _log(self, member: Any) -> dict[int, DecisionId]:
        """What a member has confirmed, by number."""
        if not self.safe:
            found: dict[int, DecisionId] = member.log
            return found
        log: dict[int, DecisionId] = {}
        id_: DecisionId = member.confirmed
        while id_.number:
            log[id_.number] = id_
            id_ = self.made[id_].parent
        return log

    def _crash(self, place: int) -> None:
        """Nothing more comes from this member, not even what it has just decided."""
        self.group.crash(place)
        for to, message in self.group.under_way(place, _is_decision):
            self.group.drop(place, to, message)

    def _pass_on(self, maker: int, turn: int) -> None:
        """The decisions of a member arrive, as the case says."""
        case, group = self.case, self.group
        first_round = turn < case.size
        for to, decision in group.under_way(maker, _is_decision):
            self.made[decision.id] = decision
            if first_round and (maker, to) in case.late:
                self.due.append((turn + LATE_TURNS, maker, to, decision))
            elif to in group.dead or (first_round and (maker, to) in case.lost):
                group.drop(maker, to, decision)
            else:
                group.deliver(maker, to, decision)

    def _talk(self) -> None:
        """Carry all that is not a decision, as far as the rules have it carried."""
        group = self.group
        for _ in range(FRAMES_MAX):
            copy = next((copy for copy in group.held if type(copy[2]) is not Dec), None)
            if copy is None:
                return
            carried = self.safe or type(copy[2]) is Req
            if carried and copy[1] not in group.dead:
                group.deliver(*copy)
            else:
                group.drop(*copy)
        raise AssertionError("the members talk without end")


def _is_decision(message: object) -> bool:
    return type(message) is Dec
