"""What each node's log holds, row by row, and which entries are committed.

A node's log is a list of pieces: the rows `entry` that it wrote, as far as no later row took them
away. A restart keeps the log, but for a tail that may be lost; its first row `entry` then tells how
much was kept. Whoever has a row `commit` knows the entries below that length, as it holds them.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from roundelay.check.model import Event, Model
from roundelay.check.names import Names
from roundelay.core.effects import Kind
from roundelay.core.log import NAMED
from roundelay.trace.schema import LOG_KINDS, REGULAR, Row

ViewRef = tuple[int, int]
"""A view's (seq, rep)."""

NO_VIEW: ViewRef = (-1, -1)
"""Before all views."""


LOSSY, FOLLOWS = "lossy", "follows"
"""Tags of rows `open` that no opened view has: an operator began a generation of the log."""


class Losses:
    """Where operators began generations of the log, from what was left of a lost majority. What
    was committed in terms before, from there on, is gone, and no property is broken by that."""

    def __init__(self, model: Model) -> None:
        self.events: dict[ViewRef, Event] = {}
        """By the term that a generation begins with, the smallest first: the first row of it."""
        for event in model.by_kind.get(Kind.OPEN, ()):
            if event.row.tag == LOSSY:
                self.events.setdefault(opened(event.row), event)
        self.events = dict(sorted(self.events.items()))

    def limit(
        self, since: ViewRef, until: ViewRef | None = None, by: Event | None = None
    ) -> int | None:
        """What counted in the view `since` counts only below this index in `until`, or at last, or
        at the event `by` of a total order; None: all of it does."""
        return min(
            (
                event.row.idx or 0
                for view, event in self.events.items()
                if since < view
                and (until is None or view <= until)
                and (by is None or event.at < by.at)
            ),
            default=None,
        )

    def generation(self, view: ViewRef) -> ViewRef:
        """The term that the generation of a view began with; NO_VIEW if no operator began it."""
        return max((began for began in self.events if began <= view), default=NO_VIEW)


class Piece(NamedTuple):
    """Entries from `first` on, below `end`, which a row tells of."""

    first: int
    end: int
    event: Event

    @property
    def session(self) -> str:
        return self.event.row.obj or ""

    def number(self, index: int) -> int:
        """The number of an entry within its session."""
        row = self.event.row
        return (row.m_seq or 0) + index - (row.idx or 0)

    def clipped(self, first: int, end: int) -> "Piece":
        return Piece(max(self.first, first), min(self.end, end), self.event)


def alike(one: Event, other: Event, index: int) -> bool:
    """Whether two rows give an index to the same entry, in one term and with the same bytes. Where
    their records begin or end elsewhere, the digests tell nothing."""
    a, b = one.row, other.row
    if (a.obj, a.k0, a.k1) != (b.obj, b.k0, b.k1):
        return False
    if (a.m_seq or 0) - (a.idx or 0) != (b.m_seq or 0) - (b.idx or 0):
        return False
    if (a.idx, a.count) != (b.idx, b.count) or a.digest is None or b.digest is None:
        return True
    return a.digest == b.digest


