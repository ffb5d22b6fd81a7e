"""Slices for N4 and E2, which look at decisions: of a protocol that confirms what it decided.

N4 asks of a confirmation whether any node had made a later decision by then. Of each node, the
first one that it made tells. So a slice has the confirmations of a block of numbers, the decisions
with these numbers, and besides of every node the first decision with a number above the block.

E2 asks whether a decision was lost on its way to the next node that does not crash. Of any two
nodes, the first such loss is enough. It also asks which failures were over when others began: for
that, a slice has the first two decisions of every node after each crash.
"""

from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from roundelay.check.failures import DECISION
from roundelay.core.effects import Kind
from roundelay.pipeline.expressions import block_number, of_kind
from roundelay.trace.schema import COLUMNS, WORLD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK_NUMBERS = 128
"""Numbers of decisions that are judged together. Larger: slices of a loaded group, whose decisions
order hundreds of packets each, do not fit into a task. Smaller: more rows are told twice."""

RING = ("run", "r0", "r1")


def in_blocks(assigned: "DataFrame") -> "DataFrame":
    """Rows of decisions and confirmations, each with its `slice` and how many `pieces` of that
    there are, with the slice that it belongs to; some belong to several."""
    # What a row does not say is 0, as in the model.
    ring = {name: F.coalesce(F.col(k), F.lit(0)) for name, k in (("r0", "k0"), ("r1", "k1"))}
    rows = assigned.withColumns({**ring, "block": block_number(BLOCK_NUMBERS)})
    place = F.struct("inc", "lseq")
    decided = of_kind(Kind.ORDER)
    firsts = rows.groupBy(*RING, "block", "proc").agg(
        F.min(F.when(decided, place)).alias("first"), F.bool_or(~decided).alias("confirms")
    )
    later = firsts.groupBy(*RING).applyInArrow(_later, _LATER)
    copies = (
        rows.drop("block")
        .where(decided)
        .join(F.broadcast(later), [*RING, "proc", "inc", "lseq"])
        .select(*(name for name in rows.columns if name != "block"), "block")
    )
    number = F.pmod(F.xxhash64("r0", "r1", "block"), F.col("pieces"))
    return (
        rows.unionByName(copies)
        .withColumn("slice", F.concat("slice", number.cast("string")))
        .select("run", "slice", *COLUMNS)
    )


_LATER = "run string, r0 bigint, r1 bigint, block bigint, proc smallint, inc bigint, lseq bigint"


def _later(key: tuple[Any, ...], table: Any) -> Any:
    """Of each block of a ring with confirmations, the first decision of every node behind it."""
    run, r0, r1 = (part.as_py() for part in key)
    found: list[tuple[Any, ...]] = []
    first: dict[int, tuple[int, int]] = {}
    rows = sorted(table.to_pylist(), key=lambda row: row["block"], reverse=True)
    for block, group in groupby(rows, key=lambda row: row["block"]):
        same = list(group)
        if any(row["confirms"] for row in same):
            found += [(run, r0, r1, block, proc, *place) for proc, place in first.items()]
        for row in same:
            if row["first"] is not None:
                place = row["first"]["inc"], row["first"]["lseq"]
                first[row["proc"]] = min(place, first.get(row["proc"], place))
    types = [pa.string(), *[pa.int64()] * 3, pa.int16(), *[pa.int64()] * 2]
    names = [*RING, "block", "proc", "inc", "lseq"]
    columns = zip(*found, strict=True) if found else [()] * len(types)
    arrays = [pa.array(list(c), t) for c, t in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=names)


def lost(rows: "DataFrame") -> "DataFrame":
    """Of the rows of some runs, each with its `slice`: of any two nodes the first decision of one
    that the other did not get, as it was sent and as it was lost; the first two decisions of each
    node after a crash; and a frame, if there is any."""
    whole = F.struct(*COLUMNS)
    place = F.struct("gseq", "proc", "inc", "lseq")
    sent = rows.where(of_kind(Kind.SEND))
    decided = sent.where((F.col("tag") == DECISION) & F.col("pkt").isNotNull())
    at_hand = F.when(F.col("proc") == WORLD, F.col("peer")).otherwise(F.col("proc"))
    arrived = rows.where(of_kind(Kind.ARRIVE)).select("run", "pkt", F.col("proc").alias("receiver"))
    dropped = (
        rows.where(of_kind(Kind.DROP))
        .withColumn("receiver", at_hand)
        .join(decided.select("run", "pkt", F.col("proc").alias("maker")), ["run", "pkt"])
        .join(arrived, ["run", "pkt", "receiver"], "left_anti")
        .groupBy("run", "slice", "maker", "receiver")
        .agg(F.min_by(whole, place).alias("row"))
    )
    told = decided.join(
        dropped.select("run", F.col("row.pkt").alias("pkt")), ["run", "pkt"], "semi"
    )
    any_frame = sent.groupBy("run", "slice").agg(F.min_by(whole, place).alias("row"))
    crashes = rows.where(of_kind(Kind.CRASH)).select("run", F.col("gseq").alias("crashed"))
    since = rows.where(of_kind(Kind.ORDER)).join(F.broadcast(crashes), "run")
    since = since.where(F.col("gseq") > F.col("crashed"))
    maker = ("run", "slice", "crashed", "proc")
    first = since.groupBy(*maker).agg(
        F.min_by(whole, place).alias("row"), F.min_by("k2", place).alias("number")
    )
    second = (
        since.join(first.select(*maker, "number"), [*maker])
        .where(F.col("k2") > F.col("number"))
        .groupBy(*maker)
        .agg(F.min_by(whole, place).alias("row"))
    )
    twice = first.drop("number").unionByName(second).select("run", "slice", "row.*").distinct()
    return (
        dropped.select("run", "slice", "row.*")
        .unionByName(twice)
        .unionByName(told.select("run", "slice", *COLUMNS))
        .unionByName(any_frame.select("run", "slice", "row.*"))
        .select("run", "slice", *COLUMNS)
    )
