"""The rows around a witness, for a picture of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from roundelay.pipeline.arrow import collected_rows
from roundelay.trace.schema import COLUMNS, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_MAX = 5_000
"""Rows that are fetched: those nearest in time."""


def rows_near(events: "DataFrame", run: str, witness: Sequence[Row]) -> list[Row]:
    """Rows of a run close to the rows of a witness, and these themselves, in trace order."""
    times = sorted({row.t_ns for row in witness})
    distance = F.least(*(F.abs(F.col("t_ns") - t) for t in times), F.lit(2**62), F.lit(2**62))
    near = (
        events.where(F.col("run") == run)
        .orderBy(distance, "proc", "inc", "lseq")
        .limit(ROWS_MAX)
        .select(*COLUMNS)
        .collect()
    )
    rows = {_place(row): row for row in collected_rows(near)}
    ordered = list(rows.values())
    if all(row.gseq is not None for row in ordered):
        return sorted(ordered, key=lambda row: row.gseq or 0)
    return sorted(ordered, key=lambda row: (row.proc, row.inc, row.lseq))


def _place(row: Row) -> tuple[int, int, int]:
    return row.proc, row.inc, row.lseq
