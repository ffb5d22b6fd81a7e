"""Which events of a trace a picture shows, and the sentence about those it does not."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from roundelay.core.effects import Kind
from roundelay.core.ids import NodeId
from roundelay.core.value import value
from roundelay.draw.clock import Clock
from roundelay.draw.moments import Place, focus
from roundelay.draw.wording import Wording
from roundelay.trace.schema import LOWER_LAYER, WORLD, Row

EVENTS_MAX = 400
"""How many events a diagram shows by default. With more it is slow and hard to read."""


@value
class Window:
    """The part of a trace to show."""

    start_ns: int | None = None
    """The first time to show, as the diagram writes it: in traces of real nodes it is counted from
    the first event."""
    end_ns: int | None = None
    nodes: tuple[NodeId, ...] | None = None
    at: Place | None = None
    """Only what is around this moment: what it is about, and `around` events on either side."""
    around: int | None = None
    """Only this many events before and after each row of the witness, or of the moment."""
    limit: int | None = EVENTS_MAX
    """The most events that are shown: the first ones, or those nearest to the witness or moment."""
    hide: tuple[str, ...] = ()
    """Kinds of events that are not shown."""
    marked_as: str = "witness"
    """What the rows of the witness are called, where they are those of something else."""


@value
class Selection:
    """A trace and the part of it that is shown."""

    rows: tuple[Row, ...]
    """All rows of the trace, in order."""
    shown: tuple[int, ...]
    """Indices into `rows`, ascending."""
    procs: tuple[int, ...]
    """The nodes that get a lifeline, in order of their numbers."""
    witness: frozenset[int]
    """Indices into `rows`."""
    cuts: dict[int, int]
    """By shown row: how many events were left out between it and the shown row before it."""
    note: str
    """A sentence about what was left out; empty if nothing was."""
    marked_as: str = "witness"


def select(
    rows: Sequence[Row], witness: Sequence[Row], wording: Wording, clock: Clock, window: Window
) -> Selection:
    """Choose the rows of the window; `rows` are in order. ValueError if they lack the moment that
    the window is about."""
    marked = {_identity(row) for row in witness}
    witness_rows = [i for i, row in enumerate(rows) if _identity(row) in marked]
    about = None if window.at is None else focus(rows, window.at, wording, clock)
    near = list(about.anchors) if about is not None else witness_rows
    story = frozenset(about.story) if about is not None else frozenset()
    what = about.told if about is not None else f"the {window.marked_as}"
    procs = _procs(rows, wording, window.nodes)
    # The layer below tells of the same messages again, unless it is the point of the picture.
    below = {i for i, row in enumerate(rows) if row.layer == LOWER_LAYER} - set(witness_rows)
    shown = [i for i in range(len(rows)) if i not in below]
    reasons: list[str] = []

    def narrow(kept: list[int], reason: str) -> list[int]:
        if len(kept) < len(shown):
            reasons.append(reason)
        return kept

    if window.nodes is not None:
        names = ", ".join(wording.node(proc) for proc in procs)
        shown = narrow([i for i in shown if _concerns(rows[i], procs)], f"only nodes {names}")
    if window.hide:
        reason = f"without {', '.join(window.hide)}"
        shown = narrow([i for i in shown if rows[i].kind not in window.hide], reason)
    if window.start_ns is not None:
        start = clock.origin_ns + window.start_ns
        reason = f"from {clock.exact(start)} on"
        shown = narrow([i for i in shown if rows[i].t_ns >= start], reason)
    if window.end_ns is not None:
        end = clock.origin_ns + window.end_ns
        reason = f"up to {clock.exact(end)}"
        shown = narrow([i for i in shown if rows[i].t_ns <= end], reason)
    eligible = shown
    distance = _distances(shown, near, story) if near else {}
    if window.around is not None and near:
        reason = f"within {window.around} events of {what}"
        shown = narrow([i for i in shown if distance[i] <= window.around], reason)
    if window.limit is not None and len(shown) > window.limit:
        if near:
            nearest = sorted(shown, key=lambda i: (distance[i], i))[: window.limit]
            shown = narrow(sorted(nearest), f"the {window.limit} nearest to {what}")
        else:
            shown = narrow(shown[: window.limit], f"the first {window.limit}")

    note = ""
    if reasons:
        note = f"Shows {len(shown)} of {len(rows) - len(below)} events ({'; '.join(reasons)})."
    if unseen := len(set(witness_rows) - set(shown)):
        total = f"{len(witness_rows)} events of the {window.marked_as}"
        note += f" {unseen} of the {total} are not among them."
    cuts = _cuts(eligible, shown)
    witnessed = frozenset(witness_rows)
    return Selection(tuple(rows), tuple(shown), procs, witnessed, cuts, note, window.marked_as)


def _cuts(eligible: Sequence[int], shown: Sequence[int]) -> dict[int, int]:
    place = {i: at for at, i in enumerate(eligible)}
    gaps = {j: place[j] - place[i] - 1 for i, j in pairwise(shown)}
    return {i: gap for i, gap in gaps.items() if gap}


def _identity(row: Row) -> tuple[str, int, int, int]:
    """Identifies a row, also after `expand`, which makes several rows of one."""
    return row.kind, row.proc, row.inc, row.lseq


def _procs(
    rows: Sequence[Row], wording: Wording, nodes: tuple[NodeId, ...] | None
) -> tuple[int, ...]:
    known = set(range(wording.node_count)) | {row.proc for row in rows if row.proc != WORLD}
    return tuple(p for p in sorted(known) if nodes is None or wording.node(p) in nodes)


def _concerns(row: Row, procs: tuple[int, ...]) -> bool:
    if row.proc != WORLD:
        return row.proc in procs
    return row.kind != Kind.DROP or row.peer is None or row.peer in procs


def _distances(shown: Sequence[int], near: Sequence[int], story: frozenset[int]) -> dict[int, int]:
    """For each shown event, how many events lie between it and the nearest of `near`; those of the
    story are no distance away."""
    places = sorted(bisect_left(shown, i) for i in near)
    distance: dict[int, int] = {}
    for place, i in enumerate(shown):
        right = bisect_left(places, place)
        nearest = min(abs(place - at) for at in places[max(0, right - 1) : right + 1])
        distance[i] = 0 if i in story else nearest
    return distance
