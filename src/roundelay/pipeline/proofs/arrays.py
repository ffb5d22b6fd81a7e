"""A batch of rows as numpy arrays, and the facts that are written about it.

The rows are sorted by node. The rows of a batch that one life of a node wrote, those with the same
(run, proc, inc), are a *segment*. No function loops over rows in Python.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roundelay.core.effects import Kind
from roundelay.trace.schema import LOWER_LAYER

COLUMNS = (
    *("run", "kind", "proc", "inc", "lseq", "gseq", "c_seq", "c_rep", "c_kind"),
    *("m_src", "m_inc", "m_seq", "count", "k0", "k1", "k2", "k3", "dst", "members", "layer"),
)
"""The columns of the table that are read."""

_NUMBERS = COLUMNS[2:-3]
_MAY_LACK = ("gseq", "k2", "c_seq", "m_src")
"""Columns that may be null: beside each is an array has_NAME, 1 where a row has a value."""

KINDS = (Kind.DELIVER, Kind.ORIGINATE, Kind.WITHDRAW, Kind.CONFIRM, *(Kind.CRASH, Kind.RECOVER))
"""Kinds of rows that facts distinguish. In an array, a kind is its index in this tuple, and -1 is
any other kind."""

_NAMES = ["fact", "run", "proc", "inc", "first", "v"]

Ints = Any
"""A numpy array of 64-bit integers."""


class BatchRows:
    """Columns as arrays, sorted by node and then by its own order."""

    count = 0

    def __init__(self, batch: Any, run: Ints) -> None:
        kinds = pc.index_in(batch.column("kind"), pa.array([kind.value for kind in KINDS]))
        kind = np.asarray(pc.fill_null(kinds, -1)).astype(np.int64)
        self.column: dict[str, Ints] = {"run": run, "kind": kind}
        self.column["has_dst"] = np.asarray(batch.column("dst").is_valid()).astype(np.int64)
        for name in _NUMBERS:
            array = batch.column(name)
            if name in _MAY_LACK:
                self.column[f"has_{name}"] = np.asarray(array.is_valid()).astype(np.int64)
            filled = pc.fill_null(array, 0) if array.null_count else array
            self.column[name] = np.asarray(filled).astype(np.int64, copy=False)
        below = pc.fill_null(pc.equal(batch.column("layer"), LOWER_LAYER), False)
        self.column["below"] = np.asarray(below) & self.column["has_m_src"].astype(bool)
        order = [self.column[name] for name in ("m_seq", "lseq", "inc", "proc", "run")]
        if not ascending(order[::-1]):
            self._select(np.lexsort(order))
        self.column["stretch"] = np.cumsum(np.diff(self.column["lseq"], prepend=0) > 1)
        self._cut()

    def _select(self, places: Ints) -> None:
        self.column = {name: values[places] for name, values in self.column.items()}

    def _cut(self) -> None:
        self.count = len(self.column["run"])
        self.segment = starts(self.column[name] for name in ("run", "proc", "inc", "stretch"))
        """Where segments begin."""
        self.number = numbered(self.segment, self.count)
        """The segment of each row."""

    def where(self, mask: Any) -> "BatchRows":
        """Some of the rows."""
        if np.all(mask):
            return self
        rows = object.__new__(BatchRows)
        rows.column = dict(self.column)
        rows._select(np.flatnonzero(mask))
        if len(rows["run"]):
            rows._cut()
        return rows

    def by_sender(self) -> Ints:
        """Places of rows about messages, by segment and sender, and then as they are."""
        return np.lexsort([self.column["m_src"], self.number])

    def of(self, *kinds: Kind) -> Ints:
        """Which rows are of these kinds."""
        return np.isin(self.column["kind"], [KINDS.index(kind) for kind in kinds])

    def __getitem__(self, name: str) -> Ints:
        return self.column[name]


class FactWriter:
    """Gathers the facts of a batch, and makes one Arrow batch of them."""

    def __init__(self, runs: Sequence[str], prefix: str = "") -> None:
        self._runs = runs
        self._prefix = prefix
        self._parts: list[Any] = []

    def prefixed(self, prefix: str) -> "FactWriter":
        """A writer of facts of other names, which become part of the same batch."""
        other = FactWriter(self._runs, prefix)
        other._parts = self._parts
        return other

    def write(self, fact: str, rows: BatchRows, at: Ints, *values: Ints) -> None:
        """Write a fact about each stretch of rows that begins at one of the places `at`."""
        if not len(at):
            return
        width = len(values)
        offsets = np.arange(0, (len(at) + 1) * width, width, dtype=np.int32)
        flat = np.stack([np.asarray(v, dtype=np.int64) for v in values], axis=1).reshape(-1)
        runs = [self._runs[number] for number in rows["run"][at].tolist()]
        lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, pa.int64()))
        self.write_lists(fact, runs, rows["proc"][at], rows["inc"][at], rows["lseq"][at], lists)

    def write_lists(
        self, fact: str, runs: Any, procs: Any, incs: Any, firsts: Any, values: Any
    ) -> None:
        self._parts.append(
            pa.RecordBatch.from_arrays(
                [
                    pa.array([self._prefix + fact] * len(runs), pa.string()),
                    pa.array(runs, pa.string()),
                    pa.array(procs, pa.int32()),
                    pa.array(incs, pa.int64()),
                    pa.array(firsts, pa.int64()),
                    values,
                ],
                names=_NAMES,
            )
        )

    def to_batch(self) -> Any:
        (whole,) = pa.Table.from_batches(self._parts).combine_chunks().to_batches()
        return whole


# Arrays whose groups are side by side.


def starts(columns: Any) -> Ints:
    """Where a group begins: a row that differs from the one before in a column."""
    changed: Any = None
    for values in columns:
        differs = values[1:] != values[:-1]
        changed = differs if changed is None else changed | differs
    return np.concatenate([[0], np.flatnonzero(changed) + 1]).astype(np.int64)


def lasts(at: Ints, count: int) -> Ints:
    return np.append(at[1:], count) - 1


def widths(at: Ints, count: int) -> Ints:
    """How many rows each group has."""
    return lasts(at, count) - at + 1


def numbered(at: Ints, count: int) -> Ints:
    marks = np.zeros(count, dtype=np.int64)
    marks[at[1:]] = 1
    return np.cumsum(marks)


def continued(number: Ints) -> Ints:
    """Whether a row has one of its group before it."""
    return np.concatenate([[False], number[1:] == number[:-1]])


def sums(values: Ints, at: Ints) -> Ints:
    return np.add.reduceat(values.astype(np.int64), at)


def xors(values: Ints, at: Ints) -> Ints:
    return np.bitwise_xor.reduceat(values, at).view(np.int64)


def ascending(columns: Sequence[Ints]) -> bool:
    """Whether rows never fall, by the first column, then the second and so on."""
    one, next_ = [c[:-1] for c in columns], [c[1:] for c in columns]
    return not bool(less(next_, one).any())


def less(one: Sequence[Ints], other: Sequence[Ints]) -> Ints:
    """Which rows of `one` are smaller, by the first column, then the second and so on."""
    less = one[-1] < other[-1]
    for a, b in zip(one[-2::-1], other[-2::-1], strict=True):
        less = (a < b) | ((a == b) & less)
    return less


def hashed(columns: Sequence[Ints], salt: int) -> Ints:
    """64 bits of every row that depend on every bit of its columns."""
    state = np.full(len(columns[0]), salt * 0x9E3779B97F4A7C15 % 2**64, dtype=np.uint64)
    for values in columns:
        state ^= values.view(np.uint64)
        state *= np.uint64(0xBF58476D1CE4E5B9)
        state ^= state >> np.uint64(27)
        state *= np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state
