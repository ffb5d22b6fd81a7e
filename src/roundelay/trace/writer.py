"""Writes rows to files. A trace is a directory with a data file and a manifest, written last.

    trace.parquet or trace.jsonl      the rows, with a constant column `run`
    manifest.json                     what the run was, how many rows there are, their sha256

If several nodes write into one directory, each writer has a name: `a.parquet` belongs to
`a.manifest.json`. A data file without a manifest, or with a manifest that does not count its rows,
is a trace that was cut short. A node writes such a manifest when it starts; it says whether rows
can be lost when the node is killed. JSON Lines can then be read up to the last line, but a Parquet
file without its end cannot be read, so a node that expects to be killed writes JSON Lines and
flushes.

A node that is watched while it runs writes its trace in pieces instead: see `trace.pieces`.

If the disk fails, the writer cuts its file after the last batch that was written as a whole. The
manifest, if there is room for one, says under `ended` that the trace ends early, and why.
"""

import contextlib
import dataclasses
import errno
import hashlib
import io
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, Self

from roundelay.trace import jsonl
from roundelay.trace.compact import Batch, trial
from roundelay.trace.extras import install
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.schema import ADDED, SCHEMA_VERSION, Row

if TYPE_CHECKING:
    from roundelay.trace import parquet

BATCH_ROWS = 65_536
"""How many rows are kept in memory before they are written, about 30 MB. Smaller batches make
Parquet files larger and slower to read; larger ones take more memory, and a killed writer loses
more rows."""

NEEDS_PYARROW = f"Parquet needs pyarrow; install it with: {install('trace')}"

_TRIAL = trial()
"""Rows for `Writer.prepare`."""

Format = Literal["auto", "parquet", "jsonl"]


class Sink(Protocol):
    """Takes rows; a `Writer` is one, and so is a list."""

    def append(self, row: Row, /) -> None: ...


_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def canonical(row: Row) -> bytes:
    """The bytes of a row over which the hash of a trace is computed: a JSON array of its columns in
    schema order, without spaces, in ASCII, followed by a comma. They do not depend on the file
    format or on the name of the run."""
    return canonical_batch((row,))


def canonical_batch(rows: Sequence[Row], schema: int = SCHEMA_VERSION) -> bytes:
    """Many canonical rows in one call of the encoder, with the columns of this version of the
    schema."""
    if any(version > schema for version in ADDED.values()):
        names = enumerate(Row._fields)
        kept = itemgetter(*(place for place, name in names if ADDED.get(name, 1) <= schema))
        rows = list(map(kept, rows))
    return (_encode(rows)[1:-1] + ",").encode("ascii") if rows else b""


def fingerprint(rows: Iterable[Row]) -> str:
    """The sha256 of rows in canonical form, as the manifest of their trace would have it."""
    sha256 = hashlib.sha256()
    remaining = iter(rows)
    while batch := list(itertools.islice(remaining, 4096)):
        sha256.update(canonical_batch(batch))
    return sha256.hexdigest()


