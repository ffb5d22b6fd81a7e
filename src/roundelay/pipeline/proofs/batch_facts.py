"""Facts: what one batch of a table says, in a handful of numbers.

The rows of a batch are sorted by node; what a batch has of one life of a node, (run, proc, inc),
without a hole in the numbers of its rows is a *segment*: a batch may have some pieces of a trace,
and another one those in between. Of each segment these facts are kept, and everything else about
deliveries is concluded from them:

    writer   how its rows are numbered
    order    first and last order key, and whether the keys climb in between; of deliveries that
             have a key
    fall     where keys, or the messages of a sender, do not climb: the keys on both sides
    source   of each sender: first and last message, and whether its numbers climb in between
    stay     of each view: how many messages, their first and last key, and a fingerprint of them
    block    of each block of keys, in each view: how many messages, and a fingerprint of them with
             their keys
    install  every view that a node enters, with its members
    end      every component at a quiet end

`span_facts` has those about what was sent, and about numbers that are missing.

All these are about the rows of the ordering. Rows of the layer below it tell of the same messages
again; facts about these have names of their own, which begin with `BELOW`, and are fewer: no key is
known there. Where a protocol confirms what it decided, `order`, `stay` and `hole` are told of the
confirmations too, in facts whose names begin with `CONFIRMED`.

Facts of one batch are few, whatever it holds. They are made with numpy, without a loop over rows.

A fingerprint is the exclusive or of a hash of each row, so it can be put together from pieces in
any order. Two rows alike would cancel out: nobody may rely on a fingerprint where a node may have
delivered something twice, and two nodes whose rows cover different ranges of messages look
different even if they are not. Either only costs a closer look.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roundelay.core.effects import Kind
from roundelay.pipeline.expressions import BLOCK_KEYS
from roundelay.pipeline.proofs import span_facts
from roundelay.pipeline.proofs.arrays import (
    COLUMNS,
    BatchRows,
    FactWriter,
    Ints,
    continued,
    hashed,
    lasts,
    less,
    numbered,
    starts,
    sums,
    xors,
)
from roundelay.pipeline.proofs.views import Fact
from roundelay.pipeline.proofs.writer_logs import Log, read_logs
from roundelay.pipeline.session import parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_ROWS = 131_072
"""Rows in a batch: what a task holds of the table at a time. Smaller batches make more facts."""

TASK_ROWS = 2_000_000
"""Rows of the table that a task reads; fewer where that would leave cores without a task."""

FALLS_MAX = 20
"""Falls of each kind that are written about one batch, at most. A few are enough to convict a run:
they are not counted."""

BELOW = "below/"
"""What the names of facts about the layer below begin with."""
CONFIRMED = "confirmed/"
"""What the names of facts about confirmations begin with."""

DDL = "fact string, run string, proc int, inc bigint, first bigint, v array<bigint>"


def gather(
    spark: "SparkSession", files: Sequence[Path], runs: Collection[str] | None = None
) -> "DataFrame":
    """The facts of all rows of a table, whose data files these are, or of those of some runs.

    Tasks read the files themselves, some row groups each: handing every row from Spark to Python
    would cost several times what the work on it does.
    """
    works = [work for file in files for work in _works(file)]
    full = sum(rows for *_, rows in works) // TASK_ROWS
    tasks = max(1, min(len(works), max(full, 2 * parallelism(spark))))
    only = None if runs is None else sorted(runs)
    rows = [(json.dumps([*work[:3], only]), n % tasks) for n, work in enumerate(works)]
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
            path, first, end, only = json.loads(text)
            wanted = None if only is None else pa.array(only, pa.string())
            with pq.ParquetFile(path, memory_map=True) as file:
                groups = list(range(first, end))
                for batch in file.iter_batches(
                    BATCH_ROWS, row_groups=groups, columns=list(COLUMNS), use_threads=False
                ):
                    if wanted is not None:
                        batch = batch.filter(pc.is_in(batch.column("run"), wanted))
                    if batch.num_rows:
                        yield facts_of(batch)


def facts_of(batch: Any) -> Any:
    """The facts of one batch, as `DDL` has them."""
    runs = batch.column("run").dictionary_encode()
    names = runs.dictionary.to_pylist()
    rows = BatchRows(batch, np.asarray(runs.indices).astype(np.int64))
    facts = FactWriter(names)
    _writers(rows, facts)
    _views(batch, facts)
    below = rows["below"]
    _layer(rows.where(~below), facts)
    if np.any(below):
        _layer(rows.where(below), facts.prefixed(BELOW))
    return facts.to_batch()


def logs_of(batches: Sequence[Any]) -> list[Log]:
    """How many rows each life of a node wrote, from all rows of one run."""
    told: list[Fact] = []
    for batch in batches:
        facts = FactWriter([""])
        _writers(BatchRows(batch, np.zeros(batch.num_rows, dtype=np.int64)), facts)
        told += facts_in(facts.to_batch())
    return list(read_logs(sorted(told, key=lambda fact: (fact.proc, fact.inc, fact.first, fact.v))))


def facts_in(table: Any) -> list[Fact]:
    """The facts that `DDL` has as columns, of one run."""
    columns = [table.column(name).to_pylist() for name in Fact._fields]
    return list(map(Fact._make, zip(*columns, strict=True)))


def _layer(rows: BatchRows, facts: FactWriter) -> None:
    """Facts about the messages of one layer."""
    if not rows.count:
        return
    span_facts.write_spans(rows, facts)
    delivered = rows.where(rows.of(Kind.DELIVER))
    if delivered.count:
        by = delivered.by_sender()
        span_facts.write_delivery_spans(delivered, by, facts)
        _order(delivered.where(delivered["has_k2"]), facts)
        _sources(delivered, by, facts)
        _stays(delivered, facts)
        _blocks(delivered, facts)
    confirmed = rows.where(rows.of(Kind.CONFIRM) & rows["has_k2"].astype(bool))
    if confirmed.count:
        told = facts.prefixed(CONFIRMED)
        _order(confirmed, told)
        _stays(confirmed, told)
        span_facts.write_holes(confirmed, told)


def _writers(rows: BatchRows, facts: FactWriter) -> None:
    """v: last lseq, rows, missing between, first missing or -1, repeated, rows without gseq, pairs
    whose gseq does not climb, first gseq, last gseq, rows about messages."""
    at = rows.segment
    last = lasts(at, rows.count)
    lseq, gseq = rows["lseq"], rows["gseq"]
    inside = continued(rows.number)
    step = np.where(inside, np.diff(lseq, prepend=lseq[:1]), 1)
    hole = np.where(step > 1, step - 1, 0)
    first_hole = np.full(len(at), -1, dtype=np.int64)
    places = np.flatnonzero(hole)[::-1]
    first_hole[rows.number[places]] = lseq[places - 1] + 1
    disorder = inside & (np.diff(gseq, prepend=gseq[:1]) <= 0)
    facts.write(
        "writer",
        rows,
        at,
        lseq[last],
        last - at + 1,
        sums(hole, at),
        first_hole,
        sums(step == 0, at),
        sums(1 - rows["has_gseq"], at),
        sums(disorder, at),
        gseq[at],
        gseq[last],
        sums(rows["has_m_src"], at),
    )


def _order(rows: BatchRows, facts: FactWriter) -> None:
    """Of rows that have a key. v: last lseq, messages, falls, first key, last key."""
    if not rows.count:
        return
    at = rows.segment
    last = lasts(at, rows.count)
    low = [rows["k0"], rows["k1"], rows["k2"], rows["k3"]]
    high = [*low[:3], rows["k3"] + rows["count"] - 1]
    falls = np.zeros(rows.count, dtype=bool)
    falls[1:] = ~less([k[:-1] for k in high], [k[1:] for k in low])
    falls &= continued(rows.number)
    _falls(rows, facts, np.flatnonzero(falls) - 1, np.flatnonzero(falls))
    facts.write(
        "order",
        rows,
        at,
        rows["lseq"][last],
        sums(rows["count"], at),
        sums(falls, at),
        *(k[at] for k in low),
        *(k[last] for k in high),
    )


def _falls(rows: BatchRows, facts: FactWriter, one: Ints, next_: Ints) -> None:
    """v: of two deliveries the keys without k3, in the order of delivery; and the messages."""
    one, next_ = one[:FALLS_MAX], next_[:FALLS_MAX]
    names = ("k0", "k1", "k2")
    keys = [*(rows[name][one] for name in names), *(rows[name][next_] for name in names)]
    last = rows["m_seq"][one] + rows["count"][one] - 1
    messages = [rows["m_src"][one], rows["m_inc"][one], last]
    messages += [rows[name][next_] for name in ("m_src", "m_inc", "m_seq")]
    facts.write("fall", rows, one, *keys, *messages)


def _sources(rows: BatchRows, by: Ints, facts: FactWriter) -> None:
    """v: sender, last lseq, messages, falls, first m_inc, first m_seq, last m_inc, last m_seq,
    and of the first and the last the key without k3."""
    sender, inc, seq = rows["m_src"][by], rows["m_inc"][by], rows["m_seq"][by]
    last_seq = seq + rows["count"][by] - 1
    at = starts([rows.number[by], sender])
    last = lasts(at, rows.count)
    inside = continued(numbered(at, rows.count))
    falls = np.zeros(rows.count, dtype=bool)
    falls[1:] = ~less([inc[:-1], last_seq[:-1]], [inc[1:], seq[1:]])
    falls &= inside
    places = np.flatnonzero(falls)
    _falls(rows, facts, by[places - 1], by[places])
    facts.write(
        "source",
        rows,
        by[at],
        sender[at],
        rows["lseq"][by[last]],
        sums(rows["count"][by], at),
        sums(falls, at),
        inc[at],
        seq[at],
        inc[last],
        last_seq[last],
        *(rows[name][by[at]] for name in ("k0", "k1", "k2")),
        *(rows[name][by[last]] for name in ("k0", "k1", "k2")),
    )


def _stays(rows: BatchRows, facts: FactWriter) -> None:
    """v: view (with whether there is one), last lseq, messages, fingerprint, messages without a
    key, how often the keys' view changes, first key without k3, last key."""
    view = [rows[name] for name in span_facts.VIEW]
    at = starts([rows.number, *view])
    last = lasts(at, rows.count)
    message = [rows["m_src"], rows["m_inc"], rows["m_seq"], rows["count"]]
    rings = np.zeros(rows.count, dtype=np.int64)
    rings[starts([rows["k0"], rows["k1"]])] = 1
    rings[at] = 0
    facts.write(
        "stay",
        rows,
        at,
        *(v[at] for v in view),
        rows["lseq"][last],
        sums(rows["count"], at),
        *(xors(hashed(message, salt), at) for salt in (1, 2)),
        sums(rows["count"] * (1 - rows["has_k2"]), at),
        sums(rings, at),
        *(rows[name][at] for name in ("k0", "k1", "k2")),
        *(rows[name][last] for name in ("k0", "k1", "k2")),
        rows["k3"][last] + rows["count"][last] - 1,
    )


