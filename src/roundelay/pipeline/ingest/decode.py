"""What executors do with a file: survey it, then turn it into typed rows.

A *unit* is a file, or some row groups of a Parquet file, that one task reads from its beginning to
its end, a batch at a time. A row that makes no sense is not lost: its place and what is wrong with
it go to quarantine. The local reader's own function decides which rows make no sense.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roundelay.pipeline.arrow import EVENT_DDL, EVENT_FIELDS, doubtful, to_arrays
from roundelay.trace import jsonl, parquet
from roundelay.trace.intake import Findings, UnreadableError
from roundelay.trace.manifest import TraceError
from roundelay.trace.schema import COLUMNS, NULLABLE, SCHEMA_VERSION, Row
from roundelay.trace.writer import canonical_batch

BATCH_ROWS = 65_536
"""Rows that a task holds at a time."""
UNIT_ROWS = 1_000_000
"""Rows of Parquet that a task reads; fewer if its row groups are smaller, more if larger."""

NODES_MAX = 1 << 15
"""Nodes that a run without a manifest may have: the columns for nodes have 16 bits."""
FILE = "file"
"""Stands where the place of a bad row would, if a file as a whole is bad."""

OUT_FIELDS = (
    ("run", pa.string()),
    ("source", pa.string()),
    ("place", pa.string()),
    ("reason", pa.string()),
    *EVENT_FIELDS,
)
OUT_DDL = f"run string, source string, place string, reason string, {EVENT_DDL}"
"""What comes out: events, and rows in quarantine, which have a reason and nothing of an event."""

OUT_SCHEMA = pa.schema(OUT_FIELDS)


@dataclass(frozen=True, slots=True)
class Survey:
    """What a file is, before its rows are read."""

    path: str
    sha256: str
    bytes: int
    rows: int
    """0 where that is not known."""
    groups: tuple[int, ...]
    """Rows of each row group."""
    rows_sha256: str = ""
    error: str = ""
    """Why there is nothing to read; completes "<file> ..."."""


def survey(path: str, start: int = 0, end: int | None = None) -> Survey:
    """Read a file's bytes once, or some of them, and its footer."""
    digest = hashlib.sha256()
    size = 0
    try:
        with open(path, "rb") as file:
            file.seek(start)
            while chunk := file.read(1 << 20 if end is None else min(1 << 20, end - start - size)):
                digest.update(chunk)
                size += len(chunk)
    except OSError as e:
        return Survey(path, "", 0, 0, (), error=f"cannot be read ({e.strerror}); copy it again")
    sha256 = digest.hexdigest()
    if not path.endswith(".parquet"):
        return Survey(path, sha256, size, 0, ())
    try:
        parquet.check_ends(Path(path))
        with pq.ParquetFile(path) as file:
            parquet.check_columns(file.schema_arrow, Findings(Path(path), NODES_MAX))
            meta = file.metadata
            groups = tuple(meta.row_group(i).num_rows for i in range(meta.num_row_groups))
            rows_sha256 = (meta.metadata or {}).get(parquet.SHA256_KEY, b"").decode()
            return Survey(path, sha256, size, meta.num_rows, groups, rows_sha256)
    except (UnreadableError, TraceError) as e:
        return Survey(path, sha256, size, 0, (), error=str(e))
    except (pa.ArrowException, OSError, ValueError) as e:
        return Survey(path, sha256, size, 0, (), error=f"is damaged ({_line(e)}); copy it again")


@dataclass(frozen=True, slots=True)
class Unit:
    """What one task reads."""

    path: str
    run: str
    """What its manifest says; empty if there is none."""
    node_count: int
    first_group: int = 0
    groups: int = 0
    """Row groups to read; 0 for the whole file."""
    first_row: int = 0
    rows_sha256: str = ""
    """What the rows of the file must hash to; empty if that is known already, or cannot be."""
    schema: int = SCHEMA_VERSION
    """The version of the schema whose columns were hashed."""
    start: int = 0
    end: int | None = None
    """Of a file of lines that may still grow: the bytes to read, whole lines; None for all."""
    error: str = ""
    """Nothing is read then."""

    def text(self) -> str:
        return json.dumps(asdict(self))


def decode(text: str) -> Iterator[Any]:
    """The batches of a unit, as `OUT_DDL` has them."""
    unit = Unit(**json.loads(text))
    found = _Findings(Path(unit.path), unit.node_count)
    if unit.error:
        found.bad.append((FILE, unit.error))
    else:
        yield from _read(unit, found)
    yield from found.batches(unit)


class _Findings(Findings):
    """Findings that remember every row left out, until they are written down."""

    def __init__(self, path: Path, node_count: int) -> None:
        super().__init__(path, node_count)
        self.bad: list[tuple[str, str]] = []

    def leave_out(self, place: str, reason: str) -> None:
        super().leave_out(place, reason)
        self.bad.append((place, reason))

    def batches(self, unit: Unit) -> Iterator[Any]:
        """What goes to quarantine so far."""
        run = unit.run or next(iter(self.runs), "")
        if self.bad:
            places, reasons = zip(*self.bad, strict=True)
            self.bad = []
            count = len(places)
            arrays = [[run] * count, [unit.path] * count, places, reasons]
            yield pa.RecordBatch.from_arrays(
                [
                    *(pa.array(a, pa.string()) for a in arrays),
                    *(pa.nulls(count, type_) for _, type_ in EVENT_FIELDS),
                ],
                schema=OUT_SCHEMA,
            )


