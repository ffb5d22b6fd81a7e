"""How long things took, how much they cost, and who did the work.

    delivery     from submission to delivery, at every node
    own          from submission to delivery at the sender: one clock, also in traces of real nodes
    order        from sending to the assignment of the order key
    stability    from submission until the last member claims that all have the message
    outage       from a node's last delivery in a view to its first one in the next
    view change  from the first sign of a failure to the next regular view
    recovery     from a node's recovery to its first view

These are times, with percentiles, one line for each run. Lines with a value alone:

    frames       frames sent per message delivered, and bytes sent per byte delivered
    fairness     of those who assign order keys, and of those who send: 1 if all do the same
                 amount, 1/n if one of n does everything (Jain's index)

Besides these, `occupancy` tells how many messages every node holds over time: what it has sent or
received and not yet claimed stable.

Times of different nodes are compared as the trace has them: right in the simulator and on one
machine, as good as the clocks elsewhere.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from roundelay.core.effects import Kind
from roundelay.pipeline.slices import expanded
from roundelay.pipeline.table import Table
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import REGULAR

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MEASURES = "measures"
OCCUPANCY = "occupancy"
MOMENTS = 100
"""Points in time at which occupancy is told, per run."""

PERCENTILES = (0.5, 0.9, 0.99)
ACCURACY = 10_000
STEPS = 4

COLUMNS = pa.schema(
    [
        ("run", pa.string()),
        ("protocol", pa.string()),
        ("rules", pa.string()),
        ("mode", pa.string()),
        ("nodes", pa.int32()),
        ("resilience", pa.int32()),
        ("seed", pa.int64()),
        ("measure", pa.string()),
        ("unit", pa.string()),
        ("count", pa.int64()),
        ("mean", pa.float64()),
        ("p50", pa.float64()),
        ("p90", pa.float64()),
        ("p99", pa.float64()),
        ("max", pa.float64()),
    ]
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Line:
    """One measure of one run. A single value is its own mean, and has no percentiles."""

    run: str
    measure: str
    unit: str
    count: int
    mean: float
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


def measure(
    spark: "SparkSession", table: Table, output: Path, progress: Progress | None = None
) -> list[Line]:
    """Measure every run of a table; writes both tables to `output`, as Parquet and as CSV."""
    tell = progress or (lambda done, total: None)
    events = table.events(spark)
    lines = _lines(latencies(events), "ms")
    tell(1, STEPS)
    lines += _lines(interruptions(events), "ms")
    tell(2, STEPS)
    lines += [
        Line(row["run"], row["measure"], row["unit"], row["count"], row["mean"])
        for row in overhead(events).unionByName(fairness(events)).collect()
    ]
    tell(3, STEPS)
    lines.sort(key=lambda line: (line.run, line.measure))
    output.mkdir(parents=True, exist_ok=True)
    _write(lines, table.manifests, output)
    held = occupancy(events).orderBy("run", "proc", "t_ns")
    held.coalesce(1).write.mode("overwrite").parquet(str((output / OCCUPANCY).resolve()))
    held.coalesce(1).write.mode("overwrite").csv(
        str((output / f"{OCCUPANCY}.csv").resolve()), header=True
    )
    tell(4, STEPS)
    return lines


def _kind(kind: Kind) -> "Column":
    return F.col("kind") == kind.value


def _at(kind: Kind) -> "Column":
    return F.when(_kind(kind), F.col("t_ns"))


MESSAGE = ("run", "m_src", "m_inc", "m_seq")


def latencies(events: "DataFrame") -> "DataFrame":
    """run, measure, ns: one row for each message, or for each delivery of it."""
    claim = F.when(_kind(Kind.STABLE) & (F.coalesce("level", F.lit(1)) == 1), F.col("t_ns"))
    messages = (
        expanded(events.select(*MESSAGE, "kind", "proc", "t_ns", "level", "count", "k3", *_UNUSED))
        .groupBy(*MESSAGE)
        .agg(
            F.coalesce(F.min(_at(Kind.SUBMIT)), F.min(_at(Kind.ORIGINATE))).alias("begun"),
            F.min(_at(Kind.ORIGINATE)).alias("sent"),
            F.min(_at(Kind.ORDER)).alias("ordered"),
            F.max(claim).alias("stable"),
            F.count_distinct(F.when(claim.isNotNull(), F.col("proc"))).alias("claims"),
            F.count_distinct(F.when(_kind(Kind.DELIVER), F.col("proc"))).alias("delivering"),
            F.collect_list(F.when(_kind(Kind.DELIVER), F.struct("proc", "t_ns"))).alias("got"),
        )
    )
    got = messages.select("run", "m_src", "begun", F.explode("got").alias("got"))
    late = (F.col("got.t_ns") - F.col("begun")).alias("ns")
    stable = messages.where((F.col("claims") >= F.col("delivering")) & (F.col("delivering") > 0))
    return (
        got.select("run", F.lit("delivery").alias("measure"), late)
        .unionByName(
            got.where("got.proc = m_src").select("run", F.lit("own").alias("measure"), late)
        )
        .unionByName(_span(messages, "order", "ordered", "sent"))
        .unionByName(_span(stable, "stability", "stable", "begun"))
        .where("ns is not null")
    )


_UNUSED = ("digest", "size")
"""What `expanded` wants to see."""


def _span(frame: "DataFrame", name: str, end: str, start: str) -> "DataFrame":
    return frame.select(
        "run", F.lit(name).alias("measure"), (F.col(end) - F.col(start)).alias("ns")
    )


def interruptions(events: "DataFrame") -> "DataFrame":
    """run, measure, ns: what failures and view changes cost."""
    regular = F.col("c_kind") == REGULAR
    life = Window.partitionBy("run", "proc", "inc").orderBy("lseq")
    stays = (
        events.where(_kind(Kind.DELIVER))
        .groupBy("run", "proc", "inc", "c_seq", "c_rep", "c_kind")
        .agg(F.min("t_ns").alias("first"), F.max("t_ns").alias("last"), F.min("lseq").alias("lseq"))
    )
    outage = stays.withColumn("before", F.lag("last").over(life)).where(regular)
    installs = (
        events.where(_kind(Kind.INSTALL) & regular)
        .select("run", "proc", "inc", "lseq", "t_ns")
        .withColumn("before", F.lag("t_ns").over(life))
    )
    signs = events.where(
        F.col("kind").isin(Kind.SUSPECT.value, Kind.CRASH.value, Kind.FAULT.value)
        & (F.col("tag") != "heal")
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
    recovered = events.where(_kind(Kind.RECOVER)).select(
        "run", "proc", "inc", F.col("t_ns").alias("recovered")
    )
    first = installs.where("before is null").join(recovered, ["run", "proc", "inc"])
    return (
        _span(outage.where("before is not null"), "outage", "first", "before")
        .unionByName(_span(changes, "view change", "t_ns", "sign"))
        .unionByName(_span(first, "recovery", "t_ns", "recovered"))
    )


def overhead(events: "DataFrame") -> "DataFrame":
    """run, measure, unit, count, mean: what the network carried for what was delivered."""
    delivered = (
        events.where(_kind(Kind.DELIVER))
        .groupBy("run", "m_src", "m_inc", "m_seq", "count")
        .agg(F.max("size").alias("size"))
        .groupBy("run")
        .agg(F.sum("count").alias("messages"), F.sum("size").alias("bytes"))
    )
    sent = (
        events.where(_kind(Kind.SEND))
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
        events.where(_kind(Kind.ORDER) | _kind(Kind.ORIGINATE))
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


def occupancy(events: "DataFrame") -> "DataFrame":
    """run, proc, t_ns, messages: how many messages a node held at that moment.

    A node lets go of a message when it knows that all have it, and of all messages of a view when
    it goes on to the next regular one, or crashes.
    """
    held = F.col("kind").isin(Kind.ORIGINATE.value, Kind.RECEIVE.value, Kind.DELIVER.value)
    claim = _kind(Kind.STABLE) & (F.coalesce("level", F.lit(1)) == 1)
    spans = events.groupBy("run").agg(F.min("t_ns").alias("start"), F.max("t_ns").alias("end"))
    entered = _kind(Kind.INSTALL) & (F.col("c_kind") == REGULAR)
    releases = (
        events.where(entered | _kind(Kind.CRASH))
        .groupBy("run", "proc", "inc")
        .agg(F.collect_list(F.struct("lseq", "t_ns")).alias("releases"))
    )
    rows = events.where(held | claim).select(
        *MESSAGE, "kind", "proc", "inc", "lseq", "t_ns", "count", "k3", "level", *_UNUSED
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


def _lines(spans: "DataFrame", unit: str) -> list[Line]:
    """Percentiles of times, by run and measure."""
    ms = F.col("ns") / 1e6
    summed = spans.groupBy("run", "measure").agg(
        F.count("*").alias("count"),
        F.mean(ms).alias("mean"),
        F.percentile_approx(ms, list(PERCENTILES), ACCURACY).alias("percentiles"),
        F.max(ms).alias("max"),
    )
    lines = []
    for row in summed.collect():
        p50, p90, p99 = row["percentiles"]
        told = (row["run"], row["measure"], unit, row["count"], row["mean"])
        lines.append(Line(*told, p50, p90, p99, row["max"]))
    return lines


def _write(lines: Sequence[Line], manifests: dict[str, Manifest], output: Path) -> None:
    rows = [_row(line, manifests.get(line.run)) for line in lines]
    columns = {name: [row[name] for row in rows] for name in COLUMNS.names}
    pq.write_table(pa.Table.from_pydict(columns, COLUMNS), output / f"{MEASURES}.parquet")
    with (output / f"{MEASURES}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS.names)
        writer.writeheader()
        writer.writerows(rows)


def _row(line: Line, manifest: Manifest | None) -> dict[str, Any]:
    return {
        "run": line.run,
        "protocol": manifest and manifest.protocol,
        "rules": manifest and manifest.rules,
        "mode": manifest and manifest.mode,
        "nodes": manifest and len(manifest.nodes),
        "resilience": manifest and manifest.resilience,
        "seed": manifest and manifest.seed,
        "measure": line.measure,
        "unit": line.unit,
        "count": line.count,
        **{name: getattr(line, name) for name in ("mean", "p50", "p90", "p99", "max")},
    }
