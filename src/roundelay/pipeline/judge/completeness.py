"""Who wrote how many rows: whether a trace is all there.

The sentences are those of the local reader and of T1, made from the facts about writers: nobody
has to hold, or even to sort, the rows of a node. Only where rows are missing, those next to them
are fetched for the witness.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from roundelay.check import Validity, Verdict
from roundelay.pipeline.arrow import collected_rows
from roundelay.pipeline.proofs.writer_logs import Log
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import COLUMNS, INT64_MAX, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROBLEMS_MAX = 12
"""Sentences about lost rows before the rest is only counted."""

NO_MANIFEST = (
    "there is no manifest, so rows may be missing at the end and nodes have no names: the run was "
    "cut short, or the manifest was not copied"
)
NO_COUNTS = "the manifest does not count the rows, so some may be missing at the end"


def counts_of(manifest: Manifest | None) -> dict[tuple[int, int], int] | None:
    """Rows by (proc, inc) as the manifest counts them; None if it does not."""
    if manifest is None or manifest.rows is None:
        return None
    split = ((key.partition("."), count) for key, count in manifest.rows.items())
    return {(int(proc), int(inc)): count for (proc, _, inc), count in split}


def problems(found: list[Log], manifest: Manifest | None, *, total: bool) -> list[str]:
    """Why these logs may not be all that was written."""
    counts = counts_of(manifest)
    said = [NO_MANIFEST] if manifest is None else manifest.cut_short()
    if manifest is not None and counts is None:
        said.append(NO_COUNTS)
    by_writer = {(log.proc, log.inc): log for log in found}
    lines = []
    for writer in sorted(by_writer.keys() | (counts or {}).keys()):
        log = by_writer.get(writer)
        expected = None if counts is None else counts.get(writer, 0)
        if facts := _facts(log, expected, total=total):
            name = str(writer[0]) if manifest is None else manifest.name(writer[0])
            lines.append(f"rows of {name}, incarnation {writer[1]}: {', '.join(facts)}")
    if len(lines) > PROBLEMS_MAX:
        lines[PROBLEMS_MAX:] = [f"and {len(lines) - PROBLEMS_MAX} more nodes lack rows"]
    return said + lines


def _facts(log: Log | None, expected: int | None, *, total: bool) -> list[str]:
    rows = 0 if log is None else log.rows
    facts = []
    if expected is not None and rows != expected:
        facts.append(f"{rows} rows where the manifest counts {expected}")
    if log is not None and log.missing:
        facts.append(f"{log.missing} missing from lseq {log.first_missing} on")
    if log is not None and (log.repeated or (total and not log.ordered)):
        facts.append(f"{log.repeated or 'some'} repeated or out of order (is a file there twice?)")
    return facts


class Want(NamedTuple):
    """A row next to rows that are missing: of the rows of a life from `low` to `high` the first,
    or the last."""

    proc: int
    inc: int
    low: int = 0
    high: int = INT64_MAX
    last: bool = False
    twice: bool = False
    """Whether it is rather the first row that is there twice."""


class Fault(NamedTuple):
    """Why T1 does not hold, and what would show it."""

    reason: str
    wants: tuple[Want, ...]
    """Empty if there is not a row in the run."""


def fault(found: Sequence[Log], manifest: Manifest | None) -> Fault | None:
    """The first life whose rows are not all there, once each."""
    counts = counts_of(manifest)
    by_writer = {(log.proc, log.inc): log for log in found}
    for writer in sorted(by_writer.keys() | (counts or {}).keys()):
        log = by_writer.get(writer)
        name = f"#{writer[0]}" if manifest is None else manifest.name(writer[0])
        who = f"{name} in incarnation {writer[1]}"
        if log is not None and log.missing:
            hole = log.first_missing
            before = (Want(*writer, high=hole - 1, last=True),) if hole else ()
            wants = (*before, Want(*writer, low=hole))
            return Fault(f"the log of {who} lacks row {hole}", wants)
        if log is not None and log.repeated:
            return Fault(f"the log of {who} repeats a row", (Want(*writer, twice=True),))
        rows = 0 if log is None else log.rows
        if counts is not None and counts.get(writer, 0) != rows:
            reason = f"the log of {who} has {rows} rows where {counts.get(writer, 0)} were written"
            return Fault(reason, _beside(writer, sorted(by_writer)))
    return None


def _beside(writer: tuple[int, int], there: Sequence[tuple[int, int]]) -> tuple[Want, ...]:
    """What is next to a life that lacks rows at its end, or all: see `check.wellformed.beside`."""
    if writer in there:
        return (Want(*writer, last=True),)
    own = [other for other in there if other[0] == writer[0]]
    wants = [Want(*other, last=True) for other in own if other < writer][-1:]
    wants += [Want(*other) for other in own if other > writer][:1]
    return tuple(wants) or tuple(Want(*other) for other in there[:1])


def gap_free(
    found: Sequence[Log], manifest: Manifest | None, witness: tuple[Row, ...] = ()
) -> Verdict:
    """T1; `witness` are the rows that its fault wants."""
    writers = {(log.proc, log.inc) for log in found} | (counts_of(manifest) or {}).keys()
    broken = fault(found, manifest)
    if broken is None:
        if not writers:
            return Verdict("T1", Validity.VACUOUS, reason="its premise never occurred")
        if manifest is not None and manifest.ended:
            reason = manifest.cut_short()[0]
            return Verdict("T1", Validity.INCONCLUSIVE, len(writers), reason=reason)
        return Verdict("T1", Validity.OK, len(writers))
    if not broken.wants:
        reason = f"{broken.reason}, and no other row is left"
        return Verdict("T1", Validity.INCONCLUSIVE, len(writers), reason=reason)
    return Verdict("T1", Validity.VIOLATED, len(writers), witness, broken.reason)


def neighbours(
    events: "DataFrame", wanted: Mapping[str, Sequence[Want]]
) -> dict[str, tuple[Row, ...]]:
    """The rows that are wanted of each run, in their order; one job for all of them."""
    wants = [(run, place, *want) for run, some in wanted.items() for place, want in enumerate(some)]
    if not wants:
        return {}
    frame = events.sparkSession.createDataFrame(
        wants,
        "run string, place int, proc int, inc bigint, low bigint, high bigint, last boolean, "
        "twice boolean",
    )
    near = events.join(F.broadcast(frame), ["run", "proc", "inc"]).where(
        "lseq between low and high"
    )
    whole = F.struct(*COLUMNS)
    key = ["run", "place", "last", "twice"]
    edges = (
        near.groupBy(*key, "lseq")
        .agg(F.first(whole).alias("row"), F.count("*").alias("times"))
        .where("not twice or times > 1")
        .groupBy(*key)
        .agg(
            F.when(F.col("last"), F.max_by("row", "lseq"))
            .otherwise(F.min_by("row", "lseq"))
            .alias("row")
        )
    )
    found: dict[str, list[Row]] = {}
    for edge in edges.orderBy("run", "place").collect():
        found.setdefault(edge["run"], []).extend(collected_rows([edge["row"]]))
    return {run: tuple(rows) for run, rows in found.items()}
