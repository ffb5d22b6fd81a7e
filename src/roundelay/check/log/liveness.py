"""L8 and L9: what a replicated log owes at a quiet end.

It is owed in a component that can open: whose nodes end in a primary view, or, in a trace without
views, have found one open.
"""

from collections.abc import Iterator, Sequence

from roundelay.check.liveness import unsettled
from roundelay.check.log.history import (
    NodeLog,
    committed,
    entries,
    entry,
    follow,
    is_named,
)
from roundelay.check.model import Event, Model
from roundelay.check.property import Finding, declare
from roundelay.core.effects import Kind
from roundelay.trace.schema import Row


@declare("L8", "What a live node of a group that can open appends is committed")
def appended_is_committed(model: Model) -> Finding:
    """Of a named session only the greatest number: smaller ones may be repetitions. Nothing is owed
    of what its node was told that its session is forgotten."""
    if reason := unsettled(model):
        return Finding(0, unknown=reason)
    numbers = {
        session: sorted((p.number(p.first), p.number(p.end - 1)) for p in table.pieces)
        for session, table in committed(model).sessions.items()
    }
    ends = dict(_can_open(model))
    forgotten = {said for event in _appended(model) if event.row.tag for said in _numbers(event)}
    count = 0
    for event in _appended(model):
        if event.row.tag or (forgotten and forgotten.issuperset(_numbers(event))):
            continue
        if event.proc not in ends or event.row.inc != model.by_proc[event.proc][-1].row.inc:
            continue
        count += 1
        if not _covers(numbers.get(event.row.obj or "", []), event):
            reason = (
                f"{model.name(event.proc)} appends {entry(model, event)}, which is never committed"
            )
            return Finding(count, reason, (event, ends[event.proc]))
    return Finding(count)


def _appended(model: Model) -> Sequence[Event]:
    return model.by_kind.get(Kind.APPEND, ())


def _numbers(event: Event) -> Iterator[tuple[int, int, str, int]]:
    """The messages of a row: the life of their node, their session, and their number there."""
    row = event.row
    for number in range(row.m_seq or 0, (row.m_seq or 0) + row.count):
        yield event.proc, row.inc, row.obj or "", number


def _covers(ranges: list[tuple[int, int]], event: Event) -> bool:
    """Whether all numbers of a row are in one of these ranges."""
    first = event.row.m_seq or 0
    last = first + event.row.count - 1
    if is_named(event.row.obj or ""):
        return bool(ranges) and max(end for _, end in ranges) >= last
    for start, end in ranges:
        if start <= first <= end:
            first = end + 1
    return first > last


@declare("L9", "All nodes of a group that can open have caught up")
def all_caught_up(model: Model) -> Finding:
    if reason := unsettled(model):
        return Finding(0, unknown=reason)
    final: dict[int, NodeLog] = {}
    for event, log in follow(model):
        final[event.proc] = log
    ends = dict(_can_open(model))
    count = 0
    for component in model.components:
        logs = [final[proc] for proc in component if proc in final and proc in ends]
        best = max(logs, key=_known, default=None)
        if best is None or best.life_committed is None:
            continue
        for proc in component:
            if proc not in ends or proc not in final:
                continue
            log = final[proc]
            count += 1
            if _known(log) < _known(best):
                reason = (
                    f"{model.name(best.proc)} knows {entries(_known(best))} to be committed, "
                    f"{model.name(proc)} knows {_known(log)} at the end"
                )
                own = [] if log.life_committed is None else [log.life_committed]
                return Finding(count, reason, (best.life_committed, *own, ends[proc]))
    return Finding(count)


def _known(log: NodeLog) -> int:
    """How many entries a node knows to be committed."""
    return 0 if log.life_committed is None else log.life_committed.row.idx or 0


def _can_open(model: Model) -> Iterator[tuple[int, Row]]:
    """The nodes to whom something is owed, each with the end of its component."""
    ends = {row.members: row for row in model.rows if row.kind == Kind.END}
    found = {event.proc for event in model.by_kind.get(Kind.OPEN, ()) if not event.row.tag}
    for component in model.components:
        for proc in component:
            installs = [e for e in model.installs[proc] if e.cfg is not None and e.cfg.regular]
            if installs[-1].row.primary if installs else model.static and proc in found:
                yield proc, ends[component]
