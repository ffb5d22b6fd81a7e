"""Amounts of a run: what the network carried for what was delivered, and who did the work.

frames       frames sent per message delivered, and bytes sent per byte delivered
fairness     of the nodes that assign order keys, and of those that send: 1 if all do the same
             amount, 1/n if one of n does everything (Jain's index)
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from roundelay.core.effects import Kind
from roundelay.pipeline.expressions import of_kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def overhead(events: "DataFrame") -> "DataFrame":
    """run, measure, unit, count, mean: what the network carried for what was delivered."""
    delivered = (
        events.where(of_kind(Kind.DELIVER))
        .groupBy("run", "m_src", "m_inc", "m_seq", "count")
        .agg(F.max("size").alias("size"))
        .groupBy("run")
        .agg(F.sum("count").alias("messages"), F.sum("size").alias("bytes"))
    )
    sent = (
        events.where(of_kind(Kind.SEND))
        .groupBy("run")
        .agg(F.count("*").alias("frames"), F.sum("size").alias("sent"))
    )
    both = sent.join(delivered, "run")
    return both.select(
        "run",
        F.lit("frames").alias("measure"),
        F.lit("per message").alias("unit"),
        F.col("messages").alias("count"),
        (F.col("frames") / F.col("messages")).alias("mean"),
    ).unionByName(
        both.where("bytes > 0").select(
            "run",
            F.lit("bytes").alias("measure"),
            F.lit("per byte").alias("unit"),
            F.col("messages").alias("count"),
            (F.col("sent") / F.col("bytes")).alias("mean"),
        )
    )


def fairness(events: "DataFrame") -> "DataFrame":
    """run, measure, unit, count, mean: Jain's index over the nodes that are in the trace."""
    nodes = events.where("proc >= 0").select("run", "proc").distinct()
    done = (
        events.where(of_kind(Kind.ORDER) | of_kind(Kind.ORIGINATE))
        .groupBy("run", "proc")
        .pivot("kind", [Kind.ORDER.value, Kind.ORIGINATE.value])
        .agg(F.sum("count"))
    )
    frame: DataFrame | None = None
    for kind, name in (
        (Kind.ORDER, "fairness of ordering"),
        (Kind.ORIGINATE, "fairness of sending"),
    ):
        amount = F.coalesce(F.col(kind.value), F.lit(0)).cast("double")
        one = (
            nodes.join(done, ["run", "proc"], "left")
            .groupBy("run")
            .agg(
                F.lit(name).alias("measure"),
                F.lit("Jain").alias("unit"),
                F.sum(amount).cast("bigint").alias("count"),
                (F.pow(F.sum(amount), 2) / (F.count("*") * F.sum(amount * amount))).alias("mean"),
            )
            .where("count > 0")
        )
        frame = one if frame is None else frame.unionByName(one)
    assert frame is not None
    return frame
