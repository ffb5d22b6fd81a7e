"""M10: there is one primary component at a time, and it has one history."""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from roundelay.check.model import Model
from roundelay.check.primary import (
    KINDS,
    Breach,
    Identity,
    Lineage,
    Primary,
    begins_generation,
    identity,
    is_primary,
)
from roundelay.check.property import Finding, declare
from roundelay.trace.schema import WORLD, Row


@declare("M10", "Primary views are one line, and no two are held at once")
def primary_component(model: Model) -> Finding:
    lineage = Lineage(total=model.total)
    breach: Breach | None = None
    for row in model.rows:
        if (row.kind in KINDS or begins_generation(row)) and row.proc != WORLD:
            found = lineage.feed(row)
            breach = breach or found
    if not model.total:
        breach = lineage.resolve() or _held_at_once(model, lineage)
    count = max(lineage.count - 1, 0)
    if breach is None:
        return Finding(count)
    return Finding(count, breach.sentence(model.words), breach.rows)


# Without a total order.


class _Stay(NamedTuple):
    """A voter holds a primary view."""

    install: Row
    end: Row | None
    """The row with which that is over, or its last one; None at the quiet end of the run."""


def _held_at_once(model: Model, lineage: Lineage) -> Breach | None:
    """Two primary views that were certainly held at the same time.

    Two stays overlap, in whatever order events really happened, if each began certainly before the
    other was over. Several that overlap two by two have a moment in common. Who belongs to the
    majorities is tried in the order of the trace, so this may miss an overlap of many voters that
    is certain, and never claims one that is not.
    """
    stays: dict[Identity, list[_Stay]] = {}
    for id_, stay in _stays(model):
        if stay.install.proc in lineage.views[id_].voters:
            stays.setdefault(id_, []).append(stay)
    for one, two in combinations(sorted(stays), 2):
        first, second = lineage.views[one], lineage.views[two]
        ones, others = stays[one], stays[two]
        if not lineage.frozen(two):
            # Nobody says when its members let go of the view before.
            ones = [stay for stay in ones if stay.install.proc not in second.members]
        nodes = {stay.install.proc for stay in (*ones, *others)}
        if len(nodes) < first.quorum + second.quorum:
            continue  # Some node would have to hold both.
        if (rows := _together(model, first, ones, second, others)) is not None:
            return Breach(False, first, second, rows)
    return None


def _stays(model: Model) -> Iterator[tuple[Identity, _Stay]]:
    alive = {proc for component in model.components for proc in component}
    install: Row | None = None
    last: Row | None = None
    for row in model.rows:
        if install is not None and last is not None:
            if (row.proc, row.inc) != (install.proc, install.inc):
                over = None if row.proc != last.proc and last.proc in alive else last
                yield identity(install), _Stay(install, over)
                install = None
            elif row.kind in KINDS:
                yield identity(install), _Stay(install, row)
                install = None
        if row.proc != WORLD and is_primary(row):
            install = row
        last = row
    if install is not None and last is not None:
        yield identity(install), _Stay(install, None if last.proc in alive else last)


def _together(
    model: Model, first: Primary, ones: list[_Stay], second: Primary, others: list[_Stay]
) -> tuple[Row, ...] | None:
    """Rows that show a majority of each view, all of whose stays overlap."""
    for place, seed in enumerate(ones):
        chosen = [seed]
        if _join(model, chosen, ones[place + 1 :], first.quorum - 1) and _join(
            model, chosen, others, second.quorum
        ):
            return tuple(row for stay in chosen for row in stay if row is not None)
    return None


def _join(model: Model, chosen: list[_Stay], stays: list[_Stay], wanted: int) -> bool:
    """Choose so many stays that overlap with all chosen before; whether there are enough."""
    for stay in stays:
        if wanted and all(_overlap(model, stay, other) for other in chosen):
            chosen.append(stay)
            wanted -= 1
    return not wanted


def _overlap(model: Model, one: _Stay, other: _Stay) -> bool:
    for install, end in ((one.install, other.end), (other.install, one.end)):
        if model.withheld and end is not None and model.excluded(install, end):
            return False  # Whatever the frames say of the other end.
    return _begins_before(model, one, other) and _begins_before(model, other, one)


def _begins_before(model: Model, one: _Stay, other: _Stay) -> bool:
    """Whether `one` certainly began before `other` was over."""
    if other.end is None:
        return True
    if one.install.proc == other.end.proc:
        return False  # Nobody holds two views at once.
    return model.certain(one.install, other.end)
