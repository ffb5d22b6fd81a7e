"""Bugs in FC. Import this module to register them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from roundelay.core.contract import Conclusion, Item
from roundelay.protocols.fc.chain import Chain
from roundelay.protocols.fc.ending import End
from roundelay.protocols.fc.member import Member
from roundelay.protocols.fc.messages import ROOT, Dec, DecisionId, Epoch, Promise
from roundelay.protocols.fc.requests import Requests
from roundelay.protocols.fc.safe import SafeMember

from .planted import Patch, bug


@bug("A decision of an older epoch than was promised is taken in.")
def fc_promise_not_kept() -> list[Patch]:
    def on_decision(self: SafeMember, peer: int, d: Dec) -> None:
        if d.epoch < self.promised:
            self.promised = self.accepted = d.epoch
        original(self, peer, d)

    original = SafeMember._on_decision
    return [(SafeMember, "_on_decision", on_decision)]


@bug("Half of the view is a majority.")
def fc_half_is_a_majority() -> list[Patch]:
    def begin(self: SafeMember) -> None:
        original(self)
        self.quorum = max(1, self.size // 2)

    original = SafeMember._begin
    return [(SafeMember, "_begin", begin)]


@bug("A member says that it holds decisions whose requests it lacks.")
def fc_holds_without_the_requests() -> list[Patch]:
    def advance_held(self: Member) -> None:
        self.held = self.chain.number

    return [(Member, "_advance_held", advance_held)]


@bug("Of the chains of those who promise, the longest is extended, whatever its epoch.")
def fc_longest_chain() -> list[Patch]:
    def best(self: SafeMember, promises: Mapping[int, DecisionId]) -> tuple[DecisionId, int]:
        peer = max(promises, key=lambda place: promises[place].number)
        return promises[peer], peer

    return [(SafeMember, "_best", best)]


@bug("A new epoch extends the chain of the member that begins it, whatever others promise.")
def fc_own_chain_extended() -> list[Patch]:
    def on_promise(self: SafeMember, peer: int, m: Promise) -> None:
        original(self, peer, replace(m, tip=ROOT, decisions=()))

    original = SafeMember._on_promise
    return [(SafeMember, "_on_promise", on_promise)]


@bug("Requests whose decision is dropped are not ordered again.")
def fc_dropped_for_good() -> list[Patch]:
    return [(Requests, "recall", lambda self, sender: None)]


@bug("A safe packet waits for the members on the ring alone.")
def fc_safe_without_the_masked() -> list[Patch]:
    def confirm(self: SafeMember) -> None:
        original(self)
        stable = min(self.holds[place] for place in self.ring)
        self.stable = max(self.stable, stable)

    original = SafeMember._confirm
    return [(SafeMember, "_confirm", confirm)]


@bug("A token that is made anew has the counter of the one before.")
def fc_epoch_not_advanced() -> list[Patch]:
    def regenerate(self: SafeMember) -> None:
        self.promised = Epoch(self.promised.counter - 1, self.me)
        original(self)

    original = SafeMember._regenerate
    return [(SafeMember, "_regenerate", regenerate)]


@bug("A new epoch begins one decision before the last that its maker has confirmed.")
def fc_confirmed_is_given_up() -> list[Patch]:
    def conclude_attempt(self: SafeMember) -> None:
        promises = self.promises
        if promises is not None and len(promises) >= self.quorum and self.chain.number > 0:
            before = max(self.chain.floor, self.confirmed.number - 1)
            self.chain._drop(before + 1)
            self.held = min(self.held, before)
            self.promises = dict.fromkeys(promises, self.chain.tip.id)
        original(self)

    original = SafeMember._conclude_attempt
    return [(SafeMember, "_conclude_attempt", conclude_attempt)]


@bug("A request that is ordered and not confirmed is ordered once more.")
def fc_ordered_twice() -> list[Patch]:
    def base(self: Member) -> tuple[DecisionId, Any]:
        confirmed = self.chain.at(max(self.confirmed.number, self.chain.floor))
        for sender in range(self.size):
            self.requests.recall(sender)
        return self.chain.tip.id, self.requests.choose(confirmed.ordered, 8)

    return [(Member, "_base", base), (Chain, "fits", lambda self, decision: True)]


@bug("At the end of a view each member goes by its own chain.")
def fc_own_chain_at_the_end() -> list[Patch]:
    def conclude(self: End, delivered: int, confirmed: int) -> Conclusion:
        self._chain.path = lambda id_: None  # type: ignore[method-assign]
        return original(self, delivered, confirmed)

    original = End.conclude
    return [(End, "conclude", conclude), (Chain, "climb", lambda self, confirmed: None)]


@bug("At the end of a view everything on the chain counts as confirmed.")
def fc_all_confirmed_at_the_end() -> list[Patch]:
    def conclude(self: End, delivered: int, confirmed: int) -> Conclusion:
        tip = max(summary.tip.number for summary in self._summaries.values())
        return original(self, delivered, max(confirmed, tip))

    original = End.conclude
    return [(End, "conclude", conclude)]


@bug("At the end of a view a safe packet is delivered in it, whoever is not here.")
def fc_safe_in_the_old_view() -> list[Patch]:
    def conclude(self: End, delivered: int, confirmed: int) -> Conclusion:
        end = original(self, delivered, confirmed)
        return Conclusion((*end.regular, *end.transitional), ())  # type: ignore[arg-type]

    original = End.conclude
    return [(End, "conclude", conclude)]


@bug("At the end of a view nobody offers what others lack.")
def fc_exchanges_nothing() -> list[Patch]:
    def seal(self: SafeMember, summaries: Any) -> Sequence[Item]:
        original(self, summaries)
        return []

    original = SafeMember.seal
    return [(SafeMember, "seal", seal)]


@bug("A member that was off the ring and hears so suspects itself.")
def fc_suspects_itself() -> list[Patch]:
    def suspect(self: Member) -> None:
        if self.me not in self.ring:
            self._accuse([self.me], "silent and off the ring")
        original(self)

    original = Member._suspect
    return [(Member, "_suspect", suspect)]


@bug("A sender waits for every member of the view, heard or not.")
def fc_waits_for_the_silent() -> list[Patch]:
    return [(Member, "_counts", lambda self, member: True)]


@bug("Nobody asks for requests that were ordered and did not come.")
def fc_never_asks_for_requests() -> list[Patch]:
    return [(Member, "_ask_requests", lambda self: None)]
