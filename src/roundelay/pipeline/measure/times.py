"""Times of a run: latencies of messages, and what failures and view changes cost.

    delivery     from submission to delivery, at every node
    own          from submission to delivery at the sender: one clock, also in traces of real nodes
    order        from sending to the assignment of the order key
    stability    from submission until the last member claims that all have the message
    outage       from a node's last delivery in a view to its first one in the next
    view change  from the first sign of a failure to the next regular view
    recovery     from a node's recovery to its first view

Times of different nodes are compared as the trace has them: right in the simulator and on one
machine, as good as the clocks elsewhere.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from roundelay.core.effects import Kind
from roundelay.pipeline.expressions import EXPANDED, expanded, of_kind
from roundelay.trace.schema import REGULAR

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MESSAGE = ("run", "m_src", "m_inc", "m_seq")
"""The columns that identify a message."""


def _at(kind: Kind) -> "Column":
    """The time of a row of this kind; null for other rows."""
    return F.when(of_kind(kind), F.col("t_ns"))


def latencies(events: "DataFrame") -> "DataFrame":
    """run, measure, ns: one row for each message, or for each delivery of it."""
    claim = F.when(of_kind(Kind.STABLE) & (F.coalesce("level", F.lit(1)) == 1), F.col("t_ns"))
    messages = (
        expanded(events.select(*MESSAGE, "kind", "proc", "t_ns", "level", "count", "k3", *EXPANDED))
        .groupBy(*MESSAGE)
        .agg(
            F.coalesce(F.min(_at(Kind.SUBMIT)), F.min(_at(Kind.ORIGINATE))).alias("begun"),
            F.min(_at(Kind.ORIGINATE)).alias("sent"),
            F.min(_at(Kind.ORDER)).alias("ordered"),
            F.max(claim).alias("stable"),
            F.size(F.collect_set(F.when(claim.isNotNull(), F.col("proc")))).alias("claims"),
            F.collect_list(F.when(of_kind(Kind.DELIVER), F.struct("proc", "t_ns"))).alias("got"),
        )
    )
    everywhere = (F.col("claims") >= F.size(F.array_distinct("got.proc"))) & (F.size("got") > 0)
    order = F.col("ordered") - F.col("sent")
    stability = F.when(everywhere, F.col("stable") - F.col("begun"))
    # All times of a message at once: four tables would each be made from all rows anew.
    times = F.concat(
        F.transform("got", lambda one: _time("delivery", one.t_ns - F.col("begun"))),
        F.transform(
            F.filter("got", lambda one: one.proc == F.col("m_src")),
            lambda one: _time("own", one.t_ns - F.col("begun")),
        ),
        F.array(_time("order", order), _time("stability", stability)),
    )
    return (
        messages.select("run", F.explode(times).alias("time"))
        .select("run", "time.*")
        .where("ns is not null")
    )


def _time(name: str, ns: "Column") -> "Column":
    return F.struct(F.lit(name).alias("measure"), ns.alias("ns"))


def _span(frame: "DataFrame", name: str, end: str, start: str) -> "DataFrame":
    return frame.select(
        "run", F.lit(name).alias("measure"), (F.col(end) - F.col(start)).alias("ns")
    )


def interruptions(events: "DataFrame") -> "DataFrame":
    """run, measure, ns: what failures and view changes cost."""
    regular = F.col("c_kind") == REGULAR
    life = Window.partitionBy("run", "proc", "inc").orderBy("lseq")
    stays = (
        events.where(of_kind(Kind.DELIVER))
        .groupBy("run", "proc", "inc", "c_seq", "c_rep", "c_kind")
        .agg(F.min("t_ns").alias("first"), F.max("t_ns").alias("last"), F.min("lseq").alias("lseq"))
    )
    outage = stays.withColumn("before", F.lag("last").over(life)).where(regular)
    installs = (
        events.where(of_kind(Kind.INSTALL) & regular)
        .select("run", "proc", "inc", "lseq", "t_ns")
        .withColumn("before", F.lag("t_ns").over(life))
    )
    signs = events.where(
        F.col("kind").isin(Kind.SUSPECT.value, Kind.CRASH.value, Kind.FAULT.value)
        & ~F.col("tag").isin("heal", "start")
    ).select(F.col("run").alias("sign_run"), F.col("t_ns").alias("sign"))
    between = (
        (F.col("run") == F.col("sign_run"))
        & (F.col("sign") > F.col("before"))
        & (F.col("sign") <= F.col("t_ns"))
    )
    changes = (
        installs.join(signs, between)
        .groupBy("run", "proc", "inc", "lseq", "t_ns")
        .agg(F.min("sign").alias("sign"))
    )
    recovered = events.where(of_kind(Kind.RECOVER)).select(
        "run", "proc", "inc", F.col("t_ns").alias("recovered")
    )
    first = installs.where("before is null").join(recovered, ["run", "proc", "inc"])
    return (
        _span(outage.where("before is not null"), "outage", "first", "before")
        .unionByName(_span(changes, "view change", "t_ns", "sign"))
        .unionByName(_span(first, "recovery", "t_ns", "recovered"))
    )
