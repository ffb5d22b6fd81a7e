"""The traces of running nodes into a table: what is new since the last batch is one part of it.

The checkpoint is in the directory of the table, and the two belong together. A batch that was
interrupted is done again from the same files, and `ingest` leaves out those that the table has: so
each row is in the table once.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundelay.core.value import value
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.ingest.into_table import Ingested, add, renewal
from roundelay.pipeline.ingest.sources import Found, Source, source_of
from roundelay.pipeline.ingest.table import Table
from roundelay.pipeline.live.source import stream
from roundelay.pipeline.live.trails import Trail, file_of, size_of, trails, written_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHECKPOINT = "_follow"
"""The name of the checkpoint, in the directory of the table."""

ROWS_MAX = 2_000_000
"""About how many rows are added at a time, if so many wait. More: a batch that is interrupted takes
longer to do again; fewer: the table gets many small files while it catches up."""

EVERY_S = 10.0
"""Seconds between two batches. Shorter: many small parts, of which every reader of the table must
read the list; longer: the table is further behind."""


@value
class Added:
    """What a batch added to the table."""

    rows: int
    files: int
    behind_s: float
    """How old the oldest of these files was when it was in the table, in seconds."""
    ingested: Ingested


def follow(
    spark: "SparkSession",
    paths: Sequence[str | Path],
    directory: Path,
    *,
    every_s: float = EVERY_S,
    once: bool = False,
    rows_max: int = ROWS_MAX,
    told: Callable[[Added], None] = lambda added: None,
) -> None:
    """Add what nodes write below `paths` to the table in `directory`, until this process is told to
    end; with `once`, what is there now."""
    if any(trail.table is not None for trail in trails(paths).values()):
        raise PipelineError("a table cannot be followed; name the directories that nodes write to")
    directory.mkdir(parents=True, exist_ok=True)
    lock = threading.Lock()  # Spark calls `use` in a thread of its own.

    def use(sources: list[Source], number: int) -> None:
        with lock:
            told(_add(spark, sources, directory))

    query = start(
        stream(spark, [str(Path(path).resolve()) for path in paths], rows_max),
        use,
        directory / CHECKPOINT,
        None if once else every_s,
    )
    try:
        over = False
        while not over:
            over = query.awaitTermination(every_s)
            with lock:
                _renew(paths, directory)
    finally:
        query.stop()


def _renew(paths: Sequence[str | Path], directory: Path) -> None:
    """Take the manifests of nodes that have stopped, if the table has all of their rows: no batch
    comes any more that would."""
    table = Table.load(directory)
    stopped = {
        trail.manifest_file: trail.manifest
        for trail in trails(paths).values()
        if trail.manifest and trail.closed and _has_all(table, trail)
    }
    part = renewal(table, stopped)
    if part is not None:
        table.add(part)


def _has_all(table: Table, trail: Trail) -> bool:
    """Whether a table has the last rows of a trail that will not change any more."""
    last = file_of(trail.name, max(0, trail.whole - 1))
    if not trail.grows:
        return str(last) in table.paths
    return table.read_to.get(str(last), -1) >= size_of(last)


def start(
    files: "DataFrame",
    use: Callable[[list[Source], int], None],
    checkpoint: Path,
    every_s: float | None,
) -> Any:
    """Start a query that gives the new files of each batch, and its number, to `use`; every so many
    seconds, or until what is there now has been used."""

    def batch(frame: "DataFrame", number: int) -> None:
        use(_sources(frame), number)

    writer = files.writeStream.foreachBatch(batch)
    writer = writer.option("checkpointLocation", str(checkpoint.resolve()))
    if every_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(every_s * 1000)} milliseconds").start()


def committed(checkpoint: Path) -> int:
    """The number of the last batch that a query is through with; -1 if there is none."""
    commits = checkpoint / "commits"
    names = [path.name for path in commits.iterdir()] if commits.is_dir() else []
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _sources(frame: "DataFrame") -> list[Source]:
    read: dict[Any, Any] = {}
    found = []
    for row in frame.collect():
        source = source_of(Path(row["path"]), read, set())
        found.append(replace(source, start=row["start"], end=row["end"]))
    return found


def _add(spark: "SparkSession", sources: list[Source], directory: Path) -> Added:
    oldest = min((written_at(s.path) for s in sources), default=time.time())
    done = add(spark, Found(tuple(sources), ()), Table.load(directory))
    rows = 0 if done.part is None else sum(done.part.rows.values())
    return Added(rows, len(sources) - len(done.known), time.time() - oldest, done)
