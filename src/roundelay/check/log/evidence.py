"""J5, J8, J10, J12: what a claim about the log rests on."""

from bisect import bisect_left
from collections.abc import Iterator
from operator import itemgetter

from roundelay.check.log.history import (
    NO_VIEW,
    Committed,
    Losses,
    NodeLog,
    ViewRef,
    alike,
    entries,
    entry,
    follow,
    opened,
    view_name,
)
from roundelay.check.log.openings import Storing, openings, voters_of
from roundelay.check.model import Config, Event, Model
from roundelay.check.property import Finding, declare
from roundelay.core.effects import Kind
from roundelay.trace.schema import REGULAR


@declare("J5", "Who knows of a commit rests on a majority that stored it in an open view")
def commit_evidence(model: Model) -> Finding:
    """What is below the base of an open view needs no more. Voters count from when they find the
    view open: before that they must not acknowledge."""
    views = openings(model)
    bases = {view: min(e.row.idx or 0 for e in events) for view, events in views.items()}
    acknowledged, stored = Storing(), Storing()
    commits: list[tuple[Event, ViewRef]] = []
    for event, log in follow(model):
        if event.kind == Kind.STORED:
            stored.note(log.view, event, event.row.idx or 0)
            if log.view == log.open_view:
                acknowledged.note(log.view, event, event.row.idx or 0)
        elif event.kind == Kind.OPEN and not event.row.tag and log.stored is not None:
            acknowledged.note(opened(event.row), event, log.stored.row.idx or 0)
        elif event.kind == Kind.COMMIT:
            commits.append((event, log.view))
    count = 0
    for event, view in commits:
        count += 1
        known = event.row.idx or 0
        if any(known <= base for other, base in bases.items() if other <= view or view == NO_VIEW):
            continue
        # Nobody was left to say that the view opened: then those who were ready are the evidence.
        unseen = [view] if view not in views and view != NO_VIEW else []
        among = [other for other in reversed(views) if other <= view or view == NO_VIEW]
        if any(_majority(model, acknowledged, v, voters_of(views[v][0]), event) for v in among):
            continue
        if any(_majority(model, stored, v, _voters_installed(model, v), event) for v in unseen):
            continue
        return Finding(count, *_unfounded(model, event, view, views, acknowledged))
    return Finding(count)


def _majority(
    model: Model, storing: Storing, view: ViewRef, voters: tuple[int, ...], commit: Event
) -> bool:
    had = storing.had(model, (view,), voters, commit.row.idx or 0, commit)
    return 2 * len(had) > len(voters)


def _voters_installed(model: Model, view: ViewRef) -> tuple[int, ...]:
    """The voters of a primary view as its installs tell of them."""
    for events in model.installs.values():
        for event in events:
            if event.cfg == Config(*view, REGULAR) and event.row.primary:
                return event.row.voters or event.row.members or ()
    return ()


def _unfounded(
    model: Model,
    event: Event,
    view: ViewRef,
    views: dict[ViewRef, list[Event]],
    acknowledged: Storing,
) -> tuple[str, tuple[Event, ...]]:
    known = entries(event.row.idx or 0)
    who = model.name(event.proc)
    if view == NO_VIEW:
        return f"{who} knows {known} to be committed in no view", (event,)
    name = view_name(model, view)
    if view not in views:
        return f"{who} knows {known} to be committed in {name}, which nobody finds open", (event,)
    opening = views[view][0]
    voters = voters_of(opening)
    had = acknowledged.had(model, (view,), voters, event.row.idx or 0, event)
    having = model.names(e.proc for e in had) or "nobody"
    reason = (
        f"{who} knows {known} to be committed in {name}, when of its voters "
        f"{model.names(voters)} only {having} had stored so many there"
    )
    return reason, (opening, event, *had)


@declare("J8", "A node that recovers still has what it had stored, or has no vote")
def memory(model: Model) -> Finding:
    """It has no vote if it says so where it first installs a view. Whose disk or standing was lost
    must say so, unless nobody has found a view open yet: then there is nothing to lose."""
    any_open = [event for event in model.by_kind.get(Kind.OPEN, ()) if not event.row.tag]
    count = 0
    for event, log in follow(model):
        if log.born is None:
            continue
        who = model.name(event.proc)
        if event.kind == Kind.INSTALL and log.first_install is None and log.disk_lost:
            count += 1
            had = [e for e in any_open if e.proc != event.proc or e.row.inc < event.row.inc]
            opening = next((e for e in had if model.before(e, event)), None)
            if event.row.level == 1 and opening is not None:
                reason = f"{who} lost its disk or its standing, and then is able to vote"
                return Finding(count, reason, (opening, log.crash or log.born, log.born, event))
        elif not log.settled and log.stored is not None and _shows(event, log):
            count += 1
            stored, now = log.stored.row.idx or 0, event.row.idx or 0
            if now < stored:
                reason = f"{who} had stored {entries(stored)} before it stopped, and then has {now}"
                return Finding(count, reason, (log.stored, log.born, event))
    return Finding(count)


def _shows(event: Event, log: NodeLog) -> bool:
    """Whether a row tells how much a life began with. In a primary view entries may be cut because
    others go on without them."""
    if event.kind == Kind.CUT:
        return not log.primary
    return event.kind in (Kind.ENTRY, Kind.STORED)


