"""What the readers of all formats share: they convert values, check rows and note problems.

A reader yields rows for which `fault` finds nothing wrong, and notes rows that it leaves out in
`Findings`. It raises `UnreadableError` if nothing more can be read from a file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from roundelay.core.effects import Kind
from roundelay.core.ids import Service
from roundelay.trace.schema import (
    COLUMNS,
    ENTRY_KINDS,
    INDEX_KINDS,
    LAYERS,
    MESSAGE_KINDS,
    REGULAR,
    TRANSITIONAL,
    WORLD,
    Row,
)

REQUIRED = tuple(name for name in COLUMNS if name not in Row._field_defaults)
"""Columns without which there is no row."""

EMPTY = "is empty: the run ended before its first event was written; run it again"


class UnreadableError(Exception):
    """Nothing, or nothing more, can be read from a file. The message completes the sentence "<file>
    ..."."""


class Findings:
    """What was found in one file, apart from its rows."""

    def __init__(self, path: Path, node_count: int) -> None:
        self.path = path
        self.node_count = node_count
        """The number of nodes; node numbers are smaller."""
        self.runs: dict[str, None] = {}
        """The runs that rows name, in order of appearance."""
        self.sha256 = ""
        """The hash of its rows, if the file names it and protects its rows by checksums."""
        self.row_count = 0
        self.left_out = 0
        self.first = ""
        """The place of the first row that was left out, and the reason."""
        self.unknown: dict[str, None] = {}
        """Names of columns that the schema does not have."""
        self.notes: list[str] = []

    def leave_out(self, place: str, reason: str) -> None:
        self.left_out += 1
        if not self.first:
            self.first = f"{place}: {reason}"

    def problems(self) -> Iterator[str]:
        if self.left_out:
            rows = "1 row was" if self.left_out == 1 else f"{self.left_out} rows were"
            yield f"{self.path}: {rows} left out as making no sense, the first in {self.first}"
        if self.unknown:
            yield (
                f"{self.path}: columns {listed(self.unknown)} are unknown and were not read; "
                "update roundelay"
            )
        for note in self.notes:
            yield f"{self.path}: {note}"


_KINDS = frozenset(kind.value for kind in Kind)
# A null decision orders nothing.
_NEEDS_MESSAGE = (MESSAGE_KINDS - {Kind.ORDER, Kind.CONFIRM}) | ENTRY_KINDS
_SERVICES = frozenset(Service)
_VIEW_KINDS = frozenset({REGULAR, TRANSITIONAL})


def fault(row: Row, node_count: int) -> str | None:
    """Why the row cannot come from a writer of ours; None if it can. The types of its values are
    right."""
    kind = row.kind
    if kind not in _KINDS:
        return f"kind {kind!r} is unknown"
    if row.layer not in LAYERS:
        return f"layer {row.layer!r} is unknown"
    if not WORLD <= row.proc < node_count:
        return f"proc {row.proc} is no node of the run"
    if row.inc < 0 or row.lseq < 0:
        return f"inc {row.inc} or lseq {row.lseq} is negative"
    if row.m_seq is not None:
        if row.m_src is None or row.m_inc is None:
            return f"the {kind} names half a message"
        if not WORLD <= row.m_src < node_count:
            return f"m_src {row.m_src} is no node of the run"
    elif kind in _NEEDS_MESSAGE or row.m_src is not None or row.m_inc is not None:
        return f"the {kind} names no message"
    if row.svc is not None and row.svc not in _SERVICES:
        return f"svc {row.svc} is unknown"
    if row.c_seq is not None:
        if row.c_rep is None or row.c_kind not in _VIEW_KINDS:
            return f"view {row.c_seq} has no representative or c_kind {row.c_kind} is unknown"
    elif row.c_rep is not None or row.c_kind is not None or kind == "install":
        return f"the {kind} names no view"
    if row.count < 1:
        return f"count is {row.count}"
    for nodes in (row.members, row.dst, row.voters):
        if nodes and not 0 <= min(nodes) <= max(nodes) < node_count:
            return f"{nodes} are not all nodes of the run"
    if row.idx is None:
        if kind in INDEX_KINDS:
            return f"the {kind} has no idx"
    elif row.idx < 0:
        return f"idx {row.idx} is negative"
    if row.obj is None and (kind in ENTRY_KINDS or kind in ("invoke", "reply")):
        return f"the {kind} has no obj"
    if row.members is None and kind in ("install", "end", "open"):
        return f"the {kind} has no members"
    if row.prev_c is not None and row.prev_c[2] not in _VIEW_KINDS:
        return f"kind {row.prev_c[2]} of prev_c is unknown"
    return None


def _integer(bits: int) -> Callable[[Any], int]:
    limit = 1 << (bits - 1)

    def convert(value: Any) -> int:
        if type(value) is not int or not -limit <= value < limit:
            raise ValueError
        return value

    return convert


_int64, _int16, _int8 = _integer(64), _integer(16), _integer(8)


def _instance(type_: type) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if type(value) is not type_:
            raise TypeError
        return value

    return convert


def _numbers(value: Any) -> tuple[int, ...]:
    if type(value) is not list:
        raise TypeError
    return tuple(map(_int16, value))


def _view(value: Any) -> tuple[int, int, int]:
    seq, rep, kind = value.pop("seq"), value.pop("rep"), value.pop("kind")
    if value:
        raise ValueError
    return _int64(seq), _int16(rep), _int8(kind)


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "word": _instance(str),
    "string": _instance(str),
    "bool": _instance(bool),
    "list<int16>": _numbers,
    "view": _view,
    "int8": _int8,
    "int16": _int16,
    "int32": _integer(32),
    "int64": _int64,
}
CONVERT = {name: _CONVERTERS[type_] for name, type_ in COLUMNS.items()}
"""By column: makes a value of what JSON or Arrow gave, or raises one of `MISFIT`."""

MISFIT = (ValueError, TypeError, KeyError, AttributeError)


def listed(names: Iterable[str]) -> str:
    """The first eight names for a sentence, and how many more there are."""
    names = list(names)
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
