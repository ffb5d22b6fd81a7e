"""The decisions of a view, as one member knows them: a tree, and the chain that it builds on."""

from collections.abc import Iterable, Sequence

from roundelay.protocols.fc.messages import ROOT, Dec, DecisionId


class Entry:
    """A decision on the chain, and what the chain has ordered when it is over."""

    __slots__ = ("decision", "id", "ordered", "packets")

    def __init__(
        self, decision: Dec | None, id_: DecisionId, ordered: tuple[int, ...], packets: int
    ) -> None:
        self.decision = decision
        """None before the first one."""
        self.id = id_
        self.ordered = ordered
        """By sender: the number of its last request on the chain."""
        self.packets = packets
        """All requests on the chain up to here."""


class Chain:
    """One line of decisions, each the parent of the next, without gaps. What cannot be put on it
    waits aside until its parents have come."""

    def __init__(self, size: int, room: int) -> None:
        self.tip = Entry(None, ROOT, (0,) * size, 0)
        self.floor = 0
        """Decisions up to this number are forgotten, except for this one."""
        self.real = 0
        """The number of the last decision with requests."""
        self._line = {0: self.tip}
        self._aside: dict[DecisionId, Dec] = {}
        self._room = room

    @property
    def number(self) -> int:
        """Of the last decision."""
        return self.tip.id.number

    @property
    def aside(self) -> Iterable[Dec]:
        """Decisions whose parents are not here."""
        return self._aside.values()

    def __len__(self) -> int:
        return len(self._line)

    def at(self, number: int) -> Entry:
        """The decision on the chain with this number."""
        return self._line[number]

    def holds(self, id_: DecisionId) -> bool:
        """Whether this decision is on the chain. What is forgotten was, whatever it was."""
        if id_.number < self.floor:
            return True
        entry = self._line.get(id_.number)
        return entry is not None and entry.id == id_

    def fits(self, decision: Dec) -> bool:
        """Whether the decision orders each sender's requests right behind those that the chain
        orders; its parent is on the chain."""
        ordered: Sequence[int] = self._line[decision.number - 1].ordered
        seen: set[int] = set()
        for sender, first, _ in decision.runs:
            if first != ordered[sender] + 1 or sender in seen:
                return False
            seen.add(sender)
        return True

    def put(self, decision: Dec) -> list[Dec]:
        """Put a decision whose parent is on the chain behind it; those that were there are
        dropped, and returned."""
        number = decision.number
        dropped: list[Dec] = []
        if number <= self.tip.id.number:
            dropped = self._drop(number)
        before = self.tip
        ordered, packets = before.ordered, before.packets
        if decision.runs:
            after = list(ordered)
            for sender, _, count in decision.runs:
                after[sender] += count
                packets += count
            ordered = tuple(after)
            self.real = number
        self.tip = self._line[number] = Entry(decision, decision.id, ordered, packets)
        if self._aside:
            self._aside.pop(self.tip.id, None)
        return dropped

    def _drop(self, number: int) -> list[Dec]:
        """Take everything from this number on off the chain."""
        dropped: list[Dec] = []
        for last in range(self.tip.id.number, number - 1, -1):
            decision = self._line.pop(last).decision
            assert decision is not None
            dropped.append(decision)
        self.tip = self._line[number - 1]
        if self.real >= number:
            self.real = next(
                (n for n in range(number - 1, self.floor, -1) if self._runs(n)), self.floor
            )
        return dropped

    def _runs(self, number: int) -> bool:
        decision = self._line[number].decision
        return decision is not None and bool(decision.runs)

    def lay_aside(self, decision: Dec) -> None:
        """Keep a decision whose parents are not here, unless there are too many."""
        if self.floor < decision.number <= self.floor + self._room:
            while len(self._aside) >= self._room:
                del self._aside[next(iter(self._aside))]
            self._aside[decision.id] = decision

    def absorb(self, decision: Dec) -> None:
        """Keep a decision that another brings along at the end of the view, however far ahead it
        is: whoever has more on its chain has heard from this member what this member may not yet
        have heard from the others, and so forgets sooner."""
        if decision.number > self.floor:
            self._aside[decision.id] = decision

    def path(self, id_: DecisionId) -> list[Dec] | None:
        """What leads from the chain to this decision, oldest first; None if a part is not here."""
        found: list[Dec] = []
        while not self.holds(id_):
            decision = self._aside.get(id_)
            if decision is None:
                return None
            found.append(decision)
            id_ = decision.parent
        found.reverse()
        return found

    def climb(self, confirmed: int) -> None:
        """Let the chain end as late as what waits aside allows: in the latest epoch, and there with
        the largest number. What is confirmed stays."""
        tip = self.tip.id
        for id_ in sorted(self._aside, key=lambda id_: (id_.epoch, id_.number), reverse=True):
            if (id_.epoch, id_.number) <= (tip.epoch, tip.number):
                return
            path = self.path(id_)
            if path and path[0].number > confirmed:
                for decision in path:
                    if not self.fits(decision):
                        break
                    self.put(decision)
                else:
                    return

    def missing(self, id_: DecisionId) -> DecisionId:
        """The last decision on the way back from this one that is not here; it is not known."""
        while (decision := self._aside.get(id_)) is not None:
            id_ = decision.parent
        return id_

    def forget(self, number: int) -> Entry:
        """Everybody has the chain up to this number; the decision there stays, without those
        before it."""
        for old in range(self.floor, number):
            del self._line[old]
        self.floor = number
        for id_ in [id_ for id_ in self._aside if id_.number <= number]:
            del self._aside[id_]
        return self._line[number]

    def since(self, first: int, last: int) -> list[Dec]:
        """Decisions of the chain, from one number to another, as far as they are kept."""
        first = max(first, self.floor + 1)
        entries = (self._line[n] for n in range(first, min(last, self.tip.id.number) + 1))
        return [entry.decision for entry in entries if entry.decision is not None]
