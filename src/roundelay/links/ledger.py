"""Who has what: the numbers of a reliable FIFO multicast, and the contents it must still keep.

Each sender numbers its contents 1, 2, 3 ... within a view. `received` is what this node has without
gaps, by sender; every frame carries it, so each member knows at least what every other has
(`known`). The least of those, by sender, is `stable`: all have it, and nobody asks for it again.

Bounds: a sender stops a window ahead of what all have, and says with each content what that is. So
nothing true lies more than AHEAD_MAX above the stable line, and nothing further is stored.
"""

from collections.abc import Sequence
from itertools import compress
from operator import gt
from typing import Generic, NamedTuple, TypeVar

from roundelay.core.contract import SUMMARY_BYTES_MAX
from roundelay.wire.primitives import I64_MAX, Reader, Writer

P = TypeVar("P")

_new = tuple.__new__
"""Makes a NamedTuple without a call of Python code: one is made for every content."""

AHEAD_MAX = 4096
"""How far above the stable line of its sender a content may be: the memory this needs, at most, is
so many contents of each member."""

SUMMARY_MEMBERS_MAX = SUMMARY_BYTES_MAX // 10
"""Members of the largest view that a summary, of ten bytes a member, can describe."""


class Arrival(NamedTuple, Generic[P]):
    """A content at its place."""

    sender: int
    number: int
    content: P


class Summary(NamedTuple):
    """What a member holds of a view, by sender, as it told all when the view was to end."""

    received: tuple[int, ...]
    stable: tuple[int, ...]


class Ledger(Generic[P]):
    """One member's book of one view. Members are numbered by their place in it."""

    def __init__(self, me: int, size: int) -> None:
        self.me = me
        self.size = size
        self.received = [0] * size
        """By sender: everything up to here is or was held."""
        self.stable = [0] * size
        """By sender: everybody has everything up to here."""
        self.top = [0] * size
        """By sender: the highest number heard of."""
        self.known = [[0] * size for _ in range(size)]
        """By sender and member: how much of that sender's that member surely has."""
        self.lacking: set[int] = set()
        """Senders of which this node knows a number that it does not have without gaps."""
        self.held: list[dict[int, P]] = [{} for _ in range(size)]
        """By sender: contents above what was popped, those above a gap among them."""
        self.risen = False
        """Whether a stable line rose since `pop_stable`."""
        self._popped = [0] * size
        self._places = tuple(range(size))
        self._told: list[Sequence[int]] = [(0,) * size] * size
        """By member: what it told of all last."""
        self._arrived: list[Arrival[P]] = []

    def add(self, content: P) -> int:
        """Number an own content."""
        number = self.received[self.me] + 1
        self.store(self.me, number, content)
        return number

    def store(self, sender: int, number: int, content: P) -> bool:
        """Keep a content; False if it was known, or is too far ahead to be true."""
        held = self.held[sender]
        received = self.received[sender]
        if number <= received or number in held or number > self.stable[sender] + AHEAD_MAX:
            return False
        held[number] = content
        if number > self.top[sender]:
            self.top[sender] = number
        if number != received + 1:
            self.lacking.add(sender)
            return True
        arrived = self._arrived
        arrived.append(_new(Arrival, (sender, number, content)))
        while number + 1 in held:
            number += 1
            arrived.append(_new(Arrival, (sender, number, held[number])))
        self.received[sender] = number
        if self.lacking and number == self.top[sender]:
            self.lacking.discard(sender)
        known = self.known[sender]
        known[self.me] = number
        if received <= self.stable[sender]:
            self._raise(sender, min(known))
        return True

    def note_received(self, member: int, received: Sequence[int]) -> bool:
        """A member tells what it has; of itself it has all that it ever sent. False, and nothing is
        noted, if no honest member has so much: of this node's contents more than it sent, or of
        others' more than a sender can be ahead of what all, this node among them, have."""
        if len(received) != self.size:
            return False
        here = self.received
        # Seldom more than one or two. What it told before could be then, and so it can be now.
        risen = list(compress(self._places, map(gt, received, self._told[member])))
        for sender in risen:
            ahead = received[sender] - here[sender]
            if ahead > 0 and (ahead > AHEAD_MAX or sender == self.me):
                return False
        self._told[member] = received
        for sender in risen:
            number, known = received[sender], self.known[sender]
            before = known[member]
            if number <= before:
                continue
            known[member] = number
            if before <= self.stable[sender]:  # It may be the one that all others were ahead of.
                self._raise(sender, min(known))
            if number > self.top[sender]:
                self.top[sender] = number
                self.lacking.add(sender)
        return True

    def note_sent(self, sent: Sequence[int]) -> None:
        """By sender, contents up to these numbers exist, as one that depends on them says."""
        for sender, number in enumerate(sent):
            if number > self.top[sender]:
                self.top[sender] = number
                self.lacking.add(sender)

    def raise_stable(self, sender: int, stable: int) -> None:
        """Somebody knows that everybody has this sender's contents up to `stable`."""
        assert stable <= self.received[sender], f"all have {stable} of {sender}, and we do not"
        self._raise(sender, stable)

    def _raise(self, sender: int, line: int) -> None:
        if line > self.stable[sender]:
            self.stable[sender] = line
            self.risen = True

    def pop_arrived(self) -> list[Arrival[P]]:
        """What can be used since the last call: each sender's in order and without gaps."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def pop_stable(self) -> list[P]:
        """What everybody has since the last call, by sender and in order; it is forgotten here."""
        contents: list[P] = []
        if self.risen:
            self.risen = False
            for sender, (line, popped) in enumerate(zip(self.stable, self._popped, strict=True)):
                if popped < line:
                    self._popped[sender] = line
                    contents += map(self.held[sender].pop, range(popped + 1, line + 1))
        return contents

    def missing(self, sender: int, most: int) -> tuple[int, ...]:
        """The lowest numbers of a sender that are known to exist and not held."""
        held = self.held[sender]
        numbers: list[int] = []
        for number in range(self.received[sender] + 1, self.top[sender] + 1):
            if len(numbers) == most:
                break
            if number not in held:
                numbers.append(number)
        return tuple(numbers)

    def holders(self, sender: int) -> list[int]:
        """Other members that surely have the first content of a sender that is missing here."""
        first, known = self.received[sender] + 1, self.known[sender]
        members = range(self.size)
        return [m for m in members if m != self.me and known[m] >= first]

    def summary(self) -> bytes:
        """By sender, what was received and how far behind it the stable line is."""
        w = Writer()
        for received, stable in zip(self.received, self.stable, strict=True):
            w.u64(received)
            w.u16(received - stable)
        return w.done()


def read_summary(data: bytes, size: int) -> Summary:
    """What a member of a view of this size summed up; WireError if none of them wrote that."""
    r = Reader(data)
    received, stable = [], []
    for _ in range(size):
        received.append(r.u64(I64_MAX))
        stable.append(received[-1] - r.u16(min(AHEAD_MAX, received[-1])))
    r.done()
    return Summary(tuple(received), tuple(stable))
