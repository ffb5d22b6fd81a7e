"""Facts about what was sent and delivered, as spans of numbers.

The messages of one life of a node are numbered, and a run that loses none has them sent and
delivered in long spans of consecutive numbers. Told as spans they are few, and yet say exactly
which messages were meant:

    sent          messages that a node sent in a view, one after the other; what it sent before its
                  first delivery there and what it sent after it are two spans
    delivered     messages of a sender that a node delivered in a view, one after the other
    withdrawn     messages that a node withdrew
    transitional  every row of deliveries in a transitional view, of which there are few
    hole          numbers that keys leap over within a regular view, as bits, by block of keys
    empty         numbers of keys that belong to no message, as bits, by block of keys
    leap          keys that leap over more numbers than `NUMBERS_MAX`, so that holes are not told
    life          crashes (0) and recoveries (1)
    unusual       what spans cannot tell: messages with destinations of their own, confirmations
                  without a number, or more spans than `SPANS_MAX`
"""

import numpy as np

from roundelay.core.effects import Kind
from roundelay.pipeline.expressions import BLOCK_KEYS
from roundelay.pipeline.proofs.arrays import BatchRows, FactWriter, Ints, lasts, starts, widths
from roundelay.trace.schema import REGULAR

SPANS_MAX = 8192
"""Spans of one kind that are written about a batch, at most: facts must fit into memory. A batch
that has more is marked as unusual, and its run is not concluded upon by spans."""

NUMBERS_MAX = 2_000_000
"""Numbers that the keys of a batch may leap over, all leaps together. The bits of more
numbers would not fit into memory: where there are more, only that is told."""

VIEW = ("c_seq", "c_rep", "c_kind", "has_c_seq")
"""The columns that tell in which view a row was written; the last is 0 if the row names none."""


def write_spans(rows: BatchRows, facts: FactWriter) -> None:
    """Facts about everything but deliveries."""
    about = rows["has_m_src"].astype(bool)
    numbered = rows["has_k2"].astype(bool)
    unusual = (rows["has_dst"].astype(bool) & about) | (rows.of(Kind.CONFIRM) & ~numbered)
    _unusual(rows, facts, np.flatnonzero(unusual))
    at = np.flatnonzero(rows.of(Kind.CRASH, Kind.RECOVER))
    facts.write("life", rows, at, rows.of(Kind.RECOVER)[at])
    _sent(rows, facts, np.flatnonzero(rows.of(Kind.ORIGINATE) & about))
    withdrawn = np.flatnonzero(rows.of(Kind.WITHDRAW) & about)
    facts.write("withdrawn", rows, withdrawn, *_numbers(rows, withdrawn, withdrawn))
    empty = np.flatnonzero(numbered & ~about)
    _bits("empty", rows, facts, empty, rows["k2"][empty], np.ones(len(empty), dtype=np.int64))


def write_delivery_spans(rows: BatchRows, by: Ints, facts: FactWriter) -> None:
    """Facts about deliveries; `by` is their order by sender."""
    _delivered(rows, by, facts)
    _transitional(rows, facts)
    write_holes(rows, facts)


def _unusual(rows: BatchRows, facts: FactWriter, at: Ints, fact: str = "unusual") -> None:
    """v: nothing of interest. Once for every segment that has one of these rows."""
    at = at[np.unique(rows.number[at], return_index=True)[1]]
    facts.write(fact, rows, at, rows["lseq"][at])


def _numbers(rows: BatchRows, first: Ints, last: Ints) -> list[Ints]:
    """Of spans from a row to a row: sender, its life, first and last number."""
    high = rows["m_seq"][last] + rows["count"][last] - 1
    return [rows["m_src"][first], rows["m_inc"][first], rows["m_seq"][first], high]


def _spans(rows: BatchRows, by: Ints, *apart: Ints) -> tuple[Ints, Ints]:
    """Where spans begin and end, in the order `by`; `apart` are columns that a span is one of."""
    seq = rows["m_seq"][by]
    gap = np.zeros(len(by), dtype=np.int64)
    gap[1:] = seq[1:] != seq[:-1] + rows["count"][by][:-1]
    at = starts(
        [
            rows.number[by],
            *(rows[name][by] for name in (*VIEW, "m_src", "m_inc")),
            *(column[by] for column in apart),
            np.cumsum(gap),
        ]
    )
    return by[at], by[lasts(at, len(by))]


