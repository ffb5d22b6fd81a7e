"""J1 to J4, J11: one log at all nodes, without holes, final, and each message in it once."""

from roundelay.check.log.history import (
    Losses,
    Piece,
    committed,
    entries,
    entry,
    follow,
    is_named,
)
from roundelay.check.model import Event, Model
from roundelay.check.property import Finding, Scope, declare
from roundelay.core.effects import Kind


@declare("J1", "All who know an index to be committed have the same entry there")
def agreement(model: Model) -> Finding:
    found = committed(model)
    clash = found.clash
    if clash is None:
        return Finding(found.compared)
    one, other = clash.one, clash.other
    a, b = entry(model, one, clash.at), entry(model, other, clash.at)
    who, others = model.name(one.proc), model.name(other.proc)
    what = f"{who} has {a} at index {clash.at}, {others} has {b}"
    if a == b:
        terms = (one.row.k0, one.row.k1) != (other.row.k0, other.row.k1)
        differ = "in different terms" if terms else "with different bytes"
        what = f"{who} and {others} have {a} at index {clash.at} {differ}"
    reason = f"{what}, and both know that it is committed"
    return Finding(found.compared, reason, (one, clash.commit, other, clash.other_commit))


@declare("J2", "A message has one index in the committed log")
def uniqueness(model: Model) -> Finding:
    found = committed(model)
    count = 0
    for table in found.sessions.values():
        count += sum(piece.end - piece.first for piece in table.pieces)
        reach: Piece | None = None
        for piece in sorted(table.pieces, key=lambda p: (p.number(p.first), p.first)):
            number = piece.number(piece.first)
            if reach is not None and number <= reach.number(reach.end - 1):
                index = reach.first + number - reach.number(reach.first)
                reason = (
                    f"{entry(model, piece.event, piece.first)} is committed at index {index} and "
                    f"at index {piece.first}"
                )
                commits = (found.knows[p.event.at] for p in (reach, piece))
                return Finding(count, reason, (reach.event, piece.event, *commits))
            reach = piece
    return Finding(count)


@declare("J3", "A node's entries continue its log without a hole", scope=Scope.NODE)
def no_holes(model: Model) -> Finding:
    count = 0
    last: dict[int, Event] = {}
    for event, log in follow(model):
        if event.kind == Kind.ENTRY:
            count += 1
            index, length = event.row.idx or 0, log.length
            fits = length is None or index == length or index == log.restored
            if not fits and not (not log.whole and index < (length or 0)):
                reason = (
                    f"{model.name(event.proc)} gives index {index} to {entry(model, event)} "
                    f"when its log has {entries(length or 0)}"
                )
                witness = (last[event.proc], event) if event.proc in last else (event,)
                return Finding(count, reason, witness)
        if event.kind in (Kind.ENTRY, Kind.CUT, Kind.RESTORE):
            last[event.proc] = event
    return Finding(count)


@declare("J4", "Nobody cuts what it knew to be committed, or unlearns it", scope=Scope.NODE)
def final(model: Model) -> Finding:
    """What a node knew in an earlier life it need not know at once in the next, but must hold;
    unless an operator began a generation without it."""
    losses = Losses(model)
    count = 0
    for event, log in follow(model):
        index, who = event.row.idx or 0, model.name(event.proc)
        if event.kind == Kind.CUT and log.committed is not None:
            count += 1
            commit, known = log.committed, log.committed.row.idx or 0
            limit = losses.limit(log.committed_era)
            if limit is not None:
                # What it still knows, it must not cut even then.
                commit = log.life_committed or commit
                known = max(min(known, limit), _index(log.life_committed))
            if index < known:
                reason = f"{who} cuts its log to {entries(index)} and knew {known} to be committed"
                return Finding(count, reason, (commit, event))
        elif event.kind == Kind.COMMIT and log.life_committed is not None:
            count += 1
            known = log.life_committed.row.idx or 0
            if index < known:
                reason = f"{who} knew {entries(known)} to be committed, and now {index}"
                return Finding(count, reason, (log.life_committed, event))
    return Finding(count)


def _index(event: Event | None) -> int:
    return 0 if event is None else event.row.idx or 0


@declare("J11", "The numbers of a session grow along the committed log, a node's own by one")
def exactly_once(model: Model) -> Finding:
    """A trace with a total order begins with an empty log, so that own numbers begin with 0 there.
    That of real nodes may begin with full journals."""
    found = committed(model)
    count = 0
    for session, table in found.sessions.items():
        before: Piece | None = None
        for piece in table.pieces:
            count += piece.end - piece.first
            number = piece.number(piece.first)
            following = 0 if before is None else before.number(before.end - 1) + 1
            by_one = not is_named(session) and (before is not None or model.total)
            if number < following or (by_one and number > following):
                told = [piece] if before is None else [before, piece]
                after = "nothing" if before is None else f"number {following - 1}"
                reason = (
                    f"{entry(model, piece.event, piece.first)} is committed at index "
                    f"{piece.first} after {after} of its session"
                )
                commits = (found.knows[p.event.at] for p in told)
                return Finding(count, reason, (*(p.event for p in told), *commits))
            before = piece
    return Finding(count)
