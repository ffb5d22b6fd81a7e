"""Facts: what one batch of a table says, in a handful of numbers.

The rows of a batch are sorted by node; what a batch has of one life of a node, (run, proc, inc), is
a *segment*. Of each segment these facts are kept, and everything else about deliveries is
concluded from them:

    writer   how its rows are numbered
    order    first and last order key, and whether the keys climb in between
    fall     where keys, or the messages of a sender, do not climb: the keys on both sides
    source   of each sender: first and last message, and whether its numbers climb in between
    stay     of each view: how many messages, their last key, and a fingerprint of them
    block    of each block of keys, in each view: how many messages, and a fingerprint of them with
             their keys
    install  every view that a node enters, with its members

Facts of one batch are few, whatever it holds. They are made with numpy, without a loop over rows.

A fingerprint is the exclusive or of a hash of each row, so it can be put together from pieces in
any order. Two rows alike would cancel out: nobody may rely on a fingerprint where a node may have
delivered something twice, and two nodes whose rows cover different ranges of messages look
different even if they are not. Either only costs a closer look.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roundelay.core.effects import Kind
from roundelay.pipeline.session import parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_ROWS = 131_072
"""Rows in a batch: what a task holds of the table at a time."""

TASK_ROWS = 2_000_000

FALLS_MAX = 20
"""Falls of each kind that are told of one batch: they are to convict, not to be counted."""

BLOCK_KEYS = 2048
"""Numbers in a block of keys."""

COLUMNS = (
    *("run", "kind", "proc", "inc", "lseq", "gseq", "c_seq", "c_rep", "c_kind"),
    *("m_src", "m_inc", "m_seq", "count", "k0", "k1", "k2", "k3", "members"),
)
"""What is read."""

DDL = "fact string, run string, proc int, inc int, first bigint, v array<bigint>"

_NAMES = ["fact", "run", "proc", "inc", "first", "v"]

Ints = Any
"""A numpy array of 64-bit integers."""


def gather(spark: "SparkSession", files: Sequence[Path]) -> "DataFrame":
    """The facts of all rows of a table, whose data files these are.

    Tasks read the files themselves, some row groups each: handing every row from Spark to Python
    would cost several times what the work on it does.
    """
    works = [work for file in files for work in _works(file)]
    full = sum(rows for *_, rows in works) // TASK_ROWS
    tasks = max(1, min(len(works), max(full, 2 * parallelism(spark))))
    rows = [(json.dumps(work[:3]), number % tasks) for number, work in enumerate(works)]
    units = spark.createDataFrame(rows, "work string, task int")
    return units.repartitionById(tasks, "task").mapInArrow(_facts_of_all, DDL)


def _works(file: Path) -> Iterator[tuple[str, int, int, int]]:
    """A file in stretches of row groups: path, first and behind the last, rows."""
    meta = pq.read_metadata(file)
    start = rows = 0
    for group in range(meta.num_row_groups):
        rows += meta.row_group(group).num_rows
        if rows >= TASK_ROWS or group + 1 == meta.num_row_groups:
            yield str(file), start, group + 1, rows
            start, rows = group + 1, 0


def _facts_of_all(batches: Iterator[Any]) -> Iterator[Any]:
    for works in batches:
        for text in works.column("work").to_pylist():
            path, first, end = json.loads(text)
            with pq.ParquetFile(path, memory_map=True) as file:
                groups = list(range(first, end))
                for batch in file.iter_batches(
                    BATCH_ROWS, row_groups=groups, columns=list(COLUMNS), use_threads=False
                ):
                    if batch.num_rows:
                        yield facts_of(batch)


def facts_of(batch: Any) -> Any:
    """The facts of one batch, as `DDL` has them."""
    runs = batch.column("run").dictionary_encode()
    names = runs.dictionary.to_pylist()
    rows = _Rows(batch, np.asarray(runs.indices).astype(np.int64))
    found = _Found(names)
    _writers(rows, found)
    _installs(batch, found)
    delivered = rows.where(rows["deliver"] == 1)
    if delivered.count:
        _order(delivered, found)
        _sources(delivered, found)
        _stays(delivered, found)
        _blocks(delivered, found)
    return found.batch()


class _Rows:
    """Columns as arrays, sorted by node and then by its own order."""

    count = 0

    def __init__(self, batch: Any, run: Ints) -> None:
        deliver = np.asarray(pc.equal(batch.column("kind"), "deliver")).astype(np.int64)
        self.column: dict[str, Ints] = {"run": run, "deliver": deliver}
        for name in COLUMNS[2:-1]:
            array = batch.column(name)
            if name in ("gseq", "k2", "c_seq", "m_src"):
                self.column[f"has_{name}"] = np.asarray(array.is_valid()).astype(np.int64)
            filled = pc.fill_null(array, 0) if array.null_count else array
            self.column[name] = np.asarray(filled).astype(np.int64, copy=False)
        order = [self.column[name] for name in ("m_seq", "lseq", "inc", "proc", "run")]
        if not _ascending(order[::-1]):
            self._take(np.lexsort(order))
        self._cut()

    def _take(self, places: Ints) -> None:
        self.column = {name: values[places] for name, values in self.column.items()}

    def _cut(self) -> None:
        self.count = len(self.column["run"])
        self.segment = _starts(self.column[name] for name in ("run", "proc", "inc"))
        """Where segments begin."""
        self.number = _numbered(self.segment, self.count)
        """The segment of each row."""

    def where(self, mask: Any) -> "_Rows":
        """Some of the rows."""
        rows = object.__new__(_Rows)
        rows.column = dict(self.column)
        rows._take(np.flatnonzero(mask))
        if len(rows["run"]):
            rows._cut()
        return rows

    def __getitem__(self, name: str) -> Ints:
        return self.column[name]


class _Found:
    """Facts being gathered."""

    def __init__(self, runs: Sequence[str]) -> None:
        self._runs = runs
        self._parts: list[Any] = []

    def tell(self, fact: str, rows: _Rows, at: Ints, *values: Ints) -> None:
        """A fact of each stretch of rows that begins at one of the places `at`."""
        if not len(at):
            return
        width = len(values)
        offsets = np.arange(0, (len(at) + 1) * width, width, dtype=np.int32)
        flat = np.stack([np.asarray(v, dtype=np.int64) for v in values], axis=1).reshape(-1)
        runs = [self._runs[number] for number in rows["run"][at].tolist()]
        lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, pa.int64()))
        self.add(fact, runs, rows["proc"][at], rows["inc"][at], rows["lseq"][at], lists)

    def add(self, fact: str, runs: Any, procs: Any, incs: Any, firsts: Any, values: Any) -> None:
        self._parts.append(
            pa.RecordBatch.from_arrays(
                [
                    pa.array([fact] * len(runs), pa.string()),
                    pa.array(runs, pa.string()),
                    pa.array(procs, pa.int32()),
                    pa.array(incs, pa.int32()),
                    pa.array(firsts, pa.int64()),
                    values,
                ],
                names=_NAMES,
            )
        )

    def batch(self) -> Any:
        (whole,) = pa.Table.from_batches(self._parts).combine_chunks().to_batches()
        return whole


def _writers(rows: _Rows, found: _Found) -> None:
    """v: last lseq, rows, missing between, first missing or -1, repeated, rows without gseq, pairs
    whose gseq does not climb, first gseq, last gseq, rows about messages."""
    at = rows.segment
    last = _lasts(at, rows.count)
    lseq, gseq = rows["lseq"], rows["gseq"]
    inside = _inside(rows.number)
    step = np.where(inside, np.diff(lseq, prepend=lseq[:1]), 1)
    hole = np.where(step > 1, step - 1, 0)
    first_hole = np.full(len(at), -1, dtype=np.int64)
    places = np.flatnonzero(hole)[::-1]
    first_hole[rows.number[places]] = lseq[places - 1] + 1
    disorder = inside & (np.diff(gseq, prepend=gseq[:1]) <= 0)
    found.tell(
        "writer",
        rows,
        at,
        lseq[last],
        last - at + 1,
        _sums(hole, at),
        first_hole,
        _sums(step == 0, at),
        _sums(1 - rows["has_gseq"], at),
        _sums(disorder, at),
        gseq[at],
        gseq[last],
        _sums(rows["has_m_src"], at),
    )


def _order(rows: _Rows, found: _Found) -> None:
    """v: last lseq, rows, messages, rows without a key, falls, first key, last key."""
    at = rows.segment
    last = _lasts(at, rows.count)
    low = [rows["k0"], rows["k1"], rows["k2"], rows["k3"]]
    high = [*low[:3], rows["k3"] + rows["count"] - 1]
    keyed = rows["has_k2"].astype(bool)
    inside = _inside(rows.number)
    falls = np.zeros(rows.count, dtype=bool)
    falls[1:] = ~_less([k[:-1] for k in high], [k[1:] for k in low])
    falls &= inside & keyed
    falls[1:] &= keyed[:-1]
    _falls(rows, found, np.flatnonzero(falls) - 1, np.flatnonzero(falls))
    found.tell(
        "order",
        rows,
        at,
        rows["lseq"][last],
        last - at + 1,
        _sums(rows["count"], at),
        _sums(~keyed, at),
        _sums(falls, at),
        *(k[at] for k in low),
        *(k[last] for k in high),
    )


def _falls(rows: _Rows, found: _Found, one: Ints, next_: Ints) -> None:
    """v: of two deliveries the keys without k3, in the order of delivery."""
    one, next_ = one[:FALLS_MAX], next_[:FALLS_MAX]
    names = ("k0", "k1", "k2")
    keys = [*(rows[name][one] for name in names), *(rows[name][next_] for name in names)]
    found.tell("fall", rows, one, *keys)


def _sources(rows: _Rows, found: _Found) -> None:
    """v: sender, last lseq, messages, falls, first m_inc, first m_seq, last m_inc, last m_seq,
    and of the first and the last the key without k3."""
    by = np.lexsort([rows["m_src"], rows.number])
    sender, inc, seq = rows["m_src"][by], rows["m_inc"][by], rows["m_seq"][by]
    last_seq = seq + rows["count"][by] - 1
    at = _starts([rows.number[by], sender])
    last = _lasts(at, rows.count)
    inside = _inside(_numbered(at, rows.count))
    falls = np.zeros(rows.count, dtype=bool)
    falls[1:] = ~_less([inc[:-1], last_seq[:-1]], [inc[1:], seq[1:]])
    falls &= inside
    places = np.flatnonzero(falls)
    _falls(rows, found, by[places - 1], by[places])
    found.tell(
        "source",
        rows,
        by[at],
        sender[at],
        rows["lseq"][by[last]],
        _sums(rows["count"][by], at),
        _sums(falls, at),
        inc[at],
        seq[at],
        inc[last],
        last_seq[last],
        *(rows[name][by[at]] for name in ("k0", "k1", "k2")),
        *(rows[name][by[last]] for name in ("k0", "k1", "k2")),
    )


def _stays(rows: _Rows, found: _Found) -> None:
    """v: view (with whether there is one), last lseq, messages, fingerprint, last key."""
    view = [rows["c_seq"], rows["c_rep"], rows["c_kind"], rows["has_c_seq"]]
    at = _starts([rows.number, *view])
    last = _lasts(at, rows.count)
    message = [rows["m_src"], rows["m_inc"], rows["m_seq"], rows["count"]]
    found.tell(
        "stay",
        rows,
        at,
        *(v[at] for v in view),
        rows["lseq"][last],
        _sums(rows["count"], at),
        *(_xors(_hash(message, salt), at) for salt in (1, 2)),
        *(rows[name][last] for name in ("k0", "k1", "k2")),
        rows["k3"][last] + rows["count"][last] - 1,
    )


def _blocks(rows: _Rows, found: _Found) -> None:
    """v: k0, k1, number of the block, view (with whether there is one), messages, fingerprint."""
    keyed = np.flatnonzero(rows["has_k2"])
    if not len(keyed):
        return
    key = [rows[name][keyed] for name in ("k0", "k1", "k2", "k3")]
    view = [rows[name][keyed] for name in ("c_seq", "c_rep", "c_kind", "has_c_seq")]
    block = [key[0], key[1], key[2] // BLOCK_KEYS, *view]
    at = _starts([rows.number[keyed], *block])
    message = [rows[name][keyed] for name in ("m_src", "m_inc", "m_seq", "count")]
    found.tell(
        "block",
        rows,
        keyed[at],
        *(b[at] for b in block),
        _sums(rows["count"][keyed], at),
        *(_xors(_hash([*key, *message], salt), at) for salt in (3, 4)),
    )


def _installs(batch: Any, found: _Found) -> None:
    """v: c_seq, c_rep, c_kind, and the members."""
    installs = batch.filter(pc.equal(batch.column("kind"), Kind.INSTALL.value))
    if not installs.num_rows:
        return
    names = ("run", "proc", "inc", "lseq", "c_seq", "c_rep", "c_kind", "members")
    runs, procs, incs, firsts, *rest = (installs.column(name).to_pylist() for name in names)
    values = [[*view, *(members or ())] for *view, members in zip(*rest, strict=True)]
    found.add("install", runs, procs, incs, firsts, pa.array(values, pa.list_(pa.int64())))


# Arrays whose groups are side by side.


def _starts(columns: Any) -> Ints:
    """Where a group begins: a row that differs from the one before in a column."""
    changed: Any = None
    for values in columns:
        differs = values[1:] != values[:-1]
        changed = differs if changed is None else changed | differs
    return np.concatenate([[0], np.flatnonzero(changed) + 1]).astype(np.int64)


def _lasts(at: Ints, count: int) -> Ints:
    return np.append(at[1:], count) - 1


def _numbered(at: Ints, count: int) -> Ints:
    marks = np.zeros(count, dtype=np.int64)
    marks[at[1:]] = 1
    return np.cumsum(marks)


def _inside(number: Ints) -> Ints:
    """Whether a row has one of its group before it."""
    return np.concatenate([[False], number[1:] == number[:-1]])


def _sums(values: Ints, at: Ints) -> Ints:
    return np.add.reduceat(values.astype(np.int64), at)


def _xors(values: Ints, at: Ints) -> Ints:
    return np.bitwise_xor.reduceat(values, at).view(np.int64)


def _ascending(columns: Sequence[Ints]) -> bool:
    """Whether rows never fall, by the first column, then the second and so on."""
    one, next_ = [c[:-1] for c in columns], [c[1:] for c in columns]
    return not bool(_less(next_, one).any())


def _less(one: Sequence[Ints], other: Sequence[Ints]) -> Ints:
    """Which rows of `one` are smaller, by the first column, then the second and so on."""
    less = one[-1] < other[-1]
    for a, b in zip(one[-2::-1], other[-2::-1], strict=True):
        less = (a < b) | ((a == b) & less)
    return less


def _hash(columns: Sequence[Ints], salt: int) -> Ints:
    """64 bits of every row that depend on every bit of its columns."""
    state = np.full(len(columns[0]), salt * 0x9E3779B97F4A7C15 % 2**64, dtype=np.uint64)
    for values in columns:
        state ^= values.view(np.uint64)
        state *= np.uint64(0xBF58476D1CE4E5B9)
        state ^= state >> np.uint64(27)
        state *= np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state