class Table:
    """Pieces by index, without overlaps."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []

    @property
    def end(self) -> int:
        return self.pieces[-1].end if self.pieces else 0

    def cut(self, length: int) -> None:
        """Take away everything from this index on."""
        pieces = self.pieces
        while pieces and pieces[-1].end > length:
            last = pieces.pop()
            if last.first < length:
                pieces.append(last.clipped(0, length))

    def within(self, first: int, end: int) -> Iterator[Piece]:
        """What it has of these indexes."""
        pieces = self.pieces
        for place in range(bisect_right(pieces, first, key=_end), len(pieces)):
            piece = pieces[place]
            if piece.first >= end:
                return
            yield piece.clipped(first, end)

    def at(self, index: int) -> Piece | None:
        return next(self.within(index, index + 1), None)

    def add(self, piece: Piece) -> None:
        """Add what is not there yet of a piece."""
        if piece.first >= self.end:
            self.pieces.append(piece)
            return
        at = piece.first
        missing: list[Piece] = []
        for known in [*self.within(piece.first, piece.end)]:
            if at < known.first:
                missing.append(piece.clipped(at, known.first))
            at = known.end
        if at < piece.end:
            missing.append(piece.clipped(at, piece.end))
        for one in missing:
            self.pieces.insert(bisect_right(self.pieces, one.first, key=_end), one)


def _end(piece: Piece) -> int:
    return piece.end


class NodeLog:
    """One node's log as its rows tell of it, over all its lives."""

    def __init__(self, model: Model, proc: int) -> None:
        self.proc = proc
        self._static = model.static
        self.table = Table()
        self.length: int | None = 0 if model.total else None
        """How many entries it has. None: nobody knows, since the trace of a real node may begin
        with a journal that is not empty."""
        self.whole = True
        """Whether `length` is exact; after a restart the end may be lost."""
        self.restored: int | None = None
        """The next entry may have this index as well: a restored state goes up to there."""
        self.stored: Event | None = None
        """Its last row `stored`, if no cut came below it; kept over restarts."""
        self.committed: Event | None = None
        """Its row `commit` with the greatest length, in all lives."""
        self.committed_era = NO_VIEW
        """By this view it is known on which generation that rests."""
        self.life_committed: Event | None = None
        """The same of this life."""
        self.view = NO_VIEW
        """The regular view that it is in; where nothing is installed, the last one that opened."""
        self.open_view = NO_VIEW
        """The last view that it found open in this life."""
        self.generation = NO_VIEW
        """The term that the newest generation of its log began with, if an operator began it."""
        self.born: Event | None = None
        """The row `recover` that began this life."""
        self.crash: Event | None = None
        self.first_install: Event | None = None
        """The first view of this life."""
        self.settled = False
        """Whether this life has shown what it holds of what it had stored."""
        self.primary = False
        """Whether it has installed a primary view in this life."""

    @property
    def disk_lost(self) -> bool:
        """Whether its disk, or its standing, was lost before this life."""
        lost = self.crash is not None and self.crash.row.tag == "disk-lost"
        return lost or (self.born is not None and self.born.row.level == 0)

    def apply(self, event: Event) -> None:
        row, kind = event.row, event.kind
        index = row.idx or 0
        if kind == Kind.INSTALL:
            self.first_install = self.first_install or event
            if self.first_install is event and row.level == 0:
                self.stored = None  # It says itself that it may have lost something.
            if row.c_kind == REGULAR:
                self.view = row.c_seq or 0, row.c_rep or 0
                self.primary = self.primary or bool(row.primary)
        elif kind == Kind.CRASH:
            self.crash = event
        elif kind == Kind.RECOVER:
            self.born, self.first_install = event, None
            self.settled = self.primary = self.whole = False
            self.life_committed, self.view, self.open_view = None, NO_VIEW, NO_VIEW
            if self.disk_lost:
                self.stored = None
        elif kind == Kind.ENTRY:
            self.table.cut(index)
            self.table.add(Piece(index, index + row.count, event))
            self.length, self.whole, self.restored = index + row.count, True, None
            self.settled = True
        elif kind == Kind.CUT:
            self.table.cut(index)
            self.length, self.whole, self.restored = index, True, None
            self.settled = True
            if self.stored is not None and (self.stored.row.idx or 0) > index:
                self.stored = None
        elif kind == Kind.STORED:
            self.stored, self.settled = event, True
        elif kind == Kind.COMMIT:
            if self.life_committed is None or (self.life_committed.row.idx or 0) < index:
                self.life_committed = event
            if self.committed is None or (self.committed.row.idx or 0) < index:
                self.committed, self.committed_era = event, self.era
        elif kind == Kind.RESTORE:
            if row.digest is None:  # The log itself begins anew there, and not only the state.
                self.table.cut(0 if self.committed is None else self.committed.row.idx or 0)
            if self.length is None or index > self.length:
                self.length, self.whole = index, True
            else:
                self.restored = index
        elif kind == Kind.OPEN and row.tag:
            self._note_generation(row)
        elif kind == Kind.OPEN:
            self.open_view = opened(row)
            if self._static:
                self.view = self.open_view

    @property
    def era(self) -> ViewRef:
        """By this view it is known on which generation what it knows rests."""
        return max(self.generation, self.open_view)

    def _note_generation(self, row: Row) -> None:
        if opened(row) <= self.generation:
            return  # A node tells of it at each start.
        if not self.settled and self.born is not None:
            # It is the operator who says that this log will do, whatever it had stored and known.
            self.stored = self.committed = None
        if row.tag == LOSSY:
            self.generation = opened(row)