def _blocks(rows: BatchRows, facts: FactWriter) -> None:
    """v: k0, k1, number of the block, view (with whether there is one), messages, fingerprint."""
    keyed = np.flatnonzero(rows["has_k2"])
    if not len(keyed):
        return
    key = [rows[name][keyed] for name in ("k0", "k1", "k2", "k3")]
    view = [rows[name][keyed] for name in ("c_seq", "c_rep", "c_kind", "has_c_seq")]
    block = [key[0], key[1], key[2] // BLOCK_KEYS, *view]
    at = starts([rows.number[keyed], *block])
    message = [rows[name][keyed] for name in ("m_src", "m_inc", "m_seq", "count")]
    facts.write(
        "block",
        rows,
        keyed[at],
        *(b[at] for b in block),
        sums(rows["count"][keyed], at),
        *(xors(hashed([*key, *message], salt), at) for salt in (3, 4)),
    )


def _views(batch: Any, facts: FactWriter) -> None:
    """install: v: c_seq, c_rep, c_kind, and the members; end: v: the members of a component."""
    for kind in (Kind.INSTALL, Kind.END):
        some = batch.filter(pc.equal(batch.column("kind"), kind.value))
        names = ("run", "proc", "inc", "lseq", "c_seq", "c_rep", "c_kind", "members")
        runs, procs, incs, firsts, *rest = (some.column(name).to_pylist() for name in names)
        values = [
            [*(view if kind is Kind.INSTALL else ()), *(members or ())]
            for *view, members in zip(*rest, strict=True)
        ]
        facts.write_lists(
            str(kind), runs, procs, incs, firsts, pa.array(values, pa.list_(pa.int64()))
        )
