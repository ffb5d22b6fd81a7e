"""The verdict table: a Parquet file with one row for each run and property."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roundelay.pipeline.judge.run_check import RunReport
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

VERDICTS = "verdicts.parquet"
"""The name of the file, in the directory of the table."""

VERDICT_COLUMNS = pa.schema(
    [
        ("run", pa.string()),
        ("ring", pa.string()),
        ("property", pa.string()),
        ("standing", pa.string()),
        ("verdict", pa.string()),
        ("instances", pa.int64()),
        ("reason", pa.string()),
        ("witness", pa.list_(pa.string())),
    ]
)


def write_verdicts(reports: Sequence[RunReport], path: Path) -> None:
    """The verdict table: one row for each run and property."""
    columns: dict[str, list[Any]] = {name: [] for name in VERDICT_COLUMNS.names}
    for row in _verdict_rows(reports):
        for name, value in row.items():
            columns[name].append(value)
    beside = path.with_suffix(".tmp")
    pq.write_table(pa.Table.from_pydict(columns, VERDICT_COLUMNS), beside)
    beside.replace(path)


def _verdict_rows(reports: Sequence[RunReport]) -> Iterator[dict[str, Any]]:
    for one in reports:
        for verdict, entry in zip(one.report.verdicts, one.report.profile.entries, strict=True):
            yield {
                "run": one.run,
                "ring": ring_of(verdict.witness, one.manifest),
                "property": verdict.property,
                "standing": str(entry.standing),
                "verdict": str(verdict.validity),
                "instances": verdict.instances,
                "reason": verdict.reason,
                "witness": [f"{r.proc}.{r.inc}.{r.lseq}" for r in verdict.witness],
            }


def ring_of(witness: Sequence[Row], manifest: Manifest | None) -> str | None:
    """The view that a witness is about, as seq.representative."""
    for row in witness:
        if row.c_seq is not None:
            rep = row.c_rep if row.c_rep is not None else 0
            return f"{row.c_seq}.{rep if manifest is None else manifest.name(rep)}"
    return None
