"""Bugs in ATOP, All-Ack and causal. Import this module to register them."""

from collections.abc import Sequence
from typing import Any

from roundelay.links.engine import HoldBack, Ordered
from roundelay.protocols.allack import ClockOrder
from roundelay.protocols.atop.atom import Atom, Tag
from roundelay.protocols.atop.atop import SlotOrder
from roundelay.protocols.atop.slots import Weights
from roundelay.protocols.causal import CausalOrder, Causes
from roundelay.wire.primitives import I64_MAX

from .planted import Patch, bug

# ATOP


@bug("Every member draws slot owners from a seed of its own.")
def atop_own_slot_list() -> list[Patch]:
    def init(self: Atom[Any], view: int, members: int, me: int, *more: Any) -> None:
        original(self, view + me, members, me, *more)

    original = Atom.__init__
    return [(Atom, "__init__", init)]


@bug("A slot is skipped whenever its owner has nothing here.")
def atop_skips_who_is_silent() -> list[Patch]:
    def arrive(self: Atom[Any], sender: int, tag: Tag, body: Any) -> Any:
        self.closing = True
        ordered = original(self, sender, tag, body)
        self.closing = False
        return ordered

    original = Atom.arrive
    return [(Atom, "arrive", arrive)]


@bug("The order goes on to a new distribution without members that have not sent with one.")
def atop_changes_without_the_late() -> list[Patch]:
    def is_over(self: Atom[Any]) -> bool:
        return original(self) or any(d > self.distribution for d, _ in self._arrived)

    original = Atom._is_over
    return [(Atom, "_is_over", is_over)]


@bug("A sender uses the distribution that it heard of last, not the newest.")
def atop_uses_the_last_heard() -> list[Patch]:
    def learn(self: Atom[Any], distribution: int, weights: Weights) -> bool:
        learned = original(self, distribution, weights)
        if learned:
            self.newest = distribution
        return learned

    original = Atom.learn
    return [(Atom, "learn", learn)]


@bug("Numbers of contents are not counted anew in a new distribution.")
def atop_numbers_go_on() -> list[Patch]:
    def stamp(self: Atom[Any], count: int = 1) -> Tag:
        number = self._sending[1]
        tag = original(self, count)
        if tag.weights is None or not number:
            return tag
        self._sending = (tag.distribution, number + count)
        return Tag(tag.distribution, number, count)

    original = Atom.stamp
    return [(Atom, "stamp", stamp)]


@bug("A book-keeper forgets which distributions it has made, and makes one number twice.")
def atop_numbers_twice() -> list[Patch]:
    def learn(self: Atom[Any], distribution: int, weights: Weights) -> bool:
        if self.me == 0 and distribution == self.newest + 1 == 2:
            self.known[1] = weights
            return True
        return original(self, distribution, weights)

    original = Atom.learn
    return [(Atom, "learn", learn)]


@bug("What waits for its slot when a view ends is dropped.")
def atop_drops_what_waits() -> list[Patch]:
    return [(SlotOrder, "close", lambda self: None)]


@bug("A dummy fills one slot, however many are waited for.")
def atop_one_slot_at_a_time() -> list[Patch]:
    def owed(self: Atom[Any]) -> int:
        return min(1, original(self))

    original = Atom.owed
    return [(Atom, "owed", owed)]


@bug("A member that has heard of a new distribution stays silent until it has something to send.")
def atop_never_switches() -> list[Patch]:
    def owed(self: Atom[Any]) -> int:
        return 0 if self.behind else original(self)

    original = Atom.owed
    return [(Atom, "owed", owed)]


@bug("A safe packet is delivered in its place, whoever has it.")
def order_safe_is_not_awaited() -> list[Patch]:
    def ready(self: HoldBack, stable: Sequence[int]) -> list[Ordered]:
        return original(self, [I64_MAX] * len(stable))

    original = HoldBack.ready
    return [(HoldBack, "ready", ready)]


# All-Ack


@bug("A packet is delivered as it comes, before others were heard.")
def allack_waits_for_nobody() -> list[Patch]:
    def ready(self: ClockOrder, stable: Sequence[int]) -> list[Ordered]:
        self.closed = True
        return original(self, stable)

    original = ClockOrder.ready
    return [(ClockOrder, "ready", ready)]


@bug("Two packets with equal stamps have one place.")
def allack_one_place_for_two() -> list[Patch]:
    def ready(self: ClockOrder, stable: Sequence[int]) -> list[Ordered]:
        ready = original(self, stable)
        return [o._replace(key=(o.key[0] // self.members, 0)) for o in ready if o.key is not None]

    original = ClockOrder.ready
    return [(ClockOrder, "ready", ready)]


@bug("Nobody tells its clock when it has nothing to send.")
def allack_sends_no_nulls() -> list[Patch]:
    return [(ClockOrder, "behind", property(lambda self: False))]


# Causal


@bug("A packet is delivered when it comes, whether or not its causes are here.")
def causal_waits_for_nothing() -> list[Patch]:
    return [(CausalOrder, "_may_go", lambda self, sender, number, content, stable: True)]


@bug("A packet names none of its causes.")
def causal_names_no_causes() -> list[Patch]:
    def causes(self: CausalOrder) -> Causes:
        return (0,) * self.members

    return [(CausalOrder, "causes", causes)]


@bug("A safe packet waits until all have it, and not for what it depends on.")
def causal_safe_before_its_causes() -> list[Patch]:
    def may_go(self: CausalOrder, sender: int, number: int, content: Any, stable: Any) -> bool:
        had = list(stable)
        if number <= stable[sender]:
            had = [max(line, cause) for line, cause in zip(stable, content.causes, strict=True)]
        return original(self, sender, number, content, had)

    original = CausalOrder._may_go
    return [(CausalOrder, "_may_go", may_go)]


@bug("At the end of a view everything is delivered, whether or not its causes are here.")
def causal_delivers_without_causes() -> list[Patch]:
    def close(self: CausalOrder) -> None:
        self.__dict__["_may_go"] = lambda sender, number, content, stable: True

    return [(CausalOrder, "close", close)]
