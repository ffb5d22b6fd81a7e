"""The table of sessions: which numbers of each session are in the log.

It is a function of the log: all nodes hold the same table behind the same record. A session is
remembered with its last number. Beyond a limit the one that was not used for the longest time is
forgotten, but never one of a member of the present term. Sessions of nodes that are away are kept
as long as there are named ones to forget instead, up to half of the limit: such a node may come
back, and could append nothing more if its session was unknown.

Records at the end of a log may be taken away again, so each change of the table gives back what
undoes it.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple, TypeAlias

from roundelay.core.log import NAMED, Session


class Used(NamedTuple):
    """What is remembered of one session."""

    number: int
    """The last number that has an index; -1 if none has."""
    at: int
    """The index of that number; of a session that was only opened, where it was opened."""
    use: int
    """Grows with every use of any session: tells which was not used for the longest time."""


Undo: TypeAlias = tuple[tuple[int, Used | None], ...]
"""Sessions as they were before a change; None if there was no such session."""


class SessionTable:
    """Sessions by id, in the order of their last use."""

    def __init__(self, most: int, sessions: Iterable[Session] = ()) -> None:
        self._most = most
        self._uses = 0
        self._used: dict[int, Used] = {}
        self._own = 0
        """How many are nodes' own."""
        for session, number, at in sessions:
            self._uses += 1
            self._used[session] = Used(number, at, self._uses)
            self._own += not session & NAMED

    def get(self, session: int) -> Used | None:
        return self._used.get(session)

    def __len__(self) -> int:
        return len(self._used)

    def use(self, session: int, number: int, at: int, spared: Collection[int]) -> Undo:
        """This number of a session has this index now (-1: it was only opened). Sessions in
        `spared` are not forgotten for it. Returns what undoes this."""
        used = self._used
        self._uses += 1
        before = used.pop(session, None)
        used[session] = Used(number, at, self._uses)
        undo: Undo = ((session, before),)
        if before is None:
            self._own += not session & NAMED
            if len(used) > self._most:
                undo = (*undo, *self._forget(spared))
        return undo

    def _forget(self, spared: Collection[int]) -> Undo:
        away = self._own - sum(session in self._used for session in spared)
        among_all = 2 * away > self._most
        own: int | None = None
        for session, used in self._used.items():
            if session in spared or used.use == self._uses:
                continue
            if among_all or session & NAMED:
                return self._drop(session)
            own = session if own is None else own
        # None: all are of members, which are fewer than any sensible limit.
        return () if own is None else self._drop(own)

    def _drop(self, session: int) -> Undo:
        self._own -= not session & NAMED
        return ((session, self._used.pop(session)),)

    def undo(self, changes: Iterable[Undo]) -> None:
        """Undo these changes, the last one first."""
        used = self._used
        for change in changes:
            for session, before in reversed(change):
                if before is None:
                    used.pop(session, None)
                else:
                    used[session] = before
        self._own = sum(not session & NAMED for session in used)
        # Rare, so sorting is good enough: what was put back is at the end now.
        self._used = dict(sorted(used.items(), key=lambda item: item[1].use))

    def copy(self) -> "SessionTable":
        twin = SessionTable(self._most)
        twin._uses, twin._used, twin._own = self._uses, dict(self._used), self._own
        return twin

    @property
    def sessions(self) -> tuple[Session, ...]:
        """As a checkpoint keeps them: the one longest unused first."""
        return tuple([Session(key, used.number, used.at) for key, used in self._used.items()])
