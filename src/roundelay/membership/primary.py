"""Which views are the primary component.

At any time at most one view is primary, and each primary view shares members with the one before
it. A new view is primary if it holds a majority of the last primary view that any of its members
was in, counting those who were in it or were about to be. A primary view that somebody may have
installed, while none of the members at hand did, stands in doubt: then a majority of it is needed
as well. A group's first primary view is its founders.

A restarted node remembers no primary view and has no vote. But where all members of the last one
are present, restarted or not, nobody is left who could go on elsewhere; and if everybody
restarted, the founders, all of them together, begin anew.
"""

from collections.abc import Sequence

from roundelay.core.ids import NodeId, ViewId
from roundelay.membership.messages import Entry, Primary

FOUNDING = ViewId(0, "")
"""The id of the view that the founders of a group are taken to have been in before the first."""


def is_primary(entries: Sequence[Entry], founders: tuple[NodeId, ...]) -> bool:
    """Whether a view of these members is primary; the same answer at every one of them."""
    known = [entry.primary for entry in entries if entry.primary is not None]
    members = [entry.node for entry in entries]
    if not known:
        return all(founder in members for founder in founders)
    last = max(known, key=lambda primary: primary.id)
    voters = [e.node for e in entries if e.primary == last or last in e.attempts]
    whole = all(member in members for member in last.members)
    if not whole and not _majority(voters, last.members):
        return False
    doubts = {attempt for entry in entries for attempt in entry.attempts if attempt.id > last.id}
    return all(_majority(members, doubt.members) for doubt in sorted(doubts, key=lambda d: d.id))


def first_primary(founders: tuple[NodeId, ...], *, restarted: bool) -> Primary | None:
    """What a node takes for the last primary view when it starts."""
    return None if restarted else Primary(FOUNDING, founders)


def _majority(present: Sequence[NodeId], members: tuple[NodeId, ...]) -> bool:
    return 2 * sum(member in present for member in members) > len(members)
