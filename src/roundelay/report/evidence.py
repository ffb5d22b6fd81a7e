"""Runs as they lie in directories: tables that `ingest` made, and traces as they were written."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from roundelay.check import check
from roundelay.check.verdict import Validity
from roundelay.core.effects import Kind
from roundelay.pipeline.arrow import to_rows
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.ingest.table import Table
from roundelay.runtime.incarnation import wall_us
from roundelay.trace import reader
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.schema import Row

VERDICTS = "verdicts.parquet"
"""Beside a table, from `roundelay check`."""
MEASURES = "measures.parquet"
OCCUPANCY = "occupancy"
"""Beside a table, from `roundelay measure`."""

ROWS_MAX = 200_000
"""Rows of the largest run that is read as a whole, to check and draw it. Of larger ones only the
rows about views and faults are read, or a page would take minutes."""
VIEW_ROWS_MAX = 20_000
"""Rows about views of a large run that are drawn; the rest is left out."""
_VIEW_KINDS = (Kind.INSTALL, Kind.CRASH, Kind.RECOVER, Kind.FAULT, Kind.END)


@dataclass(frozen=True, slots=True)
class PropertyVerdict:
    """What one property said of a run."""

    name: str
    """Of the property."""
    verdict: str
    instances: int
    reason: str
    witness: tuple[str, ...] = ()
    """Rows, as node.incarnation.number."""

    @property
    def violated(self) -> bool:
        return self.verdict == Validity.VIOLATED


@dataclass(frozen=True, slots=True)
class HeldMessages:
    """How many messages a node held at some moment."""

    proc: int
    t_ns: int
    messages: int


@dataclass
class CheckedRun:
    """One run with its verdicts. Its rows are read only when they are asked for."""

    name: str
    manifest: Manifest | None
    row_count: int
    problems: Sequence[str] = ()
    verdicts: list[PropertyVerdict] = field(default_factory=list)
    _read: Any = None
    held: list[HeldMessages] = field(default_factory=list)

    @property
    def violated(self) -> list[PropertyVerdict]:
        return [judged for judged in self.verdicts if judged.violated]

    @property
    def began(self) -> datetime | None:
        """When the first node of a real run was started, by the names of the lives in it; None of a
        simulated run."""
        lives = {} if self.manifest is None else self.manifest.clocks()
        numbers = [int(life.partition(".")[2]) for life in lives]
        moments = [wall_us(number) / 1e6 for number in numbers if number]
        return datetime.fromtimestamp(min(moments)).astimezone() if moments else None

    @property
    def small(self) -> bool:
        """Whether all of it can be looked at."""
        return self.row_count <= ROWS_MAX

    def rows(self) -> list[Row]:
        """All rows of a small run, those about views of a large one."""
        found: list[Row] = self._read(None if self.small else _VIEW_KINDS)
        return found if self.small else found[:VIEW_ROWS_MAX]


@dataclass
class Evidence:
    """All that is known of the runs in one place."""

    place: str
    runs: list[CheckedRun]
    measures: Any = None
    """A table of `roundelay measure`, if there is one."""


class BrokenError(Exception):
    """A table that cannot be read, in a sentence without its full stop."""


@contextmanager
def _readable(directory: Path) -> Iterator[None]:
    """What goes wrong while a table is read is the table's fault."""
    try:
        yield
    except PipelineError as e:
        raise BrokenError(str(e)) from None
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError) as e:
        said = str(e).partition("\n")[0].rstrip(".") or type(e).__name__
        raise BrokenError(
            f"{directory} cannot be read ({said[:160]}); ingest, check and measure its traces again"
        ) from None


def of_table(directory: Path) -> Evidence:
    """The runs of an ingested table; BrokenError, here or when rows are read, if it is damaged."""
    with _readable(directory):
        return _of_table(directory)