class Writer:
    """Writes one trace; a context manager, which leaves the manifest out if its block fails.

    What the run was is said at the start in `manifest`, without rows and sha256, and may be
    completed in `close`. Opening removes an earlier trace of that name from the directory. Rows
    are written when `batch_rows` of them are there, and on `flush`. `auto` means Parquet where
    pyarrow is installed and JSON Lines elsewhere.

    Every failure of the disk is a TraceError. After one nothing more is written.
    """

    def __init__(
        self,
        directory: str | Path,
        manifest: Manifest,
        *,
        format: Format = "auto",
        name: str = "trace",
        batch_rows: int = BATCH_ROWS,
        hashed: bool | None = True,
        unclosed: Mapping[str, str] | None = None,
    ) -> None:
        """With `unclosed` a manifest without counts is written at once. It has this under `ended`
        until the trace is closed: which rows are missing if that never happens. With `hashed` None
        the manifest has the sha256 of the rows only if the file has no checksums of its own."""
        self.directory = Path(directory)
        self.manifest = manifest
        encoder = _encoder(format)
        self.path = self.directory / f"{name}{encoder.suffix}"
        self.manifest_path = self.directory / manifest_name(name)
        self._rows: list[Row] = []
        self._batch_rows = batch_rows
        self._counts: Counter[tuple[int, int]] = Counter()
        hashed = not encoder.checked if hashed is None else hashed
        self._sha256 = hashlib.sha256() if hashed else None
        self._failure: TraceError | None = None
        self._ended = ""
        """Why the disk accepted no more data."""
        self._whole_bytes = 0
        """The length of the file after the last batch that was written as a whole, in bytes."""
        self._written: Counter[tuple[int, int]] = Counter()
        """How many rows of each writer that part of the file has."""
        self._closed = False
        self._make_encoder = encoder
        self._kept: Counter[tuple[int, int]] = Counter()
        """How many rows of each writer are in whole files before this one."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for old in (self.manifest_path, *(self.path.with_suffix(s) for s in SUFFIXES)):
                old.unlink(missing_ok=True)
            self._open()
            if unclosed is not None:
                early = dataclasses.replace(manifest, rows=None, ended=unclosed)
                self._write_manifest(early)
        except OSError as e:
            raise self._cannot_write(e) from None

    def _open(self) -> None:
        self._file = _create(self.path)
        self._encoder = self._make_encoder(self._file, self.manifest.run)
        self._whole_bytes = self._file.tell()

    @property
    def divisible(self) -> bool:
        """Whether the file can be read though its end is missing."""
        return self._make_encoder.divisible

    def prepare(self) -> None:
        """Do what the first batch would otherwise do, and wait for."""
        self._make_encoder(io.BytesIO(), "").write_batch(_TRIAL)

    def append(self, row: Row, /) -> None:
        rows = self._rows
        rows.append(row)
        if len(rows) >= self._batch_rows:
            self.flush()

    def flush(self) -> None:
        """Hand all rows to the operating system; in Parquet they become one row group."""
        if self._failure is not None:
            raise self._failure
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        self._counts.update((row[1], row[2]) for row in rows)  # proc, inc
        if self._sha256 is not None:
            self._sha256.update(canonical_batch(rows))
        self._write(lambda: self._encoder.write(rows))

    def write(self, batch: Batch) -> None:
        """Hand rows in compact form to the operating system, behind those appended so far."""
        self.flush()
        if not batch.size:
            return
        self._counts.update(batch.writers())
        if self._sha256 is not None:
            self._sha256.update(canonical_batch(batch.rows()))
        self._write(lambda: self._encoder.write_batch(batch))

    def _write(self, encode: Callable[[], None]) -> None:
        try:
            encode()
            self._file.flush()
            self._whole_bytes = self._file.tell()
            self._written = self._counts.copy()
        except OSError as e:
            raise self._cannot_write(e) from None
        except TraceError as e:
            self._failure = e
            raise

    def close(self, **fields: Any) -> Manifest:
        """Write the remaining rows and then the manifest, with `fields` of it that are known only
        now."""
        self.flush()
        self.manifest = dataclasses.replace(
            self.manifest,
            **fields,
            rows=_by_writer(self._counts),
            sha256=self._digest(),
            schema=SCHEMA_VERSION,
        )
        try:
            self._close_file()
            self._write_manifest(self.manifest)
        except OSError as e:
            raise self._cannot_write(e) from None
        return self.manifest

    def abandon(self) -> None:
        """End the file before the run is over: readers will say that the trace was cut short.

        There is then no manifest, or the one from the start. But if the disk failed, a manifest
        says that rows are missing: else a reader could take what is missing for a fault of other
        nodes.
        """
        # The caller has an error to report already; a second one would hide it.
        with contextlib.suppress(OSError, TraceError):
            self.flush()
        closed = False
        with contextlib.suppress(OSError):
            self._close_file()
            closed = True
        if not self._ended:
            return
        with contextlib.suppress(OSError):
            if self._encoder.divisible:
                os.truncate(self.path, self._whole_bytes)
            elif not closed:
                # Nobody can read the file. Its space on the disk may do for the manifest.
                os.truncate(self.path, 0)
                self._written = self._kept.copy()
        with contextlib.suppress(OSError):
            self._end_early()

    def _end_early(self) -> None:
        writers = self._counts.keys() | self._written.keys()
        self.manifest = dataclasses.replace(
            self.manifest,
            rows=_by_writer(self._written),
            ended={f"{proc}.{inc}": self._ended for proc, inc in sorted(writers)},
            schema=SCHEMA_VERSION,
        )
        self._write_manifest(self.manifest)

    def _write_manifest(self, manifest: Manifest) -> None:
        # Written under another name and renamed: there is a whole manifest or none.
        beside = self.manifest_path.with_suffix(".tmp")
        beside.write_text(manifest.to_json(), encoding="utf-8")
        os.replace(beside, self.manifest_path)

    def _close_file(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                self._encoder.write_end(self._digest())
            finally:
                self._file.close()

    def _digest(self) -> str:
        return "" if self._sha256 is None else self._sha256.hexdigest()

    def _cannot_write(self, error: OSError) -> TraceError:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "its disk was full" if full else f"its disk failed ({error.strerror or error})"
        self._ended = self._ended or why
        self._failure = TraceError(
            f"cannot write the trace to {self.directory}: {error.strerror or error}; "
            "free some space or name another directory"
        )
        return self._failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._closed:
            return
        if kind is None:
            self.close()
        else:
            self.abandon()


SUFFIXES = (".parquet", ".jsonl")
"""The suffixes of data files."""


def manifest_name(name: str) -> str:
    """The file name of the manifest that goes with the data file of that name."""
    return "manifest.json" if name == "trace" else f"{name}.manifest.json"


def manifest_names(name: str) -> Iterator[str]:
    """What the manifest that speaks of the data file of that name may be called, the most likely
    first."""
    yield manifest_name(name)
    if (life := life_of(name)) != name:
        yield manifest_name(life)
    yield manifest_name("trace")


def life_of(name: str) -> str:
    """The name of the trace that a data file of that name is, or is a piece of."""
    piece = re.fullmatch(r"(.+)\.[0-9]{6,}", name)
    return name if piece is None else piece[1]


def piece_name(life: str, number: int) -> str:
    """The name of one data file of a trace in pieces."""
    return f"{life}.{number:06}"


def _encoder(format: Format) -> "type[parquet.Encoder] | type[jsonl.Encoder]":
    """What writes the format."""
    if format == "jsonl":
        return jsonl.Encoder
    try:
        from roundelay.trace import parquet
    except ImportError:
        if format == "auto":
            return jsonl.Encoder
        raise TraceError(NEEDS_PYARROW) from None
    return parquet.Encoder


def _by_writer(counts: Counter[tuple[int, int]]) -> dict[str, int]:
    return {f"{proc}.{inc}": n for (proc, inc), n in sorted(counts.items())}


def _create(path: Path) -> BinaryIO:
    return path.open("wb")
