"""What happened in a run: who was in which view, what was done to the group, and what followed.

Times are seconds on the clock of the run's diagrams: of the demo they are those on its console.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from roundelay.core.effects import Kind
from roundelay.draw.clock import clock_of
from roundelay.draw.moments import faults
from roundelay.draw.order import ordered
from roundelay.draw.wording import Wording
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import TRANSITIONAL, WORLD, Row

_KINDS = (Kind.INSTALL, Kind.CRASH, Kind.RECOVER)
OF_NODES = {
    "crash": ("crash", "crash of"),
    "pause": ("pause", "pause of"),
    "resume": ("resume", "end of the pause of"),
    "start": ("restart", "restart of"),
    "restart": ("restart", "restart of"),
}
OF_ALL = {
    "merge": ("merge", "the network is whole again"),
    "heal": ("faults end", "all faults end"),
}
"""What was done, by the tag of its row: for a picture, and for a sentence."""


class State(StrEnum):
    """What a node is in, as its bar looks."""

    PRIMARY = "primary"
    OTHER = "other"
    """A regular view that is not primary."""
    TRANSITIONAL = "transitional"
    DOWN = "down"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Bar:
    """A node in a view, or down, or paused; from and to."""

    row: str
    """The node."""
    name: str
    """The members of the view."""
    told: str
    start: float
    end: float
    state: State
    colour: int = 0
    """One number for each regular view. A transitional view has that of the view before it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that was done to the group."""

    number: int
    """As `roundelay draw --around` counts."""
    at_s: float
    short: str
    """For a picture."""
    told: str
    """For a sentence."""
    followed: tuple[str, ...]
    """The views that followed, and when all their members were in them."""


class Story:
    """A run, from its rows; those about views and faults are enough."""

    def __init__(self, rows: Sequence[Row], manifest: Manifest) -> None:
        self.rows = ordered(rows)
        self.manifest = manifest
        clock = clock_of(self.rows)
        self.origin_ns = clock.origin_ns
        self.wording = Wording(manifest, self.rows, clock)
        self._end_ns = max((row.t_ns for row in self.rows), default=0)
        regular = (r for r in self.rows if r.kind == Kind.INSTALL and r.c_kind != TRANSITIONAL)
        self._colours = {view: n for n, view in enumerate(dict.fromkeys(map(_view, regular)))}

    def seconds(self, t_ns: int) -> float:
        return (t_ns - self.origin_ns) / 1e9

    @property
    def has_views(self) -> bool:
        return bool(self._colours)

    def bars(self) -> list[Bar]:
        """Of each node in the order of their names: its views, and the times it was down."""
        own = [r for r in self.rows if r.proc != WORLD and r.kind in _KINDS]
        own.sort(key=lambda row: row.proc)  # Stable: the order of each node stays.
        bars: list[Bar] = []
        for proc, group in groupby(own, key=lambda row: row.proc):
            bars += self._of_node(self.manifest.name(proc), list(group))
        return [*bars, *self._pauses()]

    def _of_node(self, node: str, events: Sequence[Row]) -> Iterator[Bar]:
        colour = 0
        for row, after in zip(events, [*events[1:], None], strict=True):
            start = self.seconds(row.t_ns)
            end = self.seconds(self._end_ns if after is None else after.t_ns)
            if row.kind == Kind.CRASH:
                yield Bar(node, "down", f"{node} is down", start, end, State.DOWN)
            if row.kind != Kind.INSTALL:
                continue
            passing = row.c_kind == TRANSITIONAL
            state = State.TRANSITIONAL if passing else State.OTHER
            state = State.PRIMARY if row.primary else state
            colour = colour if passing else self._colours[_view(row)]
            members = " ".join(self.manifest.name(member) for member in row.members or ())
            told = f"{_STATES[state]} {self.wording.view(row)}: {members}"
            yield Bar(node, members, told, start, end, state, colour)

    def _pauses(self) -> Iterator[Bar]:
        since: dict[str, int] = {}
        for row in (*self.rows, None):
            if row is not None and row.kind == Kind.FAULT and row.tag == "pause":
                since.setdefault(_subject(row), row.t_ns)
            for node in _goes_on(row, since):
                begun, end = since.pop(node), self._end_ns if row is None else row.t_ns
                times = self.seconds(begun), self.seconds(end)
                yield Bar(node, "paused", f"{node} is paused", *times, State.PAUSED)

    def faults(self) -> list[Fault]:
        """What was done, in order."""
        found = faults(self.rows, self.wording)
        ends = [*(moment.index for moment in found[1:]), len(self.rows)]
        return [
            Fault(
                moment.number,
                self.seconds(self.rows[moment.index].t_ns),
                *_told(self.rows[moment.index], moment.told),
                tuple(self._followed(moment.index, end)),
            )
            for moment, end in zip(found, ends, strict=False)  # Without faults one end is left.
        ]

    def _followed(self, index: int, end: int) -> Iterator[str]:
        """The views in which nodes were when the next fault came, if they entered them since."""
        last: dict[int, Row] = {}
        first_ns = self.rows[index].t_ns
        for row in self.rows[index:end]:
            if row.kind == Kind.INSTALL and row.c_kind != TRANSITIONAL:
                last[row.proc] = row
            elif row.kind == Kind.CRASH:
                last.pop(row.proc, None)
        views: dict[tuple[int, int], list[Row]] = {}
        for row in last.values():
            views.setdefault(_view(row), []).append(row)
        for _, entered in sorted(views.items(), key=lambda item: item[1][0].members or ()):
            view = entered[0]
            members = " ".join(self.manifest.name(member) for member in view.members or ())
            after_s = (max(row.t_ns for row in entered) - first_ns) / 1e9
            kind = "primary" if view.primary else "not primary"
            yield f"{members}: {kind}, after {after_s:.2f} s"


_STATES = {
    State.PRIMARY: "primary view",
    State.OTHER: "view, not primary,",
    State.TRANSITIONAL: "transitional view",
}


def _view(row: Row) -> tuple[int, int]:
    return row.c_seq or 0, row.c_rep or 0


def _told(row: Row, headline: str) -> tuple[str, str]:
    """For a picture and for a sentence; what is not known keeps its headline."""
    subject = _subject(row)
    if row.kind == Kind.FAULT and subject and row.tag in OF_NODES:
        short, told = OF_NODES[row.tag]
        return f"{short} {subject}", f"{told} {subject}"
    if row.kind == Kind.FAULT and not subject and row.tag in OF_ALL:
        return OF_ALL[row.tag]
    return headline, headline


def _subject(row: Row) -> str:
    """The node that a fault is about; empty if it is about none, or about several."""
    try:
        detail = json.loads(row.x or "null")
    except (ValueError, RecursionError):
        return ""
    node = detail.get("node") if isinstance(detail, dict) else None
    return node if isinstance(node, str) else ""


def _goes_on(row: Row | None, paused: dict[str, int]) -> list[str]:
    """The paused nodes whose pause ends here: all of them at the end of the trace."""
    if row is None:
        return [*paused]
    if row.kind == Kind.FAULT and row.tag in ("resume", "crash"):
        return [node for node in (_subject(row),) if node in paused]
    return []
