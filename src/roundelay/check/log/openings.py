"""J6, J7, J9: which views open, and what must be so by then.

A view *opens* where a member has a row `open` for it. Its voters and its base are in that row. A
member *counts* in a view that is formed unless it says, where it installs it, that it is not able
to vote.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from roundelay.check.liveness import unsettled
from roundelay.check.log.history import (
    NO_VIEW,
    Losses,
    NodeLog,
    ViewRef,
    entries,
    follow,
    opened,
    view_name,
)
from roundelay.check.model import Config, Event, Model
from roundelay.check.property import Finding, declare
from roundelay.core.effects import Kind
from roundelay.trace.schema import REGULAR, Row


class Storing:
    """What nodes had stored while they were in a view, in the order of their rows."""

    def __init__(self) -> None:
        self._lengths: dict[tuple[ViewRef, int], list[int]] = {}
        self._events: dict[tuple[ViewRef, int], list[Event]] = {}

    def note(self, view: ViewRef, event: Event, length: int) -> None:
        """By this event its node has stored so many; smaller lengths than before tell nothing."""
        lengths = self._lengths.setdefault((view, event.proc), [])
        if not lengths or lengths[-1] < length:
            lengths.append(length)
            self._events.setdefault((view, event.proc), []).append(event)

    def first(self, views: Iterable[ViewRef], proc: int, length: int) -> Event | None:
        """Where a node had first stored so many in one of these views."""
        for view in views:
            lengths = self._lengths.get((view, proc), [])
            place = bisect_left(lengths, length)
            if place < len(lengths):
                return self._events[view, proc][place]
        return None

    def had(
        self, model: Model, views: Iterable[ViewRef], voters: Iterable[int], length: int, by: Event
    ) -> list[Event]:
        """The rows by which some of these nodes had stored so many, before `by`."""
        found = (self.first(views, proc, length) for proc in voters)
        return [event for event in found if event is not None and model.before(event, by)]


def openings(model: Model) -> dict[ViewRef, list[Event]]:
    """The rows `open` of views that opened, by view, the smallest view first."""
    found: dict[ViewRef, list[Event]] = {}
    for event in model.by_kind.get(Kind.OPEN, ()):
        if event.row.tag:
            continue  # Nobody was in that view.
        found.setdefault(opened(event.row), []).append(event)
    return dict(sorted(found.items()))


def voters_of(event: Event) -> tuple[int, ...]:
    return event.row.members or ()


@declare("J6", "A view opens when a majority of its voters has stored the log it begins with")
def opening(model: Model) -> Finding:
    storing = Storing()
    for event, log in follow(model):
        if event.kind == Kind.STORED:
            storing.note(log.view, event, event.row.idx or 0)
    count = 0
    for view, events in openings(model).items():
        for event in events:
            count += 1
            first, base, voters = events[0], event.row.idx or 0, voters_of(event)
            name = view_name(model, view)
            if (first.row.idx, sorted(voters_of(first))) != (event.row.idx, sorted(voters)):
                reason = (
                    f"{name} opens at {model.name(first.proc)} from index {first.row.idx} on with "
                    f"voters {model.names(voters_of(first))}, at {model.name(event.proc)} from "
                    f"{base} on with {model.names(voters)}"
                )
                return Finding(count, reason, (first, event))
            had = storing.had(model, (view, NO_VIEW), voters, base, event)
            if 2 * len(had) <= len(voters):
                who = model.names(e.proc for e in had) or "nobody"
                reason = (
                    f"{model.name(event.proc)} finds {name} open from index {base} on, when of its "
                    f"voters {model.names(voters)} only {who} had stored its beginning"
                )
                return Finding(count, reason, (event, *had))
    return Finding(count)


@declare("J7", "What is committed is in every log that opens later")
def durability(model: Model) -> Finding:
    best = _Best(Losses(model))
    final: dict[int, NodeLog] = {}
    for event, log in follow(model):
        final[event.proc] = log
        if event.kind == Kind.COMMIT:
            best.note(log, event)
    count = 0
    for view, events in openings(model).items():
        for event in events:
            found = best.before(model, view, event, events[0])
            if found is None:
                continue
            count += 1
            known, base, commit = found.known, event.row.idx or 0, found.commit
            if base < known:
                reason = (
                    f"{view_name(model, view)} opens at {model.name(event.proc)} with "
                    f"{entries(base)}, but {model.name(commit.proc)} knew {known} to be committed"
                )
                return Finding(count, reason, (commit, event))
    return _at_the_end(model, best, final, count)


class _Known(NamedTuple):
    """A commit, and how much of what its node knew counts."""

    known: int
    commit: Event


class _Best:
    """The commits that are the greatest of their view and their generation."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._found: dict[tuple[ViewRef, ViewRef], Event] = {}
        """By view, and by generation."""
        self._nowhere: list[tuple[ViewRef, Event]] = []
        """Those of nodes that were in no view, with their generations; in each, the greatest
        last."""

    def note(self, log: NodeLog, event: Event) -> None:
        view, generation = log.view, self._losses.generation(log.era)
        if view == NO_VIEW:
            if log.committed is not None and _length(event) <= _length(log.committed):
                return  # It knew so in an earlier life, perhaps in a view that others open later.
            least = max((_length(e) for of, e in self._nowhere if of == generation), default=0)
            if not self._nowhere or least < _length(event):
                self._nowhere.append((generation, event))
            return
        known = self._found.get((view, generation))
        if known is None or _length(known) < _length(event):
            self._found[view, generation] = event

    def before(self, model: Model, view: ViewRef, event: Event, first: Event) -> _Known | None:
        """The greatest of all views before this one, which opened first at `first`."""
        earlier = [(of, commit) for (known, of), commit in self._found.items() if known < view]
        # What a node reads in its journal as it starts, it may have known long before or after: of
        # real nodes, whose rows have no common order, only the node itself tells. What is committed
        # in this view itself may be read there before the last of its members finds it open.
        earlier += [
            (of, commit)
            for of, commit in self._nowhere
            if (model.before(commit, first) if model.total else commit.proc == event.proc)
            and model.before(commit, event)
        ]
        return self._greatest(earlier, view)

    def until(self, view: ViewRef) -> _Known | None:
        """The greatest of this view and all before it."""
        earlier = [(of, commit) for (known, of), commit in self._found.items() if known <= view]
        return self._greatest([*earlier, *self._nowhere], view)

    def _greatest(self, commits: list[tuple[ViewRef, Event]], view: ViewRef) -> _Known | None:
        """Without what was lost before this view."""
        found = []
        for generation, commit in commits:
            limit = self._losses.limit(generation, view)
            known = _length(commit)
            found.append(_Known(known if limit is None else min(known, limit), commit))
        return max(found, key=itemgetter(0), default=None)


