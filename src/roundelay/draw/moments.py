"""Moments of a trace that a picture can be about: faults, views, times, rows.

A long run has tens of thousands of events, of which a few say what happened: what was done to the
group, and how its views followed. `roundelay draw --around` names one of these moments, or all of
a kind.
"""

import re
from collections.abc import Iterator, Sequence

from roundelay.core.effects import Kind
from roundelay.core.value import value
from roundelay.draw.clock import Clock, parse_time
from roundelay.draw.wording import Wording
from roundelay.trace.schema import REGULAR, WORLD, Row

SHOWN_MAX = 12
"""How many moments a sentence names that says which ones there are."""

_STORY = (
    *(Kind.FAULT, Kind.CRASH, Kind.RECOVER, Kind.SUSPECT, Kind.GATHER, Kind.FREEZE, Kind.INSTALL),
    *(Kind.OPEN, Kind.CAUGHT, Kind.RESTORE, Kind.END),
)
"""Kinds of events that tell what became of a group after a fault, however long that took."""


@value
class Moment:
    """A fault, or the beginning of a view."""

    number: int
    """Counts the moments of its kind, from 1 on."""
    index: int
    """Of its first row, in the rows of the trace in order."""
    told: str
    """What happened, in a few words."""


@value
class Focus:
    """What a picture is about."""

    anchors: tuple[int, ...]
    """Indices of rows; those near them are shown too."""
    story: tuple[int, ...]
    """Indices of further rows that are shown without what is near them."""
    told: str
    """Completes "shows what is ..."."""


def faults(rows: Sequence[Row], wording: Wording) -> list[Moment]:
    """What was done to a run. Where nobody wrote that down, crashes and later lives of nodes stand
    for it. `rows` are in order, as `order.ordered` makes it."""
    done = [i for i, row in enumerate(rows) if row.kind == Kind.FAULT]
    first = _first_starts(rows, done)
    found = [(i, wording.headline(rows[i])) for i in done if i not in first]
    if not found:
        verbs = {Kind.CRASH: "crash", Kind.RECOVER: "restart"}
        found = [
            (i, f"{verbs[Kind(rows[i].kind)]} {wording.node(rows[i].proc)}") for i in _losses(rows)
        ]
    return [Moment(number, i, told) for number, (i, told) in enumerate(found, 1)]


def views(rows: Sequence[Row], wording: Wording) -> list[Moment]:
    """The regular views in the order in which their first members entered them."""
    first: dict[tuple[int | None, int | None], int] = {}
    for i, row in enumerate(rows):
        if row.kind == Kind.INSTALL and row.c_kind in (REGULAR, None):
            first.setdefault((row.c_seq, row.c_rep), i)
    return [
        Moment(number, i, f"{wording.view(rows[i])} {wording.group(rows[i].members)}")
        for number, i in enumerate(first.values(), 1)
    ]


def _first_starts(rows: Sequence[Row], done: Sequence[int]) -> set[int]:
    """A node that is started for the first time is no fault."""
    started: dict[str | None, int] = {}
    for i in done:
        if rows[i].tag == "start":
            started.setdefault(rows[i].x, i)
    return set(started.values())


def _losses(rows: Sequence[Row]) -> Iterator[int]:
    """Crashes, and recoveries of nodes that had a life before."""
    alive: set[int] = set()
    for i, row in enumerate(rows):
        if row.kind == Kind.CRASH or (row.kind == Kind.RECOVER and row.proc in alive):
            yield i
        if row.proc != WORLD:
            alive.add(row.proc)


# Places that a user names

_PLACE = re.compile(r"(fault|view)(?::([0-9]{1,9}))?")
_ROW = re.compile(r"row:([^:]+?)\.(?:([0-9]{1,20})\.)?([0-9]{1,19})")


@value
class Place:
    """What `--around` says: `fault`, `fault:2`, `view`, `view:3`, `4.5s`, `row:b.17`."""

    text: str

    def __post_init__(self) -> None:
        if not _PLACE.fullmatch(self.text) and not _ROW.fullmatch(self.text):
            try:
                parse_time(self.text)
            except ValueError:
                raise ValueError(
                    f"{self.text!r} names no moment; write fault, fault:2, view, view:3, a time as "
                    "4.5s, or a row as row:b.17 (its node and its number there)"
                ) from None


def focus(rows: Sequence[Row], place: Place, wording: Wording, clock: Clock) -> Focus:
    """The rows of a place; ValueError with a sentence if the trace has no such moment."""
    if match := _PLACE.fullmatch(place.text):
        kind, number = match[1], int(match[2]) if match[2] else None
        found = (faults if kind == "fault" else views)(rows, wording)
        return _around(rows, kind, found, number, wording, clock)
    if match := _ROW.fullmatch(place.text):
        return _row(rows, match[1], match[2], int(match[3]), wording)
    at_ns = clock.origin_ns + parse_time(place.text)
    if not rows:
        raise ValueError("the trace has no events")
    nearest = min(range(len(rows)), key=lambda i: abs(rows[i].t_ns - at_ns))
    return Focus((nearest,), (), clock.exact(at_ns))


def _around(
    rows: Sequence[Row],
    kind: str,
    found: Sequence[Moment],
    number: int | None,
    wording: Wording,
    clock: Clock,
) -> Focus:
    if not found or (number is not None and not 1 <= number <= len(found)):
        raise ValueError(_unknown(rows, kind, found, number, clock))
    if kind == "view":
        chosen = found if number is None else [found[number - 1]]
        told = "all views" if number is None else f"view {number}, {chosen[0].told}"
        return Focus(tuple(moment.index for moment in chosen), (), told)
    if number is None:
        story = tuple(i for i, row in enumerate(rows) if row.kind in _STORY)
        return Focus(tuple(moment.index for moment in found), story, "all faults and what followed")
    fault = found[number - 1]
    end = found[number].index if number < len(found) else len(rows)
    between = range(fault.index, end)
    story = tuple(i for i in between if rows[i].kind in _STORY)
    followed = (view.index for view in views(rows, wording) if view.index in between)
    told = f"fault {number}, {fault.told}, and what followed"
    return Focus((fault.index, *followed), story, told)


def _row(rows: Sequence[Row], node: str, life: str | None, number: int, wording: Wording) -> Focus:
    found = [
        i
        for i, row in enumerate(rows)
        if row.lseq == number
        and node in (wording.node(row.proc), str(row.proc))
        and life in (None, str(row.inc))
    ]
    if not found:
        raise ValueError(f"the trace has no row {number} of {node}")
    if len(found) > 1:
        lives = ", ".join(f"row:{node}.{rows[i].inc}.{number}" for i in found)
        raise ValueError(f"{node} has such a row in several lives; choose one: {lives}")
    return Focus((found[0],), (), f"row {number} of {node}")


def _unknown(
    rows: Sequence[Row], kind: str, found: Sequence[Moment], number: int | None, clock: Clock
) -> str:
    if not found:
        return f"the trace has no {kind}; name a time with --around, as --around 4.5s"
    listed = ", ".join(
        f"{moment.number} at {clock.tick(rows[moment.index].t_ns)} ({moment.told})"
        for moment in found[:SHOWN_MAX]
    )
    more = f" and {len(found) - SHOWN_MAX} more" if len(found) > SHOWN_MAX else ""
    return f"the trace has no {kind} {number}; it has {listed}{more}"
