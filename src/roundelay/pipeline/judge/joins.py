"""S5 and K4 of runs that are too large to be judged in one piece.

S5 compares claims of stability with the order of deliveries, K4 assignments of keys with receipts.
The rows to be compared lie far apart, so a join brings them together. Then neighbours are compared
piece by piece, and the last of each piece with the first of the next: no task holds more than a
piece of what a node or a ring did.

A join can prove that a run keeps the property. Of a run that does not, it names the messages that
show it; the local checker then judges these.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from roundelay.core.effects import Kind
from roundelay.pipeline.expressions import block_number, expanded, without_lower_layer
from roundelay.pipeline.proofs.accused import Message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STRETCH_ROWS = 20_000
"""Rows of a node that a task compares at a time. More need more memory; fewer make more tasks."""

MESSAGE = ("m_src", "m_inc", "m_seq")
LEVELS = (1, 2)
"""Levels of stability that a claim may name."""


def _of(events: "DataFrame", runs: Sequence[str], *kinds: Kind) -> "DataFrame":
    """One row per message, of some runs and kinds."""
    some = without_lower_layer(events).where(
        F.col("run").isin(list(runs)) & F.col("m_seq").isNotNull()
    )
    return expanded(some.where(F.col("kind").isin([kind.value for kind in kinds])))


# S5.


class Compared(NamedTuple):
    """What a join says of runs."""

    keep: dict[str, int]
    """Runs that keep the property, with its instances."""
    accused: dict[str, list[Message]]
    """Of others, messages that break it."""


def stable_prefix(
    events: "DataFrame", runs: Sequence[str], stretch_rows: int = STRETCH_ROWS
) -> Compared:
    """Which runs keep S5. Their deliveries must name their views, and no
    message come twice (D2).

    A node claims without holes if and only if, of any two deliveries in a row, it does not claim
    the second before the first.
    """
    if not runs:
        return Compared({}, {})
    place = F.struct("inc", "lseq", "m_seq")
    level = F.coalesce(F.col("level"), F.lit(1))
    claims = (
        _of(events, runs, Kind.STABLE)
        .groupBy("run", "proc", *MESSAGE)
        .agg(
            *(F.min(F.when(level == n, place)).alias(f"claimed{n}") for n in LEVELS),
            F.count("*").alias("claims"),
            F.count_if(~level.isin(*LEVELS)).alias("strange"),
        )
    )
    delivered = (
        _of(events, runs, Kind.DELIVER)
        .withColumn("stretch", F.expr(f"lseq div {stretch_rows}"))
        .select("run", "proc", *MESSAGE, "inc", "lseq", "stretch", "c_seq", "c_rep", "c_kind")
    )
    ends = (
        delivered.join(claims, ["run", "proc", *MESSAGE], "left")
        .groupBy("run", "proc", "inc", "stretch")
        .applyInArrow(_stretch, _STRETCH)
        .collect()
    )
    found = Compared(dict.fromkeys(runs, 0), {})
    for run, group in groupby(sorted(ends), key=itemgetter("run")):
        rows = list(group)
        pairs = [row["pair"] for row in rows if row["pair"]]
        pairs += [
            [*one["last_message"], *next_["first_message"]]
            for one, next_ in pairwise(rows)
            if one["proc"] == next_["proc"] and not _in_order(one["last"], next_["first"])
        ]
        if not pairs and all(row["fine"] for row in rows):
            found.keep[run] = sum(row["claims"] for row in rows)
        else:
            del found.keep[run]
            sides = [(pair[0:3], pair[3:6]) for pair in pairs[:PAIRS_MAX]]
            found.accused[run] = [(a, b, c) for two in sides for a, b, c in two]
    return found


PAIRS_MAX = 8
"""Pairs of messages of a run that are named, at most. One should do; more cost little."""

_ENDS: dict[str, Any] = {
    "run": pa.string(),
    "proc": pa.int32(),
    "inc": pa.int64(),
    "stretch": pa.int64(),
    "fine": pa.bool_(),
    "claims": pa.int64(),
    **dict.fromkeys(
        ("first", "last", "first_message", "last_message", "pair"), pa.list_(pa.int64())
    ),
}
_STRETCH = (
    "run string, proc int, inc bigint, stretch bigint, fine boolean, claims bigint, "
    "first array<bigint>, last array<bigint>, first_message array<bigint>, "
    "last_message array<bigint>, pair array<bigint>"
)
_Claimed = tuple[int, ...]
"""A view, and for each level whether it is claimed and where: three, and four for each level."""


def _stretch(key: tuple[Any, ...], table: Any) -> Any:
    """Whether a stretch of deliveries is claimed in order, the first pair that is not, and its
    ends."""
    rows = sorted(table.to_pylist(), key=lambda row: (row["lseq"], row["m_seq"]))
    claimed = [_claimed(row) for row in rows]
    messages = [[row[name] for name in MESSAGE] for row in rows]
    pair: list[int] = next(
        (
            messages[at] + messages[at + 1]
            for at, (one, next_) in enumerate(pairwise(claimed))
            if not _in_order(one, next_)
        ),
        [],
    )
    values = [
        *(part.as_py() for part in key),
        not pair and not any(row["strange"] for row in rows),
        sum(row["claims"] or 0 for row in rows),
        *(list(claimed[0]), list(claimed[-1]), messages[0], messages[-1], pair),
    ]
    arrays = [pa.array([v], t) for v, t in zip(values, _ENDS.values(), strict=True)]
    return pa.Table.from_arrays(arrays, names=list(_ENDS))


def _claimed(row: dict[str, Any]) -> _Claimed:
    view = [-1 if row[name] is None else row[name] for name in ("c_seq", "c_rep", "c_kind")]
    for level in LEVELS:
        at = row[f"claimed{level}"]
        view += [0, 0, 0, 0] if at is None else [1, at["inc"], at["lseq"], at["m_seq"]]
    return tuple(view)


def _in_order(one: Sequence[int], next_: Sequence[int]) -> bool:
    """Whether the second of two deliveries is not claimed before the first, in the same view."""
    if list(one[:3]) != list(next_[:3]):
        return True
    for start in (3, 7):
        a, b = list(one[start : start + 4]), list(next_[start : start + 4])
        if b[0] and not (a[0] and a < b):
            return False
    return True


# K4.


def caught_up(events: "DataFrame", runs: Sequence[str]) -> Compared:
    """Which runs keep K4. They must have a total order.

    Who assigns a key must have each message with a smaller one by the first time that it assigns
    a greater key than that message has: this is its deadline there.
    """
    if not runs:
        return Compared({}, {})
    orders = (
        _of(events, runs, Kind.ORDER)
        .where("k2 is not null")
        .withColumn("block", block_number())
        .select(
            *("run", "proc", "gseq", "block", *MESSAGE),
            *(F.coalesce(F.col(k), F.lit(0)).alias(k) for k in ("k0", "k1", "k2", "k3")),
        )
    )
    ring = ["run", "k0", "k1"]
    firsts = orders.groupBy(*ring, "block", "proc").agg(F.min("gseq").alias("gseq")).collect()
    beyond = orders.sparkSession.createDataFrame(
        list(_beyond(firsts)),
        "run string, k0 bigint, k1 bigint, block bigint, procs array<int>, places array<bigint>",
    )
    deadlines = (
        orders.join(F.broadcast(beyond), [*ring, "block"])
        .groupBy(*ring, "block")
        .applyInArrow(_deadlines, _DEADLINES)
    )
    held = (
        _of(events, runs, Kind.ORIGINATE, Kind.RECEIVE, Kind.DELIVER)
        .groupBy("run", F.col("proc").cast("int").alias("proc"), *MESSAGE)
        .agg(F.min("gseq").alias("since"))
    )
    late = F.col("since").isNull() | (F.col("since") > F.col("deadline")) | F.col("torn")
    broken = deadlines.join(held, ["run", "proc", *MESSAGE], "left").where(late)
    first = broken.groupBy("run").agg(
        F.min(F.struct("deadline", "proc", *MESSAGE, "torn")).alias("row")
    )
    accused: dict[str, list[Message]] = {}
    at = []
    for row in first.collect():
        accused[row["run"]] = [tuple(row["row"][name] for name in MESSAGE)]
        at.append((row["run"], row["row"]["deadline"]))
    if at:
        moments = orders.sparkSession.createDataFrame(at, "run string, gseq bigint")
        for row in orders.join(F.broadcast(moments), ["run", "gseq"]).collect():
            accused[row["run"]].append(tuple(row[name] for name in MESSAGE))
    key = F.struct("k0", "k1", "k2", "k3")
    counts = orders.groupBy(*ring, key.alias("key")).agg(F.count("*").alias("orders"))
    sums = counts.groupBy(*ring).agg(
        F.sum("orders").alias("all"), F.min_by("orders", "key").alias("lowest")
    )
    found = dict.fromkeys(runs, 0)
    for row in sums.collect():
        found[row["run"]] += row["all"] - row["lowest"]
    return Compared({run: n for run, n in found.items() if run not in accused}, accused)


def _beyond(firsts: Iterable[Any]) -> Iterable[tuple[Any, ...]]:
    """Of each block, when each node first assigned a key of a later block."""
    rings: dict[tuple[Any, ...], dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in firsts:
        rings[row["run"], row["k0"], row["k1"]][row["block"]].append(row)
    for ring, blocks in rings.items():
        first: dict[int, int] = {}
        for block in sorted(blocks, reverse=True):
            yield *ring, block, list(first), list(first.values())
            for row in blocks[block]:
                first[row["proc"]] = min(row["gseq"], first.get(row["proc"], row["gseq"]))


_DEADLINES = (
    "run string, m_src smallint, m_inc bigint, m_seq bigint, proc int, deadline bigint, "
    "torn boolean"
)


def _deadlines(key: tuple[Any, ...], table: Any) -> Any:
    """By when each node must have each message of a block; torn if a key has two of them."""
    rows = sorted(table.to_pylist(), key=_key, reverse=True)
    first = dict(zip(rows[0]["procs"], rows[0]["places"], strict=True))
    told: list[tuple[Any, ...]] = []
    for _, group in groupby(rows, key=_key):
        same = list(group)
        message = tuple(same[0][name] for name in MESSAGE)
        torn = any(tuple(row[name] for name in MESSAGE) != message for row in same)
        told += [(key[0].as_py(), *message, *deadline, torn) for deadline in first.items()]
        if torn and not first:
            told.append((key[0].as_py(), *message, same[0]["proc"], same[0]["gseq"], True))
        for row in same:
            first[row["proc"]] = min(row["gseq"], first.get(row["proc"], row["gseq"]))
    types = [pa.string(), pa.int16(), pa.int64(), pa.int64(), pa.int32(), pa.int64(), pa.bool_()]
    names = ["run", *MESSAGE, "proc", "deadline", "torn"]
    columns = zip(*told, strict=True) if told else [()] * len(types)
    arrays = [pa.array(list(c), t) for c, t in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=names)


def _key(row: dict[str, Any]) -> tuple[int, int]:
    return row["k2"], row["k3"]