def _length(event: Event) -> int:
    return event.row.idx or 0


def _at_the_end(model: Model, best: _Best, final: dict[int, NodeLog], count: int) -> Finding:
    """At a quiet end, whoever is able in an open view has it all."""
    if unsettled(model):
        return Finding(count)
    views = openings(model)
    ends = {row.members: row for row in model.rows if row.kind == Kind.END}
    for component in model.components:
        for proc in component:
            log = final.get(proc)
            installs = model.installs[proc]
            if log is None or log.view not in views or (installs and installs[-1].row.level == 0):
                continue
            found = best.until(log.view)
            if found is None or log.length is None or not log.whole:
                continue
            count += 1
            if log.length < found.known:
                commit = found.commit
                reason = (
                    f"{model.name(proc)} ends with {entries(log.length)} in "
                    f"{view_name(model, log.view)}, but {model.name(commit.proc)} knew "
                    f"{found.known} to be committed"
                )
                here = [e for e in views[log.view] if e.proc == proc] or views[log.view]
                witness: tuple[Event | Row, ...] = (
                    *(commit, here[0], *installs[-1:]),
                    ends[component],
                )
                return Finding(count, reason, witness)
    return Finding(count)


@declare("J9", "Views that open are one chain: each counted enough voters of those before it")
def one_chain(model: Model) -> Finding:
    """Each view that opens counted a majority of the voters of one that opened before it, and at
    least half of those of every one that opened since: it may have been open without its knowledge,
    and then half of its voters that are not there are no majority. Where no view counts a majority,
    its members knew of none that was open, and half of each must do.

    A generation that an operator began begins a chain anew, with a view of the survivors."""
    views = openings(model)
    begun = Losses(model).events
    firsts = {**{view: events[0] for view, events in views.items()}, **begun}
    order = sorted(firsts)
    count = 0
    for place, view in enumerate(order):
        if view in begun:
            continue
        counted = _counted(model, view, views[view])
        for earlier in reversed(order[:place]):
            count += 1
            first = firsts[earlier]
            voters = voters_of(first)
            there = [proc for proc in voters if proc in counted]
            if 2 * len(there) > len(voters):
                break
            if 2 * len(there) < len(voters) or earlier in begun:
                who = model.names(there) or "nobody"
                had = "began a generation" if earlier in begun else "had opened"
                reason = (
                    f"{view_name(model, view)} opens, which counted {who} of the voters "
                    f"{model.names(voters)} of {view_name(model, earlier)}, which {had}"
                )
                witness = (first, views[view][0], *_installs(model, view))
                return Finding(count, reason, witness)
    return Finding(count)


def _installs(model: Model, view: ViewRef) -> Iterator[Event]:
    """The installs of a view, one of each node."""
    config = Config(*view, REGULAR)
    for events in model.installs.values():
        yield from [event for event in events if event.cfg == config][:1]


def _counted(model: Model, view: ViewRef, events: list[Event]) -> set[int]:
    """The nodes that may have counted when a view was formed."""
    members = model.members.get(Config(*view, REGULAR))
    if members is None:
        return {event.proc for event in events}.union(*(voters_of(event) for event in events))
    not_able = {event.proc for event in _installs(model, view) if event.row.level == 0}
    return set(members) - not_able
