"""Small runs: each is read and judged by one task, as the local checker would.

To split a run costs more than to judge it: every row goes from Java to Python, and before that
through a sort and a shuffle. So the tasks read the table's files themselves, and a run that is
small enough is judged there at once, with all properties, without facts or slices. The rows of a
run are side by side in the files. Before anything is judged, the column `run` alone is read, which
takes next to nothing; then a task gets runs that are neighbours, and reads little besides them.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roundelay.check import Profile, Report, check
from roundelay.check.checker import no_collection
from roundelay.pipeline.arrow import to_rows
from roundelay.pipeline.judge import completeness
from roundelay.pipeline.proofs.batch_facts import logs_of
from roundelay.pipeline.session import parallelism
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_ROWS_MAX = 400_000
"""Rows of the largest run that one task judges as it stands. With more, one core works while the
others wait; with fewer, runs are split that are judged sooner than split."""

TASK_ROWS = 200_000
"""Rows of the runs that one task judges, about. Tasks with fewer read the same row groups more
often; with more, what a task that fails has to do again takes longer."""

BATCH_ROWS = 65_536
"""Rows that are read at a time, of whatever run they are."""


@dataclass(frozen=True, slots=True)
class SmallRun:
    """A run that one task judges."""

    run: str
    rows: int
    manifest: Manifest | None
    profile: Profile
    problems: tuple[str, ...]
    """What is known to be wrong with it before its rows are counted."""


class Judgement(NamedTuple):
    """What a task says of a run."""

    problems: list[str]
    report: Report


class _Group(NamedTuple):
    """A row group of a file, and the runs that it has rows of."""

    path: str
    group: int
    runs: frozenset[str]


def judge_small(
    spark: "SparkSession", files: Sequence[Path], runs: Sequence[SmallRun]
) -> dict[str, Judgement]:
    """The reports on runs whose rows are in these files."""
    if not runs:
        return {}
    groups = [group for file in files for group in _groups(file)]
    works = []
    for some in _dealt(runs, groups, 2 * parallelism(spark)):
        wanted = {run.run for run in some}
        places = [(g.path, g.group) for g in groups if not wanted.isdisjoint(g.runs)]
        works.append((sum(r.rows for r in some), pickle.dumps((some, places))))
    works.sort(key=lambda work: -work[0])
    rows = [(work, number) for number, (_, work) in enumerate(works)]
    frame = spark.createDataFrame(rows, "work binary, task int")
    told = frame.repartitionById(len(rows), "task").mapInArrow(_judge_all, "judged binary")
    return dict(pickle.loads(row["judged"]) for row in told.collect())


def _dealt(
    runs: Sequence[SmallRun], groups: Sequence[_Group], tasks: int
) -> Iterator[list[SmallRun]]:
    """Runs in bunches for a task each: side by side as they are in the files, so many that a task
    is worth its while, and not so many that cores go without."""
    most = min(TASK_ROWS, 1 + sum(run.rows for run in runs) // tasks)
    place: dict[str, int] = {}
    for number, group in enumerate(groups):
        for run in group.runs:
            place.setdefault(run, number)
    bunch: list[SmallRun] = []
    held = 0
    for one in sorted(runs, key=lambda one: (place.get(one.run, len(groups)), one.run)):
        if bunch and held + one.rows > most:
            yield bunch
            bunch, held = [], 0
        bunch.append(one)
        held += one.rows
    if bunch:
        yield bunch


def _groups(file: Path) -> Iterator[_Group]:
    """The row groups of a file."""
    with pq.ParquetFile(file, memory_map=True, read_dictionary=["run"]) as opened:
        for number in range(opened.num_row_groups):
            column = opened.read_row_group(number, columns=["run"], use_threads=False)["run"]
            yield _Group(str(file), number, frozenset(column.unique().to_pylist()))


# What runs in a task.


def _judge_all(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for work in batch.column("work").to_pylist():
            runs, places = pickle.loads(work)
            parts = _read({run.run for run in runs}, places)
            for run in runs:
                judged = pickle.dumps((run.run, _judge(run, parts.pop(run.run, []))))
                yield pa.RecordBatch.from_pydict({"judged": pa.array([judged], pa.binary())})


def _read(runs: set[str], places: Iterable[tuple[str, int]]) -> dict[str, list[Any]]:
    """Batches of each run that is wanted."""
    groups: dict[str, list[int]] = {}
    for path, group in places:
        groups.setdefault(path, []).append(group)
    found: dict[str, list[Any]] = {}
    for path, wanted in groups.items():
        with pq.ParquetFile(path, memory_map=True, read_dictionary=["run"]) as file:
            columns = [n for n in file.schema_arrow.names if n in COLUMNS or n == "run"]
            for batch in file.iter_batches(
                BATCH_ROWS, row_groups=wanted, columns=columns, use_threads=False
            ):
                for run in batch.column("run").unique().to_pylist():
                    if run in runs:
                        mine = pc.equal(batch.column("run"), run)
                        found.setdefault(run, []).append(batch.filter(mine))
    return found


def _judge(run: SmallRun, parts: list[Any]) -> Judgement:
    logs = logs_of(parts)
    total = not any(log.unplaced for log in logs)
    problems = [*run.problems, *completeness.problems(logs, run.manifest, total=total)]
    with no_collection():
        rows = [row for part in parts for row in to_rows(part)]
        rows.sort(key=lambda row: (row.proc, row.inc, row.lseq, row.m_seq or 0))
        report = check(rows, run.manifest, profile=run.profile, problems=problems)
    return Judgement(problems, report)
