"""JSON Lines: one object per row, with the names of the columns; nulls are left out.

It needs no package besides Python, every tool reads it, and what a killed writer left can be read.
It takes some twenty times the space of Parquet.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from roundelay.trace.compact import Batch
from roundelay.trace.intake import (
    CONVERT,
    EMPTY,
    MISFIT,
    REQUIRED,
    Findings,
    UnreadableError,
    fault,
    listed,
)
from roundelay.trace.schema import COLUMNS, Row

LINE_BYTES_MAX = 1 << 20
"""The longest line that is read, in bytes; a longer one is left out and noted. Without a limit a
file without line ends would fill the memory."""

PART_ROWS = 1024
"""Rows that become bytes together. Too many take memory; too few cost calls of the system."""

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Encoder:
    """Writes rows to a file."""

    suffix = ".jsonl"
    divisible = True
    """Whether the file can be cut after any batch and still be read."""
    checked = False
    """Whether the file has checksums of its own."""

    def __init__(self, file: BinaryIO, run: str) -> None:
        self._file = file
        self._run = run

    def write(self, rows: list[Row]) -> None:
        names = Row._fields
        lines = []
        for row in rows:
            line: dict[str, Any]
            line = {n: v for n, v in zip(names, row, strict=True) if v is not None}
            line["run"] = self._run
            if row.prev_c is not None:
                line["prev_c"] = dict(zip(("seq", "rep", "kind"), row.prev_c, strict=True))
            lines.append(_encode(line))
        self._file.write(("\n".join(lines) + "\n").encode("ascii"))

    def write_batch(self, batch: Batch) -> None:
        """The same for rows in compact form."""
        rows = batch.rows()
        for start in range(0, len(rows), PART_ROWS):
            self.write(rows[start : start + PART_ROWS])

    def write_end(self, sha256: str) -> None:
        """Writes nothing: the format has no end mark."""


def decode(
    path: Path, batch_rows: int, found: Findings, *, start: int = 0, end: int | None = None
) -> Iterator[list[Row]]:
    """The rows of a file in batches, or of its lines from byte `start` on, as if it ended at byte
    `end`. Raises UnreadableError if reading fails before the end of the file."""
    batch: list[Row] = []
    number = 0
    try:
        with path.open("rb") as file:
            file.seek(start)
            while line := file.readline(_most(file, end)):
                number += 1
                whole = line.endswith(b"\n")
                if not whole and len(line) == LINE_BYTES_MAX:
                    found.leave_out(f"line {number}", f"it exceeds {LINE_BYTES_MAX} bytes")
                    while line and not line.endswith(b"\n"):
                        line = file.readline(LINE_BYTES_MAX)
                    continue
                if not line.strip():
                    continue
                try:
                    row = _row(json.loads(line.decode("utf-8")), found)
                except _BadLineError as e:
                    found.leave_out(f"line {number}", str(e))
                except (ValueError, RecursionError):
                    if whole or not (found.row_count or batch):
                        found.leave_out(f"line {number}", "it is not JSON")
                    else:
                        found.notes.append(
                            f"its last line, {number}, is cut: the run was cut short or is not over"
                        )
                else:
                    batch.append(row)
                if len(batch) >= batch_rows:
                    found.row_count += len(batch)
                    yield batch
                    batch = []
    except OSError as e:
        raise UnreadableError(f"cannot be read ({e.strerror or e}); copy it again") from None
    if not number:
        raise UnreadableError(EMPTY)
    found.row_count += len(batch)
    yield batch


def _most(file: BinaryIO, end: int | None) -> int:
    """How many bytes the next line has at most."""
    return LINE_BYTES_MAX if end is None else max(0, min(LINE_BYTES_MAX, end - file.tell()))


_NAMES = frozenset(COLUMNS)
_PLAN = [(name, CONVERT[name], Row._field_defaults.get(name)) for name in COLUMNS]
assert tuple(COLUMNS)[: len(REQUIRED)] == REQUIRED, "the required columns are the first"


class _BadLineError(Exception):
    """JSON that is no row."""


def _row(line: Any, found: Findings) -> Row:
    if not isinstance(line, dict):
        raise _BadLineError("it is not a JSON object")
    if (run := line.pop("run", None)) is not None:
        if not isinstance(run, str):
            raise _BadLineError(f"run is {str(run)[:60]}, not a string")
        found.runs[run] = None
    if not _NAMES.issuperset(line):
        found.unknown.update(dict.fromkeys(name for name in line if name not in _NAMES))
    values: list[Any] = []
    for name, convert, default in _PLAN:
        value = line.get(name)
        try:
            values.append(default if value is None else convert(value))
        except MISFIT:
            shown = str(value)[:60]
            raise _BadLineError(f"{name} is {shown!r}, not {COLUMNS[name]}") from None
    if None in values[: len(REQUIRED)]:
        raise _BadLineError(f"it lacks {listed(n for n in REQUIRED if line.get(n) is None)}")
    row = Row._make(values)
    if (reason := fault(row, found.node_count)) is not None:
        raise _BadLineError(reason)
    return row