def _read(unit: Unit, found: _Findings) -> Iterator[Any]:
    sha256 = hashlib.sha256()
    try:
        for arrays, rows in _batches(unit, found):
            if other := next((run for run in found.runs if unit.run and run != unit.run), ""):
                raise UnreadableError(
                    f"has rows of run {other!r} but the manifest is of run {unit.run!r}; keep one "
                    "run and its own manifest in a directory"
                )
            if unit.rows_sha256 and rows is not None:
                sha256.update(canonical_batch(rows, unit.schema))
            count = len(arrays[0])
            run = unit.run or next(iter(found.runs), Path(unit.path).stem)
            words = [pa.array([run] * count), pa.array([unit.path] * count)]
            nothing = [pa.nulls(count, pa.string())] * 2
            if count:
                yield pa.RecordBatch.from_arrays([*words, *nothing, *arrays], schema=OUT_SCHEMA)
            yield from found.batches(unit)
    except UnreadableError as e:
        found.bad.append((FILE, str(e)))
        return
    except (pa.ArrowException, OSError, ValueError, OverflowError) as e:
        found.bad.append((FILE, f"is damaged ({_line(e)}); copy it again or run again"))
        return
    if unit.rows_sha256 and sha256.hexdigest() != unit.rows_sha256 and not found.left_out:
        found.notes.append(
            "its rows are not those that were written, as their sha256 shows; copy it again from "
            "where it was made"
        )
    found.bad += [(FILE, note) for note in found.notes]
    if found.unknown:
        found.bad.append(
            (FILE, f"columns {', '.join(found.unknown)} are unknown; update roundelay")
        )


_Batch = tuple[list[Any], list[Row] | None]
"""Arrays in column order, and the same as rows where somebody needs them."""


def _batches(unit: Unit, found: _Findings) -> Iterator[_Batch]:
    path = Path(unit.path)
    if path.suffix != ".parquet":
        for rows in jsonl.decode(path, BATCH_ROWS, found, start=unit.start, end=unit.end):
            yield to_arrays(rows), rows
        return
    first = unit.first_row
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        parquet.check_columns(file.schema_arrow, found)
        names = [n for n in file.schema_arrow.names if n in COLUMNS or n == "run"]
        last = unit.first_group + unit.groups if unit.groups else file.num_row_groups
        groups = list(range(unit.first_group, last))
        for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=names):
            batch.validate(full=True)
            yield _typed(batch, first, found, slowly=bool(unit.rows_sha256))
            first += batch.num_rows


def _typed(batch: Any, first: int, found: _Findings, *, slowly: bool) -> _Batch:
    """A batch column by column; row by row only where something may be wrong."""
    arrays = None if slowly else _cast(batch)
    if arrays is None:
        rows = parquet.rows_of(batch, first, found)
        return to_arrays(rows), rows
    if "run" in batch.schema.names:
        found.runs.update(dict.fromkeys(r for r in batch.column("run").unique().to_pylist() if r))
    whole = pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in EVENT_FIELDS])
    doubts = doubtful(whole, found.node_count)
    places = [i for i, doubt in enumerate(doubts.to_pylist()) if doubt] if doubts.true_count else []
    bad = [i for i in places if not parquet.rows_of(batch.slice(i, 1), first + i, found)]
    if bad:
        keep = pa.array(sorted(set(range(whole.num_rows)) - set(bad)), pa.int64())
        whole = whole.take(keep)
    return list(whole.columns), None


def _cast(batch: Any) -> list[Any] | None:
    """The columns in their types; None if one does not fit, or lacks a value it needs."""
    arrays = []
    for name, type_ in EVENT_FIELDS:
        if name not in batch.schema.names:
            default = Row._field_defaults.get(name)
            if name not in Row._field_defaults:
                return None
            filled = pa.nulls(batch.num_rows, type_) if default is None else None
            arrays.append(pa.array([default] * batch.num_rows, type_) if filled is None else filled)
            continue
        array = batch.column(name)
        if (array.null_count and name not in NULLABLE) or not _akin(array.type, type_):
            return None
        try:
            arrays.append(array.cast(type_))
        except pa.ArrowException:
            return None
    return arrays


def _akin(given: Any, wanted: Any) -> bool:
    """Whether a cast between these types can only fail on a value that is too large."""
    is_ = pa.types
    if is_.is_string(wanted):
        return bool(is_.is_string(given) or is_.is_dictionary(given) or is_.is_large_string(given))
    if is_.is_integer(wanted):
        return bool(is_.is_integer(given))
    return bool(given == wanted)


def _line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:120]
