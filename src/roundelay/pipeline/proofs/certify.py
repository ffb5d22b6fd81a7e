"""Certificates: what can be proved of the deliveries of every run without sorting them.

Two jobs. The first reads the table once, makes facts of it and stitches those of each run; the
second reads only the deliveries in blocks of keys that differ between nodes, and compares these
message by message. Neither holds more of a run than its facts.
"""

import pickle
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from roundelay.core.effects import Kind
from roundelay.pipeline.expressions import block_number, without_lower_layer
from roundelay.pipeline.ingest.table import Table
from roundelay.pipeline.proofs.batch_facts import facts_in, gather
from roundelay.pipeline.proofs.stitch import Edges, RunProofs, conclude_keys, stitch
from roundelay.pipeline.proofs.views import Key, View

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_DDL = "run string, stitched binary"

Lasts = list[tuple[View, int, Key]]
"""How far nodes got in views or rings."""


def certify(
    spark: "SparkSession", table: Table, only: Collection[str] | None = None
) -> dict[str, RunProofs]:
    """What is proved of every run that has rows, or of some of them."""
    stitched = gather(spark, table.files(), only).groupBy("run").applyInArrow(_stitch, _DDL)
    runs = {row["run"]: pickle.loads(row["stitched"]) for row in stitched.collect()}
    open_ = {run: one for run, one in runs.items() if one.edges}
    found = _edges(table.events(spark), open_) if open_ else {}
    for run, one in runs.items():
        if "O4" in one.proved:
            conclude_keys(one, found.get(run, Edges()))
    return runs


def _stitch(key: tuple[Any, ...], table: Any) -> Any:
    """Runs in a task, with the facts of one run."""
    stitched = stitch(facts_in(table))
    return pa.Table.from_pydict(
        {"run": [key[0].as_py()], "stitched": [pickle.dumps(stitched)]},
        pa.schema([("run", pa.string()), ("stitched", pa.binary())]),
    )


def _edges(events: "DataFrame", runs: dict[str, RunProofs]) -> dict[str, Edges]:
    """What the edges of runs hold."""
    rows = _edge_rows(events, runs).persist()
    try:
        found = {run: Edges() for run in runs}
        for row in _by_message(rows).collect():
            edges = found[row["run"]]
            edges.owners.append((tuple(row["ring"]), tuple(row["owners"]), row["messages"]))
            edges.torn_messages += row["torn"]
        for row in _by_key(rows).collect():
            found[row["run"]].keys = row["keys"]
            found[row["run"]].torn_keys = row["torn"]
        in_views = {run: one.lasts for run, one in runs.items()}
        for row in _skipped(rows, "view", in_views).collect():
            found[row["run"]].skipped = row["skipped"]
        in_rings = {run: one.ring_lasts or [] for run, one in runs.items()}
        for row in _skipped(rows, "ring", in_rings).collect():
            found[row["run"]].ring_skipped = row["skipped"]
        return found
    finally:
        rows.unpersist()


def _edge_rows(events: "DataFrame", runs: dict[str, RunProofs]) -> "DataFrame":
    """One row per message: run, proc, view, ring, message, key."""
    static = [run for run, one in runs.items() if all(not view for view, _, _ in one.lasts)]
    blocks = [(run, *block) for run, one in runs.items() for block in one.edges]
    wanted = events.sparkSession.createDataFrame(
        blocks, "run string, k0 bigint, k1 bigint, block bigint"
    )
    offset = F.explode(F.sequence(F.lit(0), F.col("count") - 1)).alias("i")
    message = F.struct("m_src", "m_inc", (F.col("m_seq") + F.col("i")).alias("m_seq"))
    key = F.struct("k0", "k1", "k2", (F.col("k3") + F.col("i")).alias("k3"))
    nowhere = F.array().cast("array<bigint>")
    view = F.when(F.col("run").isin(static), nowhere).otherwise(_list("c_seq", "c_rep", "c_kind"))
    return (
        without_lower_layer(events)
        .where(F.col("kind") == Kind.DELIVER.value)
        .withColumn("block", block_number())
        .join(F.broadcast(wanted), ["run", "k0", "k1", "block"])
        .select("*", offset)
        .select(
            "run",
            "proc",
            view.alias("view"),
            _list("k0", "k1").alias("ring"),
            message.alias("message"),
            key.alias("key"),
        )
    )


def _list(*names: str) -> "Column":
    return F.array(*(F.col(name).cast("bigint") for name in names))


def _by_message(rows: "DataFrame") -> "DataFrame":
    """By run, ring and who has them: messages, and how many of them have two keys."""
    return (
        rows.groupBy("run", "message")
        .agg(
            (F.min("key") != F.max("key")).alias("torn"),
            F.sort_array(F.collect_set("proc")).alias("owners"),
            F.min("ring").alias("ring"),
        )
        .groupBy("run", "ring", "owners")
        .agg(F.count("*").alias("messages"), F.count_if("torn").alias("torn"))
    )


def _by_key(rows: "DataFrame") -> "DataFrame":
    """By run: keys, and how many of them have two messages."""
    return (
        rows.groupBy("run", "key")
        .agg((F.min("message") != F.max("message")).alias("torn"))
        .groupBy("run")
        .agg(F.count("*").alias("keys"), F.count_if("torn").alias("torn"))
    )


def _skipped(rows: "DataFrame", where: str, lasts: dict[str, Lasts]) -> "DataFrame":
    """By run: keys in a view, or a ring, that somebody lacks there who went further."""
    listed = rows.sparkSession.createDataFrame(
        list(_listed(lasts)),
        f"run string, {where} array<bigint>, lasts array<struct<proc: smallint, key: struct<"
        "k0: bigint, k1: bigint, k2: bigint, k3: bigint>>>",
    )
    lacking = F.expr("exists(lasts, x -> x.key > key and not array_contains(owners, x.proc))")
    return (
        rows.groupBy("run", where, "key")
        .agg(F.collect_set("proc").alias("owners"))
        .join(F.broadcast(listed), ["run", where])
        .groupBy("run")
        .agg(F.count_if(lacking).alias("skipped"))
    )


def _listed(lasts: dict[str, Lasts]) -> Iterable[tuple[Any, ...]]:
    for run, lines in lasts.items():
        places: dict[View, list[Any]] = {}
        for place, proc, key in lines:
            places.setdefault(place, []).append((proc, key))
        for place, reached in places.items():
            yield run, list(place), reached
