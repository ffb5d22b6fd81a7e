"""What `roundelay watch` knows of groups that run, as `roundelay status --watched` shows it."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

from roundelay.cli.errors import UserError
from roundelay.trace.extras import needs

VERDICTS, MEASURES = "verdicts.parquet", "measures.parquet"


def document(directory: Path) -> dict[str, Any]:
    """By run: how many properties have which verdict, what is violated, and the last measures."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError(needs("pyarrow")) from None
    try:
        verdicts, measures = (
            pq.read_table(directory / name).to_pylist() for name in (VERDICTS, MEASURES)
        )
    except (OSError, pa.ArrowException):
        raise UserError(
            f"there are no live verdicts in {directory}; name the directory that `roundelay watch` "
            "was given with -o"
        ) from None
    if measures and "batch" not in measures[0]:
        raise UserError(
            f"{directory} is a table that is over; show it with: roundelay report {directory}"
        )
    last = {row["run"]: row for row in measures}
    return {
        "watched": str(directory),
        "runs": [
            {
                "run": run,
                "verdicts": Counter(row["verdict"] for row in verdicts if row["run"] == run),
                "violated": [
                    {name: row[name] for name in ("property", "reason", "witness")}
                    for row in verdicts
                    if row["run"] == run and row["verdict"] == "violated"
                ],
                "measures": last.get(run),
            }
            for run in sorted({row["run"] for row in verdicts})
        ],
    }


def text(document: dict[str, Any]) -> list[str]:
    """The document as lines."""
    lines = []
    for run in document["runs"]:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in run["verdicts"].items())
        lines += [f"run        {run['run']}", f"verdicts   {counts}"]
        for one in run["violated"]:
            lines.append(f"           VIOLATED: {one['property']}: {one['reason']}")
            lines.append(f"           its rows: {' '.join(one['witness'])}")
        if run["measures"] is not None:
            lines += _measures(run["measures"])
    return lines or [f"{document['watched']}: nothing is judged yet"]


def _measures(row: dict[str, Any]) -> list[str]:
    ago_s = max(0.0, time.time() - row["time_s"])
    lines = [
        f"judged     {ago_s:.0f} s ago, batch {row['batch']}: {row['rows']:,} rows, "
        f"{row['waiting']:,} wait; {row['behind_s']:.1f} s behind",
        f"rate       {row['rows_per_s']:,.0f} rows/s, {row['deliveries_per_s']:,.0f} deliveries/s, "
        f"{row['views']} new views",
    ]
    if row["latency_p50_ms"] is not None:
        lines.append(
            f"latency    median {row['latency_p50_ms']:.2f} ms, 90 % up to "
            f"{row['latency_p90_ms']:.2f} ms, 99 % up to {row['latency_p99_ms']:.2f} ms"
        )
    return lines
