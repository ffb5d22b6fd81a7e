"""Which views are the primary component, and what a node must remember for that.

Theory of operation
===================

Of all views that exist at one time at most one is primary, so the members of a primary view may act
for the whole group. Every primary view has *voters*, fixed when it is formed. The next one needs

- a majority of the voters of the last primary view that any member present remembers, and
- half of the voters of every later *attempt*: a primary view that a member present helped to form,
  and that others may have installed meanwhile. It was installed only if all its members had noted
  the attempt, so nodes that go on from it need a voter of the half that is present here.

Only nodes that are *able* count: those whose stable storage holds everything they ever noted. A
node that lost its storage could have forgotten the very view that matters, so it has no vote until
it has installed a primary view again. An empty storage cannot be told from a lost one. Hence a
group is founded, or begins anew, only when all its founders are present and none of them remembers
a primary view.

Voters are the able members, but never fewer than three (or than a smaller group has): of three
nodes any two go on, whichever of them fails next.

A node writes an attempt to stable storage before anybody can install that view, and a primary view
before it installs it itself. A node with a journal writes the latter later, when the view opens:
when a majority of its voters hold the log, and this node does too. Until then the view is an
attempt. So a view whose members have yet to catch up does not hand the quorum to nodes without the
data. Attempts of the same voters are merged into the newest and are never
dropped otherwise; a view for which a member would need more than `ATTEMPTS_MAX` is not primary.
"""

from collections.abc import Collection, Iterable, Sequence

from roundelay.core.ids import NodeId, ViewId
from roundelay.core.value import value
from roundelay.membership.messages import ATTEMPTS_MAX, CommitEntry, Primary

FOUNDING = ViewId(0, "")
"""The id of an imaginary primary view before the first one, with the founders as its voters."""
VOTERS_MIN = 3
"""Voters never become fewer than this, unless there were fewer before. Fewer than three: a view of
two could not go on when either of them fails."""


@value
class Ruling:
    """Whether a view is primary; every member of it comes to the same ruling."""

    voters: tuple[NodeId, ...] = ()
    """Empty: the view is not primary."""
    founding: bool = False
    """No member remembers a primary view: this one begins a new sequence of them."""
    why: str = ""
    """For people: why the view is not primary, and what would help."""


def rule(entries: Sequence[CommitEntry]) -> Ruling:
    """Decide on a view of the members that brought these entries."""
    members = [entry.node for entry in entries]
    able = able_members(entries)
    crowded = [entry.node for entry in entries if entry.crowded]
    if crowded:
        return Ruling(why=f"too many past members for one Commit token (of {_list(crowded)})")
    known = [entry.last for entry in entries if entry.last is not None]
    founding = not known
    if founding:
        odd = [entry.node for entry in entries if entry.founders != entries[0].founders]
        if odd:
            return Ruling(
                why=f"the peers of {members[0]} and of {_list(odd)} differ; give all nodes the "
                "same peers"
            )
        founders = entries[0].founders
        if set(founders) <= set(members):
            return _within_limits(entries, Ruling(founders, founding=True))
        known = [Primary(FOUNDING, founders)]
    last = max(known, key=lambda primary: primary.id)
    if 2 * _present(able, last.voters) <= len(last.voters):
        return Ruling(why=_no_majority(members, able, last))
    went_on = "opened" if any(entry.journal for entry in entries) else "gone on in"
    attempts = {a for entry in entries for a in entry.attempts if a.id > last.id}
    for attempt in sorted(attempts, key=lambda a: a.id):
        if 2 * _present(able, attempt.voters) < len(attempt.voters):
            missing = [node for node in attempt.voters if node not in able]
            return Ruling(
                why=f"needs one of {_list(missing)}: they may have {went_on} view {attempt.id}"
            )
    enough = len(able) >= min(VOTERS_MIN, len(last.voters))
    return _within_limits(entries, Ruling(able if enough else last.voters, founding))


def able_members(entries: Sequence[CommitEntry]) -> tuple[NodeId, ...]:
    """The members that have a vote. Where there is a log, one that does not keep it has none."""
    journals = any(entry.journal for entry in entries)
    return tuple(
        [entry.node for entry in entries if entry.able and (entry.journal or not journals)]
    )


def _within_limits(entries: Sequence[CommitEntry], ruling: Ruling) -> Ruling:
    for entry in entries:
        if len({ruling.voters, *(a.voters for a in entry.attempts)}) > ATTEMPTS_MAX:
            return Ruling(
                why=f"too many unfinished view changes in the memory of {entry.node}; it clears "
                f"once a majority of an earlier view meets"
            )
    return ruling


def _no_majority(members: Sequence[NodeId], able: Sequence[NodeId], last: Primary) -> str:
    absent = [node for node in last.voters if node not in members]
    lost = [node for node in last.voters if node in members and node not in able]
    needed = len(last.voters) // 2 + 1 - _present(able, last.voters)
    if last.id == FOUNDING:
        return f"the group begins when all its founders are there: {_list(absent)} missing" + (
            f"; or {needed} more that kept their state" if able else ""
        )
    if needed <= len(absent):
        forgot = f" ({_list(lost)} lost their state)" if lost else ""
        return f"needs {needed} more of {_list(absent)}, voters of view {last.id}{forgot}"
    others = [node for node in members if node in able] + absent
    return (
        f"{_list(lost)} lost their state; restart {_list(sorted(others))} as well, without state, "
        "to begin anew"
    )


class Standing:
    """What one node remembers of primary views, to be kept in stable storage."""

    def __init__(
        self,
        able: bool = False,
        last: Primary | None = None,
        attempts: tuple[Primary, ...] = (),
    ) -> None:
        self.able = able
        """Whether it remembers everything it ever noted, so that it may vote."""
        self.last = last
        """The last primary view it was in."""
        self.attempts = attempts
        """Later ones that a peer may have installed and this node did not."""

    @property
    def known(self) -> tuple[Primary | None, tuple[Primary, ...], bool]:
        """All of it, in the order of an `CommitEntry`."""
        return self.last, self.attempts, self.able

    def attempt(self, view: ViewId, ruling: Ruling) -> bool:
        """From here on a peer may install this view; whether that has to be stored first."""
        if not ruling.voters:
            return False
        kept = tuple(a for a in self.attempts if a.voters != ruling.voters)
        self.attempts = (*kept, Primary(view, ruling.voters))
        # A founder of a group has nothing that it could have forgotten.
        self.able = self.able or ruling.founding
        return True

    def install(self, view: ViewId, ruling: Ruling) -> bool:
        """This node installs this view; whether that has to be stored first."""
        if not ruling.voters:
            return False
        self.open(view, ruling.voters)
        return True

    def open(self, view: ViewId, voters: tuple[NodeId, ...]) -> None:
        """This primary view is the last one now. Attempts that came later stay: a node with a
        journal may learn only as a view ends that it was open."""
        self.able = True
        self.last = Primary(view, voters)
        self.attempts = tuple(a for a in self.attempts if a.id > view)


def _present(able: Collection[NodeId], voters: Iterable[NodeId]) -> int:
    return sum(voter in able for voter in voters)


def _list(nodes: Sequence[NodeId]) -> str:
    return ", ".join(nodes)
