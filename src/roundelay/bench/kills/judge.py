"""Judges what journals hold: against each other, and against what clients were told.

It knows no process and no file, so that a test can feed it with journals that break a promise.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

SHOWN = 5
"""How many breaches of a promise are told in words; all are counted."""


def digest(*parts: bytes) -> int:
    """64 bits of a payload, or of whatever identifies something."""
    return int.from_bytes(blake2b(b"\0".join(parts), digest_size=8).digest())


class Held:
    """The committed entries of one journal."""

    def __init__(self, node: str, first: int = 0) -> None:
        """Entries below `first` were removed."""
        self.node = node
        self.first = first
        self.breaches: list[str] = []
        """What is wrong with this journal alone."""
        self._payloads = array("Q")
        self._places = array("Q")
        """Of each entry a digest over its term, its session and its number."""
        self._numbers: dict[int, int] = {}
        """The last number of each session."""

    @property
    def length(self) -> int:
        """Entries below this index are held."""
        return self.first + len(self._payloads)

    def add(
        self, index: int, term: str, session: int, number: int, payloads: Sequence[bytes]
    ) -> None:
        """Consecutive entries of one term, with consecutive numbers of one session."""
        if index != self.length:
            self.breaches.append(f"{self.node} has entry {index} where {self.length} is due")
        last = self._numbers.get(session)
        if last is not None and number <= last:
            self.breaches.append(
                f"{self.node} has number {number} of session {session:x} at index {index}, "
                f"after number {last}"
            )
        for i, payload in enumerate(payloads):
            self._payloads.append(digest(payload))
            self._places.append(digest(f"{term} {session} {number + i}".encode()))
        self._numbers[session] = number + len(payloads) - 1

    def payload(self, index: int) -> int | None:
        """The digest of the payload at this index; None if it is not held."""
        at = index - self.first
        return self._payloads[at] if 0 <= at < len(self._payloads) else None

    def difference(self, other: "Held") -> int | None:
        """The first index at which two journals hold different entries."""
        start, end = max(self.first, other.first), min(self.length, other.length)
        a, b = start - self.first, start - other.first
        count = max(0, end - start)
        if (
            self._payloads[a : a + count] == other._payloads[b : b + count]
            and self._places[a : a + count] == other._places[b : b + count]
        ):
            return None
        for i in range(count):
            mine = (self._payloads[a + i], self._places[a + i])
            if mine != (other._payloads[b + i], other._places[b + i]):
                return start + i
        raise AssertionError("slices differ, but no element does")

    def repeated(self) -> list[tuple[int, int]]:
        """Pairs of indexes that hold the same payload."""
        if len(set(self._payloads)) == len(self._payloads):
            return []
        seen: dict[int, int] = {}
        found = []
        for index, payload in enumerate(self._payloads, self.first):
            if payload in seen:
                found.append((seen[payload], index))
            seen[payload] = index
        return found


@dataclass(slots=True)
class Receipts:
    """What appends were confirmed. Every append has a payload of its own."""

    told: dict[int, int | None] = field(default_factory=dict)
    """The index of each payload, by its digest; None if only that it is in the log was said."""
    contradictions: list[str] = field(default_factory=list)
    """Payloads for which two indexes were told."""
    names: dict[int, str] = field(default_factory=dict)

    def add(self, name: str, payload: bytes, index: int | None) -> None:
        """The append that people know as `name` is committed at this index. It may be told more
        than once."""
        key = digest(payload)
        earlier = self.told.get(key)
        if earlier is not None and index is not None and earlier != index:
            self.contradictions.append(f"{name} was told to be at {earlier}, and then at {index}")
        self.told[key] = index if earlier is None else earlier
        self.names[key] = name


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came out: counts of breaches, all of which should be 0, and the first ones in words."""

    confirmed: int
    """Appends that somebody was told to be committed."""
    entries: int
    """Length of the longest journal."""
    lost: int
    """Confirmed appends that a journal does not hold at the index that was told."""
    disagreements: int
    """Pairs of journals that differ at an index below what both know to be committed."""
    repeated: int
    """Payloads with two indexes."""
    disordered: int
    """Holes in a journal, and numbers of a session that do not grow."""
    words: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether all promises were kept."""
        return not (self.lost or self.disagreements or self.repeated or self.disordered)


def judge(receipts: Receipts, journals: Sequence[Held], *, caught_up: bool = True) -> Verdict:
    """Compare what was told with what is held. Of journals of nodes that had not all `caught_up`
    nothing is missing at the end: a node may not know yet what is committed."""
    words: list[str] = []
    lost = _told(words, _lost(receipts, journals, caught_up))
    lost += _told(words, receipts.contradictions)
    disagreements = _told(words, _disagreements(journals))
    repeated = _told(
        words,
        (
            f"{held.node} holds the same append at {one} and at {two}"
            for held in journals
            for one, two in held.repeated()
        ),
    )
    disordered = _told(words, (breach for held in journals for breach in held.breaches))
    return Verdict(
        confirmed=len(receipts.told),
        entries=max((held.length for held in journals), default=0),
        lost=lost,
        disagreements=disagreements,
        repeated=repeated,
        disordered=disordered,
        words=tuple(words),
    )


def _told(words: list[str], breaches: Iterable[str]) -> int:
    """Keep the first of these in words, and count all."""
    count = 0
    for count, breach in enumerate(breaches, 1):
        if count <= SHOWN:
            words.append(breach)
    return count


def _lost(receipts: Receipts, journals: Sequence[Held], caught_up: bool) -> Iterable[str]:
    for held in journals:
        everything: set[int] | None = None
        for payload, index in receipts.told.items():
            name = receipts.names[payload]
            if index is None:
                if everything is None:
                    everything = set(held._payloads)
                if held.first == 0 and payload not in everything and caught_up:
                    yield f"{name} was confirmed, and {held.node} does not hold it"
            elif index >= held.length and not caught_up:
                continue
            elif index >= held.first and held.payload(index) != payload:
                what = "another entry" if index < held.length else "nothing"
                yield f"{name} was confirmed at {index}, where {held.node} holds {what}"


def _disagreements(journals: Sequence[Held]) -> Iterable[str]:
    for i, one in enumerate(journals):
        for other in journals[i + 1 :]:
            index = one.difference(other)
            if index is not None:
                yield f"{one.node} and {other.node} hold different entries at {index}"
