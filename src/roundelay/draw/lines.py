"""Assigns events to numbered lines along the time axis; later events are further down.

Time is not to scale. The intervals of a run differ by four orders of magnitude, so only their order
is drawn: a line is below another exactly if its events happened later. Events of different nodes at
the same time share a line. So do a frame and the event it belongs to, such as an arrival and the
receipt of its message. Long pauses, events left out and repeated node names have lines of their
own.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from statistics import median

from roundelay.core.effects import Kind
from roundelay.core.value import value
from roundelay.draw.flights import Flight
from roundelay.trace.schema import WORLD, Row

PAUSE_FACTOR = 20
PAUSES_MAX = 10
"""An interval is drawn as a pause if it is PAUSE_FACTOR times the median, and so large a part of
the whole time that at most PAUSES_MAX intervals of a diagram can be as long. Smaller factors draw
more pauses."""
NAMES_EVERY = 44
"""After how many lines the node names are repeated: about a screen. With more, a reader who scrolls
sees no names."""
HANDLER_NS = 1_000_000
"""Two rows that a real node writes within this time, in nanoseconds, may belong to one input and
share a line."""


class Between(StrEnum):
    """The meaning of a line without events."""

    PAUSE = "pause"
    CUT = "cut"
    NAMES = "names"


@value
class Lines:
    """The lines of a diagram."""

    line: dict[int, int]
    """The line of each row, by its index."""
    between: dict[int, tuple[Between, int]]
    """By line without events: its meaning, and the length of the pause in nanoseconds or the number
    of events left out."""
    count: int


def assign(
    rows: Sequence[Row],
    shown: Sequence[int],
    cuts: Mapping[int, int],
    arrows: Iterable[Flight],
    *,
    stepped: bool,
) -> Lines:
    """Give every shown row its line. `cuts` has, by row, how many events were left out just before
    it."""
    sources: dict[int, int] = {}
    for arrow in arrows:
        if arrow.source is not None and arrow.target is not None:
            sources[arrow.target] = arrow.source
    pause = _pause(rows, shown) if not stepped else None

    line: dict[int, int] = {}
    between: dict[int, tuple[Between, int]] = {}
    lowest: dict[tuple[str, int | None], int] = {}
    latest: dict[int, int] = {}
    bodies: set[tuple[int, int]] = set()
    base, top, named = 0, -1, 0
    before: int | None = None

    def insert_line(what: Between, number: int = 0) -> None:
        nonlocal top
        top += 1
        between[top] = (what, number)

    for i in shown:
        row = rows[i]
        gap = row.t_ns - rows[before].t_ns if before is not None else 0
        new = before is None or stepped or gap != 0 or i in cuts
        if new or _alone(row) or (before is not None and _alone(rows[before])):
            if i in cuts:
                insert_line(Between.CUT, cuts[i])
            elif pause is not None and gap >= pause:
                insert_line(Between.PAUSE, gap)
            if top + 1 - named >= NAMES_EVERY:
                insert_line(Between.NAMES)
                named = top
            if not (before is not None and row.kind == rows[before].kind == Kind.END):
                base = top + 1
        at = base
        if (source := sources.get(i)) in line:
            at = max(at, line[source] + 1) if source is not None else at
        place = _place(row)
        previous = latest.get(row.proc)
        body = row.kind not in (Kind.SEND, Kind.ARRIVE)
        if (
            previous is not None
            and _joined(rows[previous], row, last=line[previous] == top)
            and not (body and (row.proc, line[previous]) in bodies)
        ):
            at = line[previous]
        elif not _alone(row):
            at = max(at, lowest.get(place, -1) + 1)
        line[i] = at
        if body:
            bodies.add((row.proc, at))
        lowest[place] = max(at, lowest.get(place, -1))
        if row.proc != WORLD:
            latest[row.proc] = i
        top = max(top, at)
        before = i
    return Lines(line, between, top + 1)


def _alone(row: Row) -> bool:
    """Whether the event is drawn across all nodes."""
    return row.proc == WORLD and row.kind != Kind.DROP


def _place(row: Row) -> tuple[str, int | None]:
    """What a line has room for only once: a mark on a lifeline, or a lost frame before it."""
    return ("lost", row.peer) if row.proc == WORLD else ("node", row.proc)


def _joined(first: Row, second: Row, *, last: bool) -> bool:
    """Whether two events that follow each other at a node share one place on its lifeline."""
    gap = second.t_ns - first.t_ns
    if first.inc != second.inc or (gap != 0 and not (last and 0 < gap < HANDLER_NS)):
        return False
    match first.kind, second.kind:
        case (Kind.ARRIVE, Kind.RECEIVE):
            return second.pkt is None or first.pkt == second.pkt
        case (Kind.ARRIVE, Kind.TOKEN):
            return second.tag == "acquire"
        case (Kind.TOKEN, Kind.SEND):
            return first.tag == "release"
        case (Kind.SEND, Kind.TOKEN):
            return second.tag == "release"
        case (Kind.ORIGINATE, Kind.SEND) | (Kind.SEND, Kind.ORIGINATE):
            return True
        case (Kind.SEND, Kind.SEND):  # One frame to each of several nodes.
            return first.tag == second.tag and None not in (first.peer, second.peer)
    return False


def _pause(rows: Sequence[Row], shown: Sequence[int]) -> float | None:
    gaps = [rows[j].t_ns - rows[i].t_ns for i, j in pairwise(shown)]
    gaps = [gap for gap in gaps if gap > 0]
    if len(gaps) < 8:
        return None
    part = 1 / PAUSES_MAX if len(shown) < 50 else 5 / len(shown)
    return max(PAUSE_FACTOR * median(gaps), part * sum(gaps))
