"""What an executor does: run cells, one after the other, and give a row for each.

A cell that raises gives a row with its error. Rows say nothing of when or where a cell ran, except
for the seconds it took.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from roundelay.experiments.plan import PlannedRun
from roundelay.experiments.registry import load_experiment
from roundelay.experiments.results import cost
from roundelay.trace.writer import Writer

ERROR_CHARS_MAX = 500

ROW_DDL = "cell string, measures map<string,double>, error string, seconds double"
ROW_SCHEMA = pa.schema(
    [
        ("cell", pa.string()),
        ("measures", pa.map_(pa.string(), pa.float64())),
        ("error", pa.string()),
        ("seconds", pa.float64()),
    ]
)
"""The same. `cell` is a name; `error` is empty where there was none."""


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one cell."""

    cell: str
    measures: dict[str, float]
    error: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Job:
    """A cell as it travels to an executor."""

    name: str
    """Its identity: the same experiment, parameters and seed have the same name, everywhere."""
    experiment: str
    fields: dict[str, Any]
    seed: int
    cost: float
    trace: str = ""
    """The directory for its trace; empty if none is kept."""


def job(experiment: str, planned: PlannedRun) -> Job:
    """A planned run, ready to travel."""
    fields = asdict(planned.cell)
    text = json.dumps([experiment, fields, planned.seed], sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Job(name, experiment, fields, planned.seed, cost(planned.cell))


def run(todo: Job) -> Row:
    """Run one cell, here and now."""
    start = time.perf_counter()
    measures: dict[str, float] = {}
    error = ""
    try:
        measures = _measure(todo)
    except Exception as e:  # Whatever a cell throws is a result, and the others go on.
        told = f"{type(e).__name__}: {e}".partition("\n")[0]
        error = told.removesuffix(": ")[:ERROR_CHARS_MAX]
    return Row(todo.name, measures, error, time.perf_counter() - start)


def _measure(todo: Job) -> dict[str, float]:
    experiment = load_experiment(todo.experiment)
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in todo.fields.items()}
    cell = experiment.Cell(**fields)
    if not todo.trace:
        return dict(experiment.run(cell, todo.seed))
    home = Path(todo.trace)
    beside = home.with_name(f"{home.name}.tmp")
    manifest = replace(experiment.manifest(cell, todo.seed), run=todo.name)
    with Writer(beside, manifest, format="parquet") as writer:
        measures = dict(experiment.run(cell, todo.seed, writer.append))
    # Whoever was here before wrote the same.
    shutil.rmtree(home, ignore_errors=True)
    beside.rename(home)
    return measures


def run_tasks(
    batches: Iterator[pa.RecordBatch], tasks: Sequence[Sequence[Job]]
) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow` over the numbers of the tasks: a row for each cell of them."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for todo in tasks[number]:
                yield to_batch([run(todo)])


def to_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as `ROW_SCHEMA` has them."""
    return pa.RecordBatch.from_pylist(
        [{**asdict(row), "measures": list(row.measures.items())} for row in rows],
        schema=ROW_SCHEMA,
    )


def from_table(table: pa.Table) -> list[Row]:
    """The rows of a table that has the columns of `ROW_SCHEMA`."""
    return [
        Row(row["cell"], dict(row["measures"] or ()), row["error"], row["seconds"])
        for row in table.select(ROW_SCHEMA.names).to_pylist()
    ]