_FOLLOWED = LOG_KINDS | {Kind.INSTALL, Kind.CRASH, Kind.RECOVER}


def follow(model: Model) -> Iterator[tuple[Event, NodeLog]]:
    """The events that change a log or its standing, each with the log of its node before it, which
    has taken it in when the next one is asked for."""
    logs = {proc: NodeLog(model, proc) for proc in model.processes}
    events = [event for kind in _FOLLOWED for event in model.by_kind.get(kind, ())]
    events.sort(key=lambda event: event.at)
    for event in events:
        log = logs[event.proc]
        yield event, log
        log.apply(event)


def opened(row: Row) -> ViewRef:
    """The view that a row `open` is about."""
    return row.k0 or 0, row.k1 or 0


class Clash(NamedTuple):
    """Two nodes know different entries to be committed at one index."""

    at: int
    one: Event
    commit: Event
    """The row by which the node of `one` knows it."""
    other: Event
    other_commit: Event


class Committed:
    """All entries that somebody knew to be committed, and where two contradict each other."""

    def __init__(self, losses: Losses) -> None:
        self.table = Table()
        self.sessions: dict[str, Table] = {}
        """The same, session by session; they differ only where two nodes contradict each other."""
        self.knows: dict[int, Event] = {}
        """By the `at` of a row `entry`: the row by which its node knew it to be committed."""
        self.compared = 0
        """Indexes that were compared."""
        self.clash: Clash | None = None
        self._known: dict[int, int] = {}
        self._losses = losses

    def take(self, event: Event, log: NodeLog) -> None:
        """The next event of `follow`."""
        index = event.row.idx or 0
        known = self._known.get(event.proc, 0)
        if event.kind == Kind.COMMIT:
            for piece in log.table.within(known, index):
                self._add(piece, event)
            self._known[event.proc] = max(known, index)
        elif event.kind in (Kind.ENTRY, Kind.CUT):
            self._known[event.proc] = min(known, index)

    def _add(self, piece: Piece, commit: Event) -> None:
        row = piece.event.row
        limit = self._losses.limit((row.k0 or 0, row.k1 or 0))
        if limit is not None:
            if piece.first >= limit:
                return
            piece = piece.clipped(0, limit)
        for known in self.table.within(piece.first, piece.end):
            if known.event is piece.event:
                continue
            self.compared += known.end - known.first
            if self.clash is None and not alike(known.event, piece.event, known.first):
                other = self.knows[known.event.at]
                self.clash = Clash(known.first, known.event, other, piece.event, commit)
        self.knows.setdefault(piece.event.at, commit)
        self.table.add(piece)
        self.sessions.setdefault(piece.session, Table()).add(piece)


def committed(model: Model) -> Committed:
    """What is committed in the whole trace."""
    if not isinstance(model.log, Committed):
        found = Committed(Losses(model))
        for event, log in follow(model):
            found.take(event, log)
        model.log = found
    return model.log


# Words


def entry(model: Model, event: Event, index: int | None = None) -> str:
    """The entry of a row: who appended it, and its number in its session."""
    row = event.row
    number = (row.m_seq or 0) + (0 if index is None else index - (row.idx or 0))
    return entry_name(
        model.words, model.manifest and model.manifest.config.get("entries"), row, number
    )


def entry_name(names: Names, written: object, row: Row, number: int) -> str:
    """As `entry`, of a row; `written` are the names that a trace in the mini-language gave."""
    if isinstance(written, dict) and (name := written.get(f"{row.obj}.{number}")):
        return str(name)
    session = row.obj or ""
    whose = (
        f"session {session}"
        if is_named(session)
        else names.messages((row.m_src or 0, row.m_inc or 0, 0, 1))
    )
    return f"{whose.rpartition(':')[0] or whose}#{number}"


def is_named(session: str) -> bool:
    """Whether a session is one that clients opened by name."""
    try:
        return bool(int(session, 16) & NAMED)
    except ValueError:
        return False


def entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def view_name(model: Model, view: ViewRef) -> str:
    return model.words.view(*view, REGULAR)