def _delivered(rows: BatchRows, by: Ints, facts: FactWriter) -> None:
    """v: view, sender, its life, first and last number, whether they have keys, the keys' view."""
    apart = [rows["has_k2"], rows["k0"], rows["k1"]]
    at, last = _spans(rows, by, *apart)
    if len(at) > SPANS_MAX:
        return _unusual(rows, facts, at)
    values = [*(rows[name][at] for name in VIEW), *_numbers(rows, at, last)]
    facts.write("delivered", rows, at, *values, *(column[at] for column in apart))


def _sent(rows: BatchRows, facts: FactWriter, by: Ints) -> None:
    """v: view, sender, its life, first and last number, last lseq."""
    if not len(by):
        return None
    stay = starts([rows.number, *(rows[name] for name in VIEW)])
    delivered = np.cumsum(rows.of(Kind.DELIVER))
    before = np.repeat(delivered[stay] - rows.of(Kind.DELIVER)[stay], widths(stay, rows.count))
    at, last = _spans(rows, by, (delivered > before).astype(np.int64))
    if len(at) > SPANS_MAX:
        return _unusual(rows, facts, at)
    values = [*(rows[name][at] for name in VIEW), *_numbers(rows, at, last)]
    return facts.write("sent", rows, at, *values, rows["lseq"][last])


def _transitional(rows: BatchRows, facts: FactWriter) -> None:
    """v: view, sender, its life, first and last number, whether they have keys, first key."""
    at = np.flatnonzero(rows["c_kind"] != REGULAR)
    if len(at) > SPANS_MAX:
        return _unusual(rows, facts, at)
    values = [*(rows[name][at] for name in VIEW), *_numbers(rows, at, at)]
    key = (rows[name][at] for name in ("has_k2", "k0", "k1", "k2", "k3"))
    return facts.write("transitional", rows, at, *values, *key)


# Numbers of keys.


def write_holes(rows: BatchRows, facts: FactWriter) -> None:
    """v, as of empty: k0, k1, number of the block, bits."""
    rows = rows.where(rows["has_k2"].astype(bool) & (rows["c_kind"] == REGULAR))
    if not rows.count:
        return
    same = np.ones(rows.count - 1, dtype=bool)
    for column in (rows.number, *(rows[name] for name in ("k0", "k1", *VIEW))):
        same &= column[1:] == column[:-1]
    leap = np.where(same, np.diff(rows["k2"]) - 1, 0)
    at = np.flatnonzero(leap > 0)
    far = np.isin(rows.number[at], rows.number[at[leap[at] > NUMBERS_MAX]])
    if leap[at[~far]].sum() > NUMBERS_MAX:
        far[:] = True
    _unusual(rows, facts, at[far], "leap")
    near = at[~far]
    _bits("hole", rows, facts, near, rows["k2"][near] + 1, leap[near])


def _bits(
    fact: str, rows: BatchRows, facts: FactWriter, at: Ints, first: Ints, count: Ints
) -> None:
    """Bits of `count` numbers from `first` on, for each of the rows `at`."""
    if not len(at):
        return
    row = np.repeat(at, count)
    ends = np.cumsum(count)
    number = np.repeat(first - (ends - count), count) + np.arange(ends[-1])
    order = np.lexsort([number, rows["k1"][row], rows["k0"][row], rows["run"][row]])
    row, number = row[order], number[order]
    block = number // BLOCK_KEYS
    start = starts([rows["run"][row], rows["k0"][row], rows["k1"][row], block])
    bits = np.zeros((len(start), BLOCK_KEYS), dtype=np.uint8)
    group = np.repeat(np.arange(len(start)), widths(start, len(row)))
    bits[group, number - block * BLOCK_KEYS] = 1
    words = np.packbits(bits, axis=1, bitorder="little").view("<i8")
    which = row[start]
    values = [rows["k0"][which], rows["k1"][which], block[start], *words.T]
    facts.write(fact, rows, which, *values)
