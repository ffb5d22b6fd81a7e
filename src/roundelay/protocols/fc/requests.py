"""Requests of all members, their own among them: which are here, and which still want a place."""

from collections.abc import Callable
from typing import TypeAlias

from roundelay.core.ids import Packet
from roundelay.protocols.fc.messages import DecisionId, Run

Holds: TypeAlias = Callable[[DecisionId], bool]
"""Whether the chain that is built on holds a decision."""


def _anything(cause: DecisionId) -> bool:
    return True


class Requests:
    """The packets of one view. Members are numbered by their place, requests of each from 1."""

    def __init__(self, size: int, room: int) -> None:
        self.bodies: list[dict[int, Packet]] = [{} for _ in range(size)]
        self.arrived = [0] * size
        """By sender: up to here all requests have come."""
        self.causes: list[dict[int, DecisionId]] = [{} for _ in range(size)]
        """By sender: what a request must come after, where that is not certain."""
        self.forgotten = [0] * size
        """By sender: up to here nobody needs them any more."""
        self._room = room
        self.waiting: dict[int, None] = {}
        """Senders of which something may want a place, the one that has waited longest first."""

    def store(self, sender: int, number: int, packet: Packet) -> bool:
        """Take in a request; whether it is new, and not too far ahead to be kept."""
        bodies, arrived = self.bodies[sender], self.arrived[sender]
        if number <= arrived or number in bodies:
            return False
        if number > min(arrived, self.forgotten[sender] + self._room) + self._room:
            return False
        self._keep(sender, number, packet)
        return True

    def absorb(self, sender: int, number: int, packet: Packet) -> None:
        """Take in a request that another brings along at the end of the view, however far ahead it
        is: others may have forgotten more, and have room for more."""
        if number > self.arrived[sender]:
            self._keep(sender, number, packet)

    def _keep(self, sender: int, number: int, packet: Packet) -> None:
        bodies = self.bodies[sender]
        bodies.setdefault(number, packet)
        if number == self.arrived[sender] + 1:
            while number + 1 in bodies:
                number += 1
            self.arrived[sender] = number
            self.waiting[sender] = None

    def here(self, runs: tuple[Run, ...]) -> bool:
        """Whether these requests are all here, and those of their senders before them."""
        arrived = self.arrived
        return all(arrived[sender] >= first + count - 1 for sender, first, count in runs)

    def recall(self, sender: int) -> None:
        """Requests of this sender want a place again."""
        self.waiting.setdefault(sender)

    def wanting(self, ordered: tuple[int, ...], holds: Holds = _anything) -> bool:
        """Whether a request is here that is behind what is ordered, by sender, and may be next."""
        return any(self._ready(sender, ordered[sender], 1, holds) for sender in self.waiting)

    def _ready(self, sender: int, ordered: int, most: int, holds: Holds) -> int:
        """How many requests of a sender may be ordered next: up to one whose cause is not there."""
        count = max(0, min(self.arrived[sender] - ordered, most))
        causes = self.causes[sender]
        if causes:
            for number in range(ordered + 1, ordered + count + 1):
                cause = causes.get(number)
                if cause is not None and not holds(cause):
                    return number - ordered - 1
        return count

    def choose(
        self, ordered: tuple[int, ...], most: int, holds: Holds = _anything
    ) -> tuple[Run, ...]:
        """The next requests to be ordered, by sender, so many at most. A sender that gets a place
        goes to the end of the line."""
        runs: list[Run] = []
        for sender in list(self.waiting):
            if not most:
                break
            del self.waiting[sender]
            first = ordered[sender] + 1
            count = self._ready(sender, ordered[sender], most, holds)
            if count:
                runs.append(Run(sender, first, count))
                most -= count
            if self.arrived[sender] >= first + count:
                self.waiting[sender] = None
        return tuple(runs)

    def lacking(self, runs: tuple[Run, ...]) -> list[Run]:
        """The parts of these runs that are not here."""
        lacking: list[Run] = []
        for sender, first, count in runs:
            bodies = self.bodies[sender]
            numbers = range(max(first, self.arrived[sender] + 1), first + count)
            for number in numbers:
                if number in bodies:
                    continue
                if lacking and lacking[-1].sender == sender and lacking[-1].last == number - 1:
                    lacking[-1] = Run(sender, lacking[-1].first, lacking[-1].count + 1)
                else:
                    lacking.append(Run(sender, number, 1))
        return lacking

    def forget(self, sender: int, number: int) -> None:
        """Nobody needs the requests of a sender up to this one any more."""
        bodies = self.bodies[sender]
        causes = self.causes[sender]
        for old in range(self.forgotten[sender] + 1, number + 1):
            del bodies[old]
            if causes:
                causes.pop(old, None)
        self.forgotten[sender] = max(self.forgotten[sender], number)
