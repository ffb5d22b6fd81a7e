"""Parts of a lifeline that last: the life of a node, its views, its time with the token."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from roundelay.core.effects import Kind
from roundelay.draw.scene import Band, Hold, Life
from roundelay.draw.wording import Wording
from roundelay.trace.schema import TRANSITIONAL, Row

Height: TypeAlias = Callable[[int], float]
"""Returns the height of a row, given by its index; for a row that is not shown, the height it would
have."""


Events: TypeAlias = Sequence[tuple[int, Row]]
"""The rows of one node with their indices in the trace."""
ViewRef: TypeAlias = tuple[int | None, int | None, int | None]


def view_of(row: Row) -> ViewRef:
    return row.c_seq, row.c_rep, row.c_kind


def colours_of(rows: Sequence[Row]) -> dict[ViewRef, int]:
    """A number for each view of a trace, in order of appearance."""
    found: dict[ViewRef, int] = {}
    for row in rows:
        if row.kind == Kind.INSTALL:
            found.setdefault(view_of(row), len(found))
    return found


def lives(rows: Events, x: float, *, top: float, bottom: float, height: Height) -> list[Life]:
    """The lifeline of a node in parts, which are up and down in turn."""
    found: list[Life] = []
    up, since = True, top
    for i, row in rows:
        if row.kind in (Kind.CRASH, Kind.RECOVER):
            found.append(Life(x, since, height(i), up))
            up, since = row.kind == Kind.RECOVER, height(i)
    found.append(Life(x, since, bottom, up))
    return [life for life in found if life.y1 > life.y0]


def bands(
    rows: Events,
    x: float,
    colours: Mapping[ViewRef, int],
    wording: Wording,
    *,
    bottom: float,
    height: Height,
    lit: Callable[[int], bool],
) -> list[tuple[int, Band]]:
    """The views of a node, each with the index of its install row."""
    found: list[tuple[int, Band]] = []
    entered: tuple[int, Row] | None = None
    for i, row in (*rows, (None, None)):
        y = bottom if i is None else height(i)
        if row is not None and row.kind not in (Kind.INSTALL, Kind.CRASH, Kind.RECOVER):
            continue
        if entered is not None and height(entered[0]) < y:
            start, view = entered
            transitional, primary = view.c_kind == TRANSITIONAL, bool(view.primary)
            colour, facts = colours[view_of(view)], wording.facts(view)
            band = Band(x, height(start), y, colour, transitional, primary, facts, lit(start))
            found.append((start, band))
        entered = (i, row) if i is not None and row and row.kind == Kind.INSTALL else None
    return found


def holds(
    rows: Events,
    x: float,
    wording: Wording,
    *,
    bottom: float,
    height: Height,
    lit: Callable[[int], bool],
) -> list[Hold]:
    """When a node had the token."""
    found: list[Hold] = []
    since: tuple[int, Row] | None = None
    for i, row in (*rows, (None, None)):
        if row is not None and row.kind not in (Kind.TOKEN, Kind.CRASH):
            continue
        if i is not None and row and row.kind == Kind.TOKEN and row.tag == "acquire":
            since = since or (i, row)
        elif since is not None:
            start, acquired = since
            y = bottom if i is None else height(i)
            found.append(Hold(x, height(start), y, wording.facts(acquired), lit(start)))
            since = None
    return [hold for hold in found if hold.y1 > hold.y0]
