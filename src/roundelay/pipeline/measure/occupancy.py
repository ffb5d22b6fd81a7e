"""How many messages every node holds over time: sent or received, and not yet claimed stable."""

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from roundelay.core.effects import Kind
from roundelay.pipeline.expressions import EXPANDED, expanded, of_kind
from roundelay.pipeline.measure.times import MESSAGE
from roundelay.trace.schema import REGULAR

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOMENTS = 100
"""Moments of a run at which occupancy is counted, evenly spaced."""


def occupancy(events: "DataFrame") -> "DataFrame":
    """run, proc, t_ns, messages: how many messages a node held at that moment.

    A node lets go of a message when it knows that all have it, and of all messages of a view when
    it goes on to the next regular one, or crashes.
    """
    held = F.col("kind").isin(Kind.ORIGINATE.value, Kind.RECEIVE.value, Kind.DELIVER.value)
    claim = of_kind(Kind.STABLE) & (F.coalesce("level", F.lit(1)) == 1)
    spans = events.groupBy("run").agg(F.min("t_ns").alias("start"), F.max("t_ns").alias("end"))
    entered = of_kind(Kind.INSTALL) & (F.col("c_kind") == REGULAR)
    releases = (
        events.where(entered | of_kind(Kind.CRASH))
        .groupBy("run", "proc", "inc")
        .agg(F.collect_list(F.struct("lseq", "t_ns")).alias("releases"))
    )
    rows = events.where(held | claim).select(
        *MESSAGE, "kind", "proc", "inc", "lseq", "t_ns", "count", "k3", "level", *EXPANDED
    )
    marks = (
        expanded(rows)
        .groupBy(*MESSAGE, "proc", "inc")
        .agg(
            F.min(F.when(held, F.struct("lseq", "t_ns"))).alias("since"),
            F.min(F.when(claim, F.col("t_ns"))).alias("claimed"),
        )
        .where("since is not null")
        .join(F.broadcast(releases), ["run", "proc", "inc"], "left")
        .withColumn("released", F.expr("array_min(filter(releases, x -> x.lseq > since.lseq))"))
        .withColumn("until", F.least("claimed", "released.t_ns"))
        .select(
            "run",
            "proc",
            F.explode(
                F.array(
                    F.struct(F.col("since.t_ns").alias("t_ns"), F.lit(1).alias("change")),
                    F.struct(F.col("until").alias("t_ns"), F.lit(-1).alias("change")),
                )
            ).alias("mark"),
        )
        .where("mark.t_ns is not null")
    )
    width = F.greatest((F.col("end") - F.col("start")) / MOMENTS, F.lit(1.0))
    moment = F.least(
        F.floor((F.col("mark.t_ns") - F.col("start")) / width), F.lit(MOMENTS - 1)
    ).cast("int")
    path = (
        Window.partitionBy("run", "proc")
        .orderBy("moment")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        marks.join(F.broadcast(spans), "run")
        .select("run", "proc", "start", width.alias("width"), moment.alias("moment"), "mark.change")
        .groupBy("run", "proc", "start", "width", "moment")
        .agg(F.sum("change").alias("change"))
        .select(
            "run",
            "proc",
            (F.col("start") + (F.col("moment") + 1) * F.col("width")).cast("bigint").alias("t_ns"),
            F.sum("change").over(path).alias("messages"),
        )
    )
