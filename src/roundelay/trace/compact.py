"""Rows in little memory, for those who write hundreds of thousands of them a second.

Nearly all rows of a node differ in a few numbers only. A *pattern* is a row without its numbers;
it is kept once for all rows that share it. A row is then the number of its pattern and its own
numbers, packed into bytes. A batch becomes columns without a look at any single row.
"""

import struct
from array import array
from collections import Counter
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from roundelay.trace.schema import Row

NUMBERS = (
    "lseq",
    "t_ns",
    "lam",
    "m_seq",
    "k2",
    "k3",
    "digest",
    "size",
    "count",
    "pkt",
    "cause",
    "idx",
)
"""The columns in which rows of one pattern differ, in the order in which they are packed."""

NONE = -(1 << 63)
"""Packed where a row has in this column what its pattern has there; as a rule that is nothing."""

Pattern: TypeAlias = tuple[object, ...]
"""The columns of a row, with nothing in the place of its numbers. A number that cannot be packed
stays in the pattern."""

_LAYOUT = struct.Struct(f"={1 + len(NUMBERS)}q")
pack = _LAYOUT.pack
"""The bytes of a row: the number of its pattern, then its numbers."""

_PLACES = tuple(map(Row._fields.index, NUMBERS))
_numbers_of = itemgetter(*_PLACES)
_WIDTH = 1 + len(NUMBERS)


class Batch(NamedTuple):
    """Rows in the order in which they were made."""

    patterns: list[Pattern]
    packed: list[bytes]

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.packed)

    def columns(self) -> list["array[int]"]:
        """The numbers of the patterns, then a column for each of `NUMBERS`."""
        whole = array("q", b"".join(self.packed))
        return [whole[place::_WIDTH] for place in range(_WIDTH)]

    def writers(self) -> Counter[tuple[int, int]]:
        """How many rows there are of each writer, a node in one incarnation."""
        found = [(pattern[1], pattern[2]) for pattern in self.patterns]
        if found.count(found[0]) == len(found):
            return Counter({found[0]: self.size})  # type: ignore[dict-item]
        counts: Counter[tuple[int, int]] = Counter()
        for number, rows in Counter(self.columns()[0]).items():
            counts[found[number]] += rows  # type: ignore[index]
        return counts

    def rows(self) -> list[Row]:
        rows = []
        for packed in self.packed:
            pattern, *numbers = _LAYOUT.unpack(packed)
            row = list(self.patterns[pattern])
            for place, number in zip(_PLACES, numbers, strict=True):
                if number != NONE:
                    row[place] = number
            rows.append(Row._make(row))
        return rows


class Compactor:
    """Gathers rows into a batch."""

    def __init__(self) -> None:
        self.packed: list[bytes] = []
        """The rows so far. Others may add some of patterns that are here."""
        self.plain: int | None = None
        """The pattern of the last row given to `append`, unless it keeps a number of it."""
        self._patterns: list[Pattern] = []
        self._known: dict[Pattern, int] = {}

    def append(self, row: Row, /) -> None:
        numbers, fields = list(_numbers_of(row)), list(row)
        plain = True
        for i, (place, number) in enumerate(zip(_PLACES, numbers, strict=True)):
            if number is None:
                numbers[i] = NONE
            elif NONE < number < -NONE:
                fields[place] = None
            else:
                numbers[i], plain = NONE, False
        common = tuple(fields)
        pattern = self._known.get(common)
        if pattern is None:
            pattern = self._known[common] = len(self._patterns)
            self._patterns.append(common)
        self.packed.append(pack(pattern, *numbers))
        self.plain = pattern if plain else None

    def take(self) -> Batch:
        """What was gathered. The next batch has patterns of its own."""
        batch = Batch(self._patterns, self.packed)
        self._patterns, self.packed, self._known = [], [], {}
        self.plain = None
        return batch


def trial() -> Batch:
    """Some rows to try with."""
    compactor = Compactor()
    for lseq in range(2):
        compactor.append(Row("deliver", 0, 0, lseq, m_src=lseq or None))
    return compactor.take()