@declare("J10", "Who has caught up has what the others have, and a restored state is theirs")
def caught_up(model: Model) -> Finding:
    count = 0
    found = Committed(Losses(model))
    for event, log in follow(model):
        if event.kind == Kind.CAUGHT:
            count += 1
            length, who = event.row.idx or 0, model.name(event.proc)
            if log.whole and log.length is not None and log.length < length:
                reason = f"{who} has caught up with {entries(length)} and has {log.length}"
                last = log.table.pieces[-1:]
                return Finding(count, reason, (*(piece.event for piece in last), event))
            # Without a total order nobody knows what was committed by then, but to the node itself.
            own = 0 if log.life_committed is None else log.life_committed.row.idx or 0
            for piece in log.table.within(0, length if model.total else min(length, own)):
                for known in found.table.within(piece.first, piece.end):
                    if alike(known.event, piece.event, known.first):
                        continue
                    commit = found.knows[known.event.at]
                    reason = (
                        f"{who} has caught up and has {entry(model, piece.event, known.first)} at "
                        f"index {known.first}, where {entry(model, known.event, known.first)} is "
                        f"committed at {model.name(known.event.proc)}"
                    )
                    return Finding(count, reason, (known.event, commit, piece.event, event))
        found.take(event, log)
    return _restored(model, count)


def _restored(model: Model, count: int) -> Finding:
    """States that were restored, against those that others had there."""
    states: dict[int, Event] = {}
    lost = Losses(model)
    told = [
        (event, lost.limit(log.era))
        for event, log in follow(model)
        if event.kind in (Kind.SNAPSHOT, Kind.RESTORE) and event.row.digest is not None
    ]
    told.sort(key=lambda one: one[0].kind == Kind.RESTORE)
    for event, limit in told:
        index = event.row.idx or 0
        if limit is not None and index > limit:
            continue
        known = states.setdefault(index, event)
        if event.kind == Kind.RESTORE and known is not event:
            count += 1
            if known.row.digest != event.row.digest:
                reason = (
                    f"{model.name(event.proc)} restores another state after {entries(index)} than "
                    f"{model.name(known.proc)} had"
                )
                return Finding(count, reason, (known, event))
    return Finding(count)


@declare("J12", "A linearizable operation sees all that was known to be committed before it began")
def fresh_reads(model: Model) -> Finding:
    """Where there is no total order, what came first is known at one node and at one clock. What
    was lost before an operation began it need not see."""
    invokes = {(e.proc, e.row.inc, e.row.lseq): e for e in model.by_kind.get(Kind.INVOKE, ())}
    commits = _Growing(model)
    count = 0
    for reply in model.by_kind.get(Kind.REPLY, ()):
        invoke = invokes.get((reply.proc, reply.row.inc, reply.row.cause or 0))
        if reply.row.cause is None or invoke is None or reply.row.idx is None:
            continue
        if invoke.row.level == 0:
            continue
        known, commit = commits.before(invoke)
        if commit is None:
            continue
        count += 1
        if reply.row.idx < known:
            reason = (
                f"{model.name(reply.proc)} is answered as of {entries(reply.row.idx)}, but "
                f"{model.name(commit.proc)} knew {known} to be committed before it asked"
            )
            return Finding(count, reason, (commit, invoke, reply))
    return Finding(count)


class _Growing:
    """The commits that are greater than all before them, on each clock and in each generation."""

    def __init__(self, model: Model) -> None:
        self._total = model.total
        self._clocks = model.manifest.clocks() if model.manifest is not None else {}
        self._losses = Losses(model)
        self._commits: dict[ViewRef, dict[object, list[tuple[int, Event]]]] = {}
        """By the term that the generation began with, and by clock."""
        found = [
            (self._losses.generation(log.era), key, when, event)
            for event, log in follow(model)
            if event.kind == Kind.COMMIT
            for key, when in self._times(event)
        ]
        found.sort(key=lambda one: one[2])
        for generation, key, when, event in found:
            known = self._commits.setdefault(generation, {}).setdefault(key, [])
            if not known or (known[-1][1].row.idx or 0) < (event.row.idx or 0):
                known.append((when, event))

    def before(self, event: Event) -> tuple[int, Event | None]:
        """What was known to be committed before an event, without what was lost by then; and the
        row that tells it."""
        best: tuple[int, Event | None] = (-1, None)
        for generation, clocks in self._commits.items():
            limit = self._losses.limit(generation, by=event if self._total else None)
            for key, when in self._times(event):
                commits = clocks.get(key, [])
                if place := bisect_left(commits, when, key=_when):
                    commit = commits[place - 1][1]
                    known = commit.row.idx or 0
                    known = known if limit is None else min(known, limit)
                    best = max(best, (known, commit), key=itemgetter(0))
        return best

    def _times(self, event: Event) -> Iterator[tuple[object, int]]:
        row = event.row
        if self._total:
            yield "all", event.at
            return
        yield (row.proc, row.inc), row.lseq
        if clock := self._clocks.get(f"{row.proc}.{row.inc}"):
            yield clock, row.t_ns


def _when(commit: tuple[int, Event]) -> int:
    return commit[0]
