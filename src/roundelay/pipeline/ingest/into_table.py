"""Traces of many runs into one table.

Every row is judged as the local reader judges it; what makes no sense goes to quarantine with its
reason. Nothing is ever dropped in silence: a run of which something is missing or left out has a
problem, and whoever checks it is told so.

The rows of a table are sorted by node within each file, so that who reads a file meets the events
of a node in their order.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.ingest.decode import (
    FILE,
    NODES_MAX,
    OUT_DDL,
    UNIT_ROWS,
    Survey,
    Unit,
    decode,
    survey,
)
from roundelay.pipeline.ingest.sources import Found, Source, end_of_rows, find
from roundelay.pipeline.ingest.table import Table, TablePart, part_name
from roundelay.pipeline.session import parallelism
from roundelay.trace.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARD_BYTES = 64 << 20
"""Bytes of input for each of the directories (shards) that the runs of a part are spread over. With
less, there are many small files; with more, a reader of one run reads more of the others."""
SHARDS_MAX = 256
"""Directories of a part at most, however large the input is."""

UNIT_ROWS_MIN = 50_000
"""Rows that are worth a task of their own, if cores would have nothing to do otherwise."""

FILES_PER_TASK = 16
"""Files that one task reads, if there are many: Spark takes longer to start a task than to read a
small file."""

PROBLEMS_MAX = 12
"""Sentences about the files of one run that are kept; further ones are left out."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What an ingest did."""

    table: Table
    part: TablePart | None
    """What it added; None if everything was there already."""
    known: tuple[str, ...]
    """Files that were in the table, or twice in the input, byte for byte."""


def ingest(spark: "SparkSession", paths: Sequence[str | Path], directory: str | Path) -> Ingested:
    """Add the traces at `paths` to the table in `directory`."""
    return add(spark, find(paths), Table.load(directory))


def _rest(source: Source, table: Table) -> Source:
    """What is to be read of a file: of one of lines that may still grow, those that are whole and
    that the table does not have."""
    if not source.lines:
        return source
    path = Path(source.path)
    start = source.start
    try:
        if start < table.read_to.get(source.path, 0):
            start = max(start, _read_before(source.path, table))
        over = source.manifest is not None and source.manifest.rows is not None
        if source.end is not None:
            return replace(source, start=min(start, source.end))
        if over and not start:
            return source  # Its manifest may have a hash of the whole.
        end = end_of_rows(path, start)
    except OSError:
        return source  # The survey will say so.
    return replace(source, start=start, end=end or None)


def _read_before(path: str, table: Table) -> int:
    """How many bytes of a file of lines are in the table; 0 if it begins with others by now."""
    at = 0
    for part in table.parts:
        if path in part.read_to:
            end = part.read_to[path]
            starts = (start for start in (at, 0) if _holds(part, path, start, end))
            at = end if next(starts, None) is not None else 0
    return at


def _holds(part: TablePart, path: str, start: int, end: int) -> bool:
    return survey(path, start, end).sha256 == part.sources[path]


def add(spark: "SparkSession", found: Found, table: Table) -> Ingested:
    """Add these files to a table. What it has already is left out, so doing it again, or after it
    was interrupted, does no harm."""
    sources = tuple(_rest(source, table) for source in found.sources)
    surveys = _survey(spark, sources)
    fresh: dict[str, Source] = {}
    known: list[str] = []
    for source in sources:
        seen = surveys[source.path]
        sha256 = seen.sha256
        if sha256 in fresh or sha256 in table.sources or (source.start and not seen.bytes):
            known.append(source.path)
        else:
            fresh[sha256] = source
    if not fresh:
        part = renewal(table, _manifests(found.sources, table.latest))
        return Ingested(table if part is None else table.add(part), part, tuple(known))
    name = part_name(fresh)
    table.sweep()
    shards = sum(surveys[source.path].bytes for source in fresh.values()) // SHARD_BYTES
    shards = max(1, min(shards, SHARDS_MAX))
    # As many units as keep all cores busy to the end, also if there are only a few files.
    rows = sum(surveys[source.path].rows for source in fresh.values()) // (2 * parallelism(spark))
    units = _units(fresh.values(), surveys, min(UNIT_ROWS, max(UNIT_ROWS_MIN, rows)))
    _write(spark, units, table.directory / name, shards)
    read_to = {s.path: s.start + surveys[s.path].bytes for s in fresh.values() if s.lines}
    part = _part(spark, table, name, fresh, found, read_to)
    return Ingested(table.add(part), part, tuple(known))