def _of_table(directory: Path) -> Evidence:
    table = Table.open(directory)
    verdicts: dict[str, list[PropertyVerdict]] = {}
    if (directory / VERDICTS).exists():
        for row in pq.read_table(directory / VERDICTS).to_pylist():
            verdicts.setdefault(row["run"], []).append(
                PropertyVerdict(
                    row["property"],
                    row["verdict"],
                    row["instances"],
                    row["reason"] or "",
                    tuple(row["witness"] or ()),
                )
            )
    held: dict[str, list[HeldMessages]] = {}
    if (directory / OCCUPANCY).exists():
        for row in pq.read_table(directory / OCCUPANCY).to_pylist():
            moment = HeldMessages(row["proc"], row["t_ns"], row["messages"])
            held.setdefault(row["run"], []).append(moment)
    counts: dict[str, int] = {}
    for part in table.parts:
        for run, count in part.rows.items():
            counts[run] = counts.get(run, 0) + count
    runs = [
        CheckedRun(
            run,
            table.manifests.get(run),
            counts.get(run, 0),
            table.problems.get(run, ()),
            verdicts.get(run, []),
            _reader(table, run),
            held.get(run, []),
        )
        for run in table.runs
    ]
    measures = directory / MEASURES
    return Evidence(directory.name, runs, pq.read_table(measures) if measures.exists() else None)


def not_in(evidence: Sequence[Evidence], traces: Sequence[Path]) -> list[Path]:
    """Traces of runs that are in none of the tables."""
    known = {run.name for one in evidence for run in one.runs}
    return [directory for directory in traces if not known & _named(directory)]


def _named(directory: Path) -> set[str]:
    """The runs that the manifests of a trace name."""
    named = set()
    for path in directory.glob("*manifest.json"):
        with suppress(OSError, TraceError):
            named.add(Manifest.from_json(path.read_text(encoding="utf-8")).run)
    return named


def of_traces(directories: Sequence[Path], place: str) -> Evidence:
    """Traces that were not ingested; those that are small are checked here."""
    return Evidence(place, [_traced(directory) for directory in directories])


def _traced(directory: Path) -> CheckedRun:
    try:
        trace = reader.read(directory)
    except TraceError as e:
        return CheckedRun(directory.name, None, 0, (str(e),))
    manifest = trace.manifest
    run = CheckedRun(
        manifest.run if manifest is not None else directory.name,
        manifest,
        len(trace.rows),
        trace.problems,
        _read=lambda kinds: [row for row in trace.rows if kinds is None or row.kind in kinds],
    )
    if manifest is not None and manifest.protocol and run.small:
        report = check(trace.rows, manifest, problems=trace.problems)
        run.verdicts = [
            PropertyVerdict(
                v.property,
                v.validity,
                v.instances,
                v.reason,
                tuple(f"{row.proc}.{row.inc}.{row.lseq}" for row in v.witness),
            )
            for v in report.verdicts
        ]
    return run


def witness_rows(run: CheckedRun, judged: PropertyVerdict) -> list[Row]:
    """The rows that a witness names."""
    wanted = set(judged.witness)
    return [row for row in run.rows() if f"{row.proc}.{row.inc}.{row.lseq}" in wanted]


@dataclass
class FoundEvidence:
    """What is in a directory and those below it."""

    sweeps: list[Path] = field(default_factory=list)
    tables: list[Path] = field(default_factory=list)
    traces: list[Path] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.sweeps or self.tables or self.traces)


def find(directory: Path, found: FoundEvidence | None = None) -> FoundEvidence:
    """Look for sweeps, tables and traces; the parts of a table are no tables."""
    found = FoundEvidence() if found is None else found
    if (directory / "table.json").exists():
        found.tables.append(directory)
        return found
    if any(directory.glob("*manifest.json")):
        found.traces.append(directory)
        return found
    if (directory / "sweep.json").exists():
        found.sweeps.append(directory)
    for below in sorted(path for path in directory.iterdir() if path.is_dir()):
        find(below, found)
    return found


def _reader(table: Table, run: str) -> Any:
    def read(kinds: Sequence[str] | None) -> list[Row]:
        paths = [str(table.directory / part.name) for part in table.parts]
        wanted = (pc.field("run") == run) & (pc.field("bad") == 0)
        if kinds is not None:
            wanted &= pc.field("kind").isin([str(kind) for kind in kinds])
        rows: list[Row] = []
        with _readable(table.directory):
            for path in paths:
                source = ds.dataset(path, format="parquet", partitioning="hive")
                rows += to_rows(source.to_table(filter=wanted))
        return sorted(rows, key=lambda r: (r.t_ns, -1 if r.gseq is None else r.gseq))

    return read
