"""Rows to files. A trace is a directory of one data file and a manifest, which is written last.

    trace.parquet or trace.jsonl      the rows, with a constant column `run`
    manifest.json                     what the run was, how many rows there are, their sha256

Nodes that write side by side into one directory give each writer a name: `a.parquet` goes with
`a.manifest.json`. A data file without its manifest, or with one that does not count its rows, is a
trace that was cut short. A node leaves such a manifest from its start on, which says whether rows
can be lost when it is killed. What is left of JSON Lines then can be read up to its last line, a
Parquet file without its end cannot, so a node that expects to be killed writes JSON Lines and
flushes.
A writer whose disk fails goes back to the last batch that it wrote as a whole, and its manifest,
if there is room for one, says under `ended` that the trace ends early, and why.
"""

import contextlib
import dataclasses
import errno
import hashlib
import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, Self

from roundelay.trace import jsonl
from roundelay.trace.extras import install
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.schema import ADDED, SCHEMA_VERSION, Row

if TYPE_CHECKING:
    from roundelay.trace import parquet

BATCH_ROWS = 65_536
"""Rows kept in memory before they are written, about 30 MB of them."""

NEEDS_PYARROW = f"Parquet needs pyarrow; install it with: {install('trace')}"

Format = Literal["auto", "parquet", "jsonl"]


class Sink(Protocol):
    """Where rows go. A `Writer` is one, and so is a list."""

    def append(self, row: Row, /) -> None: ...


_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def canonical(row: Row) -> bytes:
    """The row as the hash of a trace sees it: a JSON array of its columns in schema order, without
    spaces, in ASCII, followed by a comma. It says nothing of the file format or of the run's name.
    """
    return canonical_batch((row,))


def canonical_batch(rows: Sequence[Row], schema: int = SCHEMA_VERSION) -> bytes:
    """Many canonical rows, one after the other, for the price of one call of the encoder; with the
    columns that a schema of this version has."""
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
        hashed: bool = True,
        unclosed: Mapping[str, str] | None = None,
    ) -> None:
        """`unclosed` asks for a manifest from the start, without counts, which says this under
        `ended` until the trace is closed: whose rows are missing if that never happens."""
        self.directory = Path(directory)
        self.manifest = manifest
        suffix, encoder = _encoder(format)
        self.path = self.directory / f"{name}.{suffix}"
        self.manifest_path = self.directory / manifest_name(name)
        self._rows: list[Row] = []
        self._batch_rows = batch_rows
        self._counts: Counter[tuple[int, int]] = Counter()
        self._sha256 = hashlib.sha256() if hashed else None
        self._failure: TraceError | None = None
        self._ended = ""
        """Why the disk took no more."""
        self._whole_bytes = 0
        """The file up to the last batch that was written as a whole."""
        self._written: Counter[tuple[int, int]] = Counter()
        """Rows in there."""
        self._closed = False
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for old in (self.manifest_path, *(self.path.with_suffix(s) for s in SUFFIXES)):
                old.unlink(missing_ok=True)
            self._file = _create(self.path)
            self._encoder = encoder(self._file, manifest.run)
            self._whole_bytes = self._file.tell()
            if unclosed is not None:
                early = dataclasses.replace(manifest, rows=None, ended=unclosed)
                self._write_manifest(early)
        except OSError as e:
            raise self._cannot_write(e) from None

    def append(self, row: Row, /) -> None:
        rows = self._rows
        rows.append(row)
        if len(rows) >= self._batch_rows:
            self.flush()

    def flush(self) -> None:
        """Hand all rows to the operating system (Parquet: as one row group)."""
        if self._failure is not None:
            raise self._failure
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        self._counts.update((row[1], row[2]) for row in rows)  # proc, inc
        if self._sha256 is not None:
            self._sha256.update(canonical_batch(rows))
        try:
            self._encoder.write(rows)
            self._file.flush()
            self._whole_bytes = self._file.tell()
            self._written = self._counts.copy()
        except OSError as e:
            raise self._cannot_write(e) from None
        except TraceError as e:
            self._failure = e
            raise

    def close(self, **fields: Any) -> Manifest:
        """Write what is left and then the manifest, with `fields` of it that are known only now."""
        self.flush()
        self.manifest = dataclasses.replace(
            self.manifest,
            **fields,
            rows=_by_writer(self._counts),
            sha256=self._digest(),
            schema=SCHEMA_VERSION,
        )
        try:
            self._finish()
            self._write_manifest(self.manifest)
        except OSError as e:
            raise self._cannot_write(e) from None
        return self.manifest

    def abandon(self) -> None:
        """End the file before the run is over: readers will say that the trace was cut short.

        There is no manifest then, or the one from the start, unless it was the disk that failed: a
        reader could take what is missing for a fault of other nodes, so the manifest says that it
        is missing.
        """
        # Whoever abandons a trace has an error to tell already; a second one would hide it.
        with contextlib.suppress(OSError, TraceError):
            self.flush()
        finished = False
        with contextlib.suppress(OSError):
            self._finish()
            finished = True
        if not self._ended:
            return
        with contextlib.suppress(OSError):
            if self._encoder.divisible:
                os.truncate(self.path, self._whole_bytes)
            elif not finished:
                # Nobody can read it. What it took of the disk may be room for the manifest.
                os.truncate(self.path, 0)
                self._written.clear()
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
        # Written beside and renamed: a manifest is there as a whole or not at all.
        beside = self.manifest_path.with_suffix(".tmp")
        beside.write_text(manifest.to_json(), encoding="utf-8")
        os.replace(beside, self.manifest_path)

    def _finish(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                self._encoder.finish(self._digest())
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
"""Of data files."""


def manifest_name(name: str) -> str:
    """The file name of the manifest that goes with the data file of that name."""
    return "manifest.json" if name == "trace" else f"{name}.manifest.json"


def _encoder(format: Format) -> tuple[str, "type[parquet.Encoder] | type[jsonl.Encoder]"]:
    """The format's suffix and what writes it."""
    if format == "jsonl":
        return "jsonl", jsonl.Encoder
    try:
        from roundelay.trace import parquet
    except ImportError:
        if format == "auto":
            return "jsonl", jsonl.Encoder
        raise TraceError(NEEDS_PYARROW) from None
    return "parquet", parquet.Encoder


def _by_writer(counts: Counter[tuple[int, int]]) -> dict[str, int]:
    return {f"{proc}.{inc}": n for (proc, inc), n in sorted(counts.items())}


def _create(path: Path) -> BinaryIO:
    return path.open("wb")
