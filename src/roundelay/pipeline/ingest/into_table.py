"""Traces of many runs into one table.

Every row is judged as the local reader judges it; what makes no sense goes to quarantine with its
reason. Nothing is ever dropped in silence: a run of which something is missing or left out has a
problem, and whoever checks it is told so.

The rows of a table are sorted by node within each file, so that who reads a file meets the events
of a node in their order.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
from roundelay.pipeline.ingest.sources import Found, Source, find
from roundelay.pipeline.ingest.table import Part, Table, part_name
from roundelay.pipeline.session import parallelism
from roundelay.trace.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHARD_BYTES = 64 << 20
"""Input for each of the directories that runs are spread over."""
SHARDS_MAX = 256

FILES_PER_TASK = 16
"""Small files that one task reads, at least if there are enough of them."""

PROBLEMS_MAX = 12
"""Sentences about the files of one run before the rest is only counted."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What an ingest did."""

    table: Table
    part: Part | None
    """What it added; None if everything was there already."""
    known: tuple[str, ...]
    """Files that were in the table, or twice in the input, byte for byte."""


def ingest(spark: "SparkSession", paths: Sequence[str | Path], directory: str | Path) -> Ingested:
    """Add the traces at `paths` to the table in `directory`."""
    found = find(paths)
    table = Table.load(directory)
    surveys = _survey(spark, [source.path for source in found.sources])
    fresh: dict[str, Source] = {}
    known: list[str] = []
    for source in found.sources:
        sha256 = surveys[source.path].sha256
        if sha256 in fresh or sha256 in table.sources:
            known.append(source.path)
        else:
            fresh[sha256] = source
    if not fresh:
        return Ingested(table, None, tuple(known))
    name = part_name(fresh)
    table.sweep()
    shards = sum(surveys[source.path].bytes for source in fresh.values()) // SHARD_BYTES
    shards = max(1, min(shards, SHARDS_MAX))
    _write(spark, _units(fresh.values(), surveys), table.directory / name, shards)
    part = _part(spark, table, name, fresh, found)
    return Ingested(table.add(part), part, tuple(known))


def _survey(spark: "SparkSession", paths: list[str]) -> dict[str, Survey]:
    found = {}
    for row in _in_python(spark, paths, _survey_all, "text string").collect():
        fields = loads(row["text"])
        found[fields["path"]] = Survey(**fields | {"groups": tuple(fields["groups"])})
    return found


def _survey_all(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        said = [dumps(asdict(survey(path))) for path in batch.column("text").to_pylist()]
        yield pa.RecordBatch.from_pydict({"text": said})


def _decode_all(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for text in batch.column("text").to_pylist():
            yield from decode(text)


def _in_python(spark: "SparkSession", texts: list[str], function: Any, ddl: str) -> "DataFrame":
    """A function over texts, each of which is some work, spread over tasks."""
    tasks = min(max(2 * parallelism(spark), len(texts) // FILES_PER_TASK), len(texts))
    rows = [(text, number % tasks) for number, text in enumerate(texts)]
    frame = spark.createDataFrame(rows, "text string, task int")
    return frame.repartitionById(tasks, "task").mapInArrow(function, ddl)


def _units(sources: Iterable[Source], surveys: dict[str, Survey]) -> list[Unit]:
    """The work, the largest first."""
    units: list[tuple[int, Unit]] = []
    for source in sources:
        seen = surveys[source.path]
        manifest = source.manifest
        run = "" if manifest is None else manifest.run
        node_count = NODES_MAX if manifest is None else len(manifest.nodes)
        whole = Unit(source.path, run, node_count, error=seen.error)
        expected = "" if manifest is None else manifest.sha256
        if seen.error or not seen.groups or (expected and expected != seen.rows_sha256):
            units.append((seen.bytes, _hashed(whole, manifest)))
        else:
            units += _split(whole, seen)
    return [unit for _, unit in sorted(units, key=lambda item: -item[0])]


def _hashed(unit: Unit, manifest: Manifest | None) -> Unit:
    if manifest is None:
        return unit
    return replace(unit, rows_sha256=manifest.sha256, schema=manifest.schema)


def _split(whole: Unit, seen: Survey) -> Iterator[tuple[int, Unit]]:
    """Consecutive row groups, so many that a task is worth its while."""
    start, first_row, rows = 0, 0, 0
    for group, count in enumerate(seen.groups):
        rows += count
        if rows >= UNIT_ROWS or group + 1 == len(seen.groups):
            fields = {"first_group": start, "groups": group + 1 - start, "first_row": first_row}
            share = seen.bytes * rows // max(1, seen.rows)
            yield share, Unit(**asdict(whole) | fields)
            start, first_row, rows = group + 1, first_row + rows, 0


def _write(spark: "SparkSession", units: list[Unit], path: Path, shards: int) -> None:
    (
        _in_python(spark, [unit.text() for unit in units], _decode_all, OUT_DDL)
        .withColumn("bad", F.when(F.col("reason").isNull(), 0).otherwise(1))
        .withColumn("shard", F.pmod(F.hash("run"), F.lit(shards)))
        .sortWithinPartitions("bad", "shard", "run", "proc", "inc", "lseq", "m_seq")
        .write.mode("overwrite")
        .option("compression", "zstd")
        .partitionBy("bad", "shard")
        .parquet(str(path.resolve()))
    )


def _part(
    spark: "SparkSession", table: Table, name: str, fresh: dict[str, Source], found: Found
) -> Part:
    """What went in, and what is wrong with it."""
    written = Table(table.directory, (Part(name, {}, (), {}, {}),))
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
    manifests = [s.manifest for s in fresh.values() if s.manifest is not None]
    return Part(
        name,
        sources={source.path: sha256 for sha256, source in fresh.items()},
        manifests=_not_yet(table, [*manifests, *found.orphans]),
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


def _not_yet(table: Table, manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Manifests that are new, each once: parts of one Parquet file share theirs."""
    texts = dict.fromkeys(manifest.to_json() for manifest in manifests)
    for part in table.parts:
        for text in part.manifests:
            texts.pop(text, None)
    return tuple(texts)


def refuse_empty(done: Ingested) -> None:
    """PipelineError if there is a table, and not one row in it."""
    if not any(sum(part.rows.values()) for part in done.table.parts):
        first = next(
            (s for p in done.table.parts for said in p.problems.values() for s in said), ""
        )
        raise PipelineError(f"not a single row could be read ({first}); name other files")
