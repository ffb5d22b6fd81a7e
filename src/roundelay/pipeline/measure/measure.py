"""All measures of every run of a table, written as Parquet and as CSV.

Times have percentiles, one line for each run and measure (`times`); amounts are lines with a value
alone (`amounts`); `occupancy` is a table of its own.
"""

import csv
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812

from roundelay.pipeline.expressions import without_lower_layer
from roundelay.pipeline.ingest.table import Table
from roundelay.pipeline.measure.amounts import fairness, overhead
from roundelay.pipeline.measure.occupancy import occupancy
from roundelay.pipeline.measure.times import interruptions, latencies
from roundelay.pipeline.plans import call
from roundelay.trace.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MEASURES = "measures"
OCCUPANCY = "occupancy"
PERCENTILES = (0.5, 0.9, 0.99)
ACCURACY = 10_000
"""One in how many the rank of an approximate percentile may be off; more takes more memory."""

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
    spark.conf.set("spark.sql.objectHashAggregate.sortBased.fallbackThreshold", str(HASHED_MAX))
    events = without_lower_layer(table.events(spark))
    output.mkdir(parents=True, exist_ok=True)
    steps: dict[str, Callable[[], list[Line]]] = {
        "latencies": lambda: _lines(latencies(events), "ms"),
        "occupancy": lambda: _occupancy(events, output),
        "overhead and fairness": lambda: _values(overhead(events).unionByName(fairness(events))),
        "interruptions": lambda: _lines(interruptions(events), "ms"),
    }

    def take(name: str) -> list[Line]:
        call(spark, name)
        return steps[name]()

    lines: list[Line] = []
    # Side by side: while one is planned, the cores work on another.
    threads = ThreadPoolExecutor(len(steps))
    try:
        running = [threads.submit(take, name) for name in steps]
        for done, one in enumerate(as_completed(running), 1):
            lines += one.result()
            tell(done, len(steps))
    finally:  # A thread that waits for Spark ends with the session.
        threads.shutdown(wait=False, cancel_futures=True)
    lines.sort(key=lambda line: (line.run, line.measure))
    _write(lines, table.manifests, output)
    return lines


HASHED_MAX = 100_000
"""Messages whose times a task collects in a hash table before it begins to sort. Spark's own limit
is 128, and sorting takes longer; more would take more memory than a task has."""


def _values(frame: "DataFrame") -> list[Line]:
    """Measures that are one number."""
    return [
        Line(row["run"], row["measure"], row["unit"], row["count"], row["mean"])
        for row in frame.collect()
    ]


def _occupancy(events: "DataFrame", output: Path) -> list[Line]:
    """Writes the table of its own; no lines."""
    held = occupancy(events).repartition(1).sortWithinPartitions("run", "proc", "t_ns").persist()
    held.write.mode("overwrite").parquet(str((output / OCCUPANCY).resolve()))
    as_csv = str((output / f"{OCCUPANCY}.csv").resolve())
    held.write.mode("overwrite").csv(as_csv, header=True)
    held.unpersist()
    return []


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