SURVEYED_HERE_BYTES = 64 << 20
"""Bytes of input that this process hashes itself: to have Spark do so little takes longer."""


def _survey(spark: "SparkSession", sources: Sequence[Source]) -> dict[str, Survey]:
    if sum(_size(source.path) for source in sources) <= SURVEYED_HERE_BYTES:
        return {one.path: survey(one.path, one.start, one.end) for one in sources}
    return _survey_by_spark(spark, sources)


def _survey_by_spark(spark: "SparkSession", sources: Sequence[Source]) -> dict[str, Survey]:
    found = {}
    asked = [dumps([source.path, source.start, source.end]) for source in sources]
    for row in in_python(spark, asked, _survey_all, "text string").collect():
        fields = loads(row["text"])
        found[fields["path"]] = Survey(**fields | {"groups": tuple(fields["groups"])})
    return found


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:  # The survey will say so.
        return 0


def _survey_all(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        asked = map(loads, batch.column("text").to_pylist())
        said = [dumps(asdict(survey(*one))) for one in asked]
        yield pa.RecordBatch.from_pydict({"text": said})


def decode_all(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for text in batch.column("text").to_pylist():
            yield from decode(text)


def in_python(spark: "SparkSession", texts: list[str], function: Any, ddl: str) -> "DataFrame":
    """A function over texts, each of which is some work, spread over tasks."""
    tasks = min(max(2 * parallelism(spark), len(texts) // FILES_PER_TASK), len(texts))
    rows = [(text, number % tasks) for number, text in enumerate(texts)]
    frame = spark.createDataFrame(rows, "text string, task int")
    return frame.repartitionById(tasks, "task").mapInArrow(function, ddl)


def _units(
    sources: Iterable[Source], surveys: dict[str, Survey], unit_rows: int = UNIT_ROWS
) -> list[Unit]:
    """The work, the largest first, in units of about so many rows of Parquet."""
    units: list[tuple[int, Unit]] = []
    for source in sources:
        seen = surveys[source.path]
        manifest = source.manifest
        whole = unit_of(source, seen.error)
        expected = "" if manifest is None else manifest.sha256
        if seen.error or not seen.groups or (expected and expected != seen.rows_sha256):
            partly = source.start or source.end is not None
            units.append((seen.bytes, whole if partly else _hashed(whole, manifest)))
        else:
            units += _split(whole, seen, unit_rows)
    return [unit for _, unit in sorted(units, key=lambda item: -item[0])]


def unit_of(source: Source, error: str = "") -> Unit:
    """The work of reading a file."""
    manifest = source.manifest
    run = "" if manifest is None else manifest.run
    nodes = NODES_MAX if manifest is None else len(manifest.nodes)
    return Unit(source.path, run, nodes, error=error, start=source.start, end=source.end)


def _hashed(unit: Unit, manifest: Manifest | None) -> Unit:
    if manifest is None:
        return unit
    return replace(unit, rows_sha256=manifest.sha256, schema=manifest.schema)


def _split(whole: Unit, seen: Survey, unit_rows: int) -> Iterator[tuple[int, Unit]]:
    """Consecutive row groups, so many that a task is worth its while."""
    start, first_row, rows = 0, 0, 0
    for group, count in enumerate(seen.groups):
        rows += count
        if rows >= unit_rows or group + 1 == len(seen.groups):
            fields = {"first_group": start, "groups": group + 1 - start, "first_row": first_row}
            share = seen.bytes * rows // max(1, seen.rows)
            yield share, Unit(**asdict(whole) | fields)
            start, first_row, rows = group + 1, first_row + rows, 0


def _write(spark: "SparkSession", units: list[Unit], path: Path, shards: int) -> None:
    (
        in_python(spark, [unit.text() for unit in units], decode_all, OUT_DDL)
        .withColumn("bad", F.when(F.col("reason").isNull(), 0).otherwise(1))
        .withColumn("shard", F.pmod(F.hash("run"), F.lit(shards)))
        .sortWithinPartitions("bad", "shard", "run", "proc", "inc", "lseq", "m_seq")
        .write.mode("overwrite")
        .option("compression", "zstd")
        .partitionBy("bad", "shard")
        .parquet(str(path.resolve()))
    )


def _part(
    spark: "SparkSession",
    table: Table,
    name: str,
    fresh: dict[str, Source],
    found: Found,
    read_to: Mapping[str, int],
) -> TablePart:
    """What went in, and what is wrong with it."""
    written = Table(table.directory, (TablePart(name, {}, (), {}, {}),))
    counts = (
        written.events(spark).groupBy("run", "source").agg(F.count("*").alias("rows")).collect()
    )
    run_of = {row["source"]: row["run"] for row in counts}
    rows: Counter[str] = Counter()
    for row in counts:
        rows[row["run"]] += row["rows"]
    problems: dict[str, list[str]] = {}
    quarantined = 0
    for row in _complaints(written.quarantine(spark)).collect():
        source = next(s for s in fresh.values() if s.path == row["source"])
        run = row["run"] or run_of.get(row["source"]) or _named(source)
        quarantined += row["rows"] + len(row["notes"])
        problems.setdefault(run, []).extend(_sentences(row))
    for source in fresh.values():
        if source.problem:
            run = run_of.get(source.path) or _named(source)
            problems.setdefault(run, []).append(f"{source.path} {source.problem}")
    empty = {source.path for source in fresh.values()} - run_of.keys()
    for path in sorted(empty):
        source = next(s for s in fresh.values() if s.path == path)
        problems.setdefault(_named(source), []).append(f"{path} gave no rows")
    manifests = _manifests(found.sources, table.latest) | _manifests(fresh.values())
    manifests |= {m.to_json(): m for m in found.orphans}
    new = _not_yet(table, manifests)
    return TablePart(
        name,
        sources={source.path: sha256 for sha256, source in fresh.items()},
        manifests=tuple(new.values()),
        manifest_files=tuple(new),
        read_to=read_to,
        problems={run: tuple(said[:PROBLEMS_MAX]) for run, said in problems.items()},
        rows=dict(rows),
        quarantined=quarantined,
    )


def _complaints(quarantine: "DataFrame") -> "DataFrame":
    """By file: what is wrong with it as a whole, and how many of its rows were left out."""
    whole = F.col("place") == FILE
    return quarantine.groupBy("run", "source").agg(
        F.sum(F.when(whole, 0).otherwise(1)).alias("rows"),
        F.min(F.when(~whole, F.concat_ws(": ", "place", "reason"))).alias("first"),
        F.sort_array(F.collect_list(F.when(whole, F.col("reason")))).alias("notes"),
    )


def _sentences(row: Any) -> Iterator[str]:
    if row["rows"]:
        rows = "1 row was" if row["rows"] == 1 else f"{row['rows']} rows were"
        yield f"{row['source']}: {rows} left out as making no sense, one in {row['first']}"
    for note in row["notes"]:
        yield f"{row['source']} {note}"


def _named(source: Source) -> str:
    """The run of a file that did not give a row to tell."""
    return source.manifest.run if source.manifest is not None else Path(source.path).stem


def _manifests(
    sources: Iterable[Source], places: Collection[str] | None = None
) -> dict[str, Manifest]:
    """By place, the manifests of these files; only those that were read at given places."""
    return {
        source.manifest_file: source.manifest
        for source in sources
        if source.manifest is not None and (places is None or source.manifest_file in places)
    }


def renewal(table: Table, manifests: Mapping[str, Manifest]) -> TablePart | None:
    """A part for a table that has no rows, but manifests that say more than they did when rows came
    in; None if they do not."""
    new = _not_yet(table, manifests)
    if not new:
        return None
    name = part_name(hashlib.sha256(text.encode()).hexdigest() for text in new.values())
    (table.directory / name).mkdir(exist_ok=True)
    return TablePart(name, {}, tuple(new.values()), {}, {}, manifest_files=tuple(new))


def _not_yet(table: Table, manifests: Mapping[str, Manifest]) -> dict[str, str]:
    """By place, the manifests whose text is new, each once."""
    known = {text for part in table.parts for text in part.manifests}
    new: dict[str, str] = {}
    for place, manifest in manifests.items():
        text = manifest.to_json()
        if text not in known:
            known.add(text)
            new[place] = text
    return new


def refuse_empty(done: Ingested) -> None:
    """PipelineError if there is a table, and not one row in it."""
    if not any(sum(part.rows.values()) for part in done.table.parts):
        first = next(
            (s for p in done.table.parts for said in p.problems.values() for s in said), ""
        )
        raise PipelineError(f"not a single row could be read ({first}); name other files")
