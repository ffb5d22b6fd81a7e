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

from roundelay.core.contract import Boot
from roundelay.core.ids import NodeId, View, ViewId
from roundelay.membership.messages import ATTEMPTS_MAX, Entry, Primary

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


class Standing:
    """What one node remembers of primary views."""

    def __init__(self, boot: Boot, founders: tuple[NodeId, ...]) -> None:
        self._founders = tuple(sorted(founders))
        self.last = None if boot.incarnation else Primary(FOUNDING, self._founders)
        """The last one that it was in; who restarted knows of none."""
        self.attempts: tuple[Primary, ...] = ()
        """Later ones that a peer may have installed and this node did not."""

    def of(self, entries: Sequence[Entry]) -> bool:
        """Whether a view of these members is primary."""
        return is_primary(entries, self._founders)

    def note(self, view: View) -> None:
        """A view was installed."""
        if view.primary:
            self.last = Primary(view.id, view.members)
            self.attempts = ()

    def doubt(self, view: ViewId, entries: Sequence[Entry]) -> None:
        """A peer may install from here on. If the view is primary, that must be remembered."""
        if self.of(entries):
            attempt = Primary(view, tuple(entry.node for entry in entries))
            self.attempts = (*self.attempts, attempt)[-ATTEMPTS_MAX:]


def _majority(present: Sequence[NodeId], members: tuple[NodeId, ...]) -> bool:
    return 2 * sum(member in present for member in members) > len(members)
