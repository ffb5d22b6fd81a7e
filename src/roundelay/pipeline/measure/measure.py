"""All measures of every run of a table, written as Parquet and as CSV.

Times have percentiles, one line for each run and measure (`times`); amounts are lines with a value
alone (`amounts`); `occupancy` is a table of its own.
"""

import csv
from collections.abc import Callable, Sequence
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
from roundelay.trace.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MEASURES = "measures"
OCCUPANCY = "occupancy"
PERCENTILES = (0.5, 0.9, 0.99)
ACCURACY = 10_000
"""One in how many the rank of an approximate percentile may be off; more takes more memory."""
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
    events = without_lower_layer(table.events(spark))
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
