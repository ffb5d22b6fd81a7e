"""Primary views: which descends from which, and who holds one at a time. What M10 is made of.

A primary view is *established* once a majority of its voters installed it; where a trace names no
voters these are its members. Its *parent* is the last primary view that one of its members still
knew when it was formed. A node forgets its views when it restarts and its standing is lost. A
primary view without a parent is a *founding*, which begins a new line; where an operator begins a
generation of the replicated log, its nodes are told to forget what they knew. Within a line, the
way back from every established view must meet all established views before it. A view that fewer
installed may lie beside the line: its members may have been the last to hear of it.

A node *holds* a primary view from its install until it freezes it, installs another, crashes or
ends. No two primary views may be held at one moment, each by a majority of its voters.

What a member knew when a view was formed is told by its `freeze` for that ring, and so is when it
let go of the view before. Of a ring without such rows, as in older traces, the benefit of the doubt
is given: a member knew what it knew when it installed the view, or when the first one did if it
never did itself; and when the first one installed the view, all its members had let go.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from roundelay.check import sentences as say
from roundelay.check.names import Names
from roundelay.core.effects import Kind
from roundelay.trace.schema import REGULAR, Row

Identity = tuple[int, int]
"""A view's (seq, rep)."""

KINDS = frozenset({Kind.INSTALL, Kind.FREEZE, Kind.CRASH, Kind.RECOVER})
"""Kinds of rows that matter here; of `open` only those that `begins_generation`."""

VIEWS_MAX = 4096
"""How many primary views, and how many rings that are being formed, the online checker remembers.
Too few: M10 becomes inconclusive when a node installs an older view; too many: memory."""

RECOVERIES_MAX = 64
"""How many recoveries of one process it remembers, to show them in a witness; the latest."""


class Breach(NamedTuple):
    """How two primary views contradict each other."""

    beside: bool
    """Whether the second descends past the first; else both are held at once."""
    first: "Primary"
    second: "Primary"
    rows: tuple[Row, ...]
    """The fewest rows that show it."""
    parent: Identity | None = None
    """Where the way back from the second passes the first by."""

    def sentence(self, names: Names) -> str:
        first, second = (
            names.view_of(*view.id, REGULAR, view.members) for view in (self.first, self.second)
        )
        if self.beside:
            assert self.parent is not None
            return say.past_a_primary(second, names.view(*self.parent, REGULAR), first)
        return say.two_primaries(first, second)


@dataclass(slots=True, eq=False)
class Primary:
    """A primary view as its installs tell of it."""

    id: Identity
    members: tuple[int, ...]
    voters: tuple[int, ...]
    installs: dict[int, Row] = field(default_factory=dict)
    """By process, its first install."""
    holders: dict[int, Row] = field(default_factory=dict)
    """The installs of those who hold it now."""
    known: dict[int, Row | None] = field(default_factory=dict)
    """By process that installed it: the last primary view that it knew before."""
    parent: Identity | None = None
    origin: Row | None = None
    """The install of the parent by the member who knew it."""
    told: Row | None = None
    """Where that member told of it: its freeze or install; None if it did neither."""

    @property
    def quorum(self) -> int:
        """How many voters are a majority."""
        return len(self.voters) // 2 + 1

    @property
    def established(self) -> bool:
        return len(self.electorate(self.installs)) >= self.quorum

    @property
    def ruling(self) -> bool:
        """Whether a majority holds it now."""
        return len(self.electorate(self.holders)) >= self.quorum

    def electorate(self, installs: dict[int, Row]) -> list[Row]:
        """The installs of voters among these."""
        return [row for proc, row in installs.items() if proc in self.voters]

    def majority(self, installs: dict[int, Row]) -> list[Row]:
        """The first installs of voters that are enough for a majority."""
        return self.electorate(installs)[: self.quorum]

    def bring(self, known: Row | None, told: Row | None) -> bool:
        """A member knew this view when the present one was formed; whether that is news."""
        if known is None or not (self.parent or (-1, -1)) < identity(known) < self.id:
            return False
        self.parent, self.origin, self.told = identity(known), known, told
        return True


def identity(install: Row) -> Identity:
    return install.c_seq or 0, install.c_rep or 0


def is_primary(row: Row) -> bool:
    """Whether a row installs a primary view."""
    return row.kind == Kind.INSTALL and bool(row.primary) and row.c_kind == REGULAR


def begins_generation(row: Row) -> bool:
    """Whether it tells that an operator lets this node begin, or join, a generation of the log."""
    return row.kind == Kind.OPEN and bool(row.tag)


def kept_standing(recover: Row) -> bool:
    """Whether a recovered node still has what its earlier life knew.

    A row that does not say is of an older trace. The simulator's nodes kept their storage; of real
    ones, whose rows have no total order, nobody knows.
    """
    return recover.gseq is not None if recover.level is None else recover.level > 0


class Lineage:
    """Follows the primary views of a run.

    In a trace with a total order rows are given in that order, and `feed` answers with the first
    breach as soon as there is one. In others, rows are given process by process, each in its own
    order; `resolve` comes last, and tells only of descent. With a `limit` it remembers so many
    views at most, and `unsure` says when that was not enough.
    """

    def __init__(self, *, total: bool, limit: int | None = None) -> None:
        self.count = 0
        """Primary views."""
        self.unsure = ""
        self.views: dict[Identity, Primary] = {}
        self._total = total
        self._limit = limit
        self._known: dict[int, Row] = {}
        """By process: its install of the last primary view that it knows."""
        self._held: dict[int, Primary] = {}
        self._frozen: dict[Identity, dict[int, tuple[Row, Row | None]]] = {}
        """By ring being formed and process: its freeze, and the primary view that it knew."""
        self._recoveries: dict[int, list[Row]] = {}
        self._established: list[Identity] = []
        """In order."""
        self._forgotten: Identity | None = None

    def feed(self, row: Row) -> Breach | None:
        """The next row of one of `KINDS`, or one that `begins_generation`."""
        proc = row.proc
        if begins_generation(row):
            known = self._known.get(proc)
            if known is not None and identity(known) < (row.k0 or 0, row.k1 or 0):
                del self._known[proc]
            return None
        self._let_go(proc)
        if row.kind == Kind.FREEZE:
            ring = row.k0 or 0, row.k1 or 0
            self._frozen.setdefault(ring, {})[proc] = row, self._known.get(proc)
        elif row.kind == Kind.RECOVER:
            self._recover(row)
        elif row.kind == Kind.INSTALL and row.c_kind == REGULAR:
            if identity(row) not in self._frozen:
                for member in row.members or ():
                    if member in self._held and self._held[member].id < identity(row):
                        self._let_go(member)
            if row.primary:
                return self._install(row)
        return None

    def frozen(self, ring: Identity) -> bool:
        """Whether anybody tells when it froze its view for this ring."""
        return ring in self._frozen

    def resolve(self) -> Breach | None:
        """What all rows together say of descent."""
        for view in self.views.values():
            frozen = self._frozen.get(view.id, {})
            for proc, known in view.known.items():
                view.bring(*_brought(frozen.get(proc), known, view.installs[proc]))
            for freeze, known in frozen.values():
                view.bring(known, freeze)
            if not frozen:
                for member in set(view.members) - view.installs.keys():
                    for other in self.views.values():
                        view.bring(other.installs.get(member), None)
        self._established = sorted(view.id for view in self.views.values() if view.established)
        return self._first_beside()

    def _let_go(self, proc: int) -> None:
        held = self._held.pop(proc, None)
        if held is not None:
            held.holders.pop(proc, None)

    def _recover(self, row: Row) -> None:
        if not kept_standing(row):
            self._known.pop(row.proc, None)
        recoveries = self._recoveries.setdefault(row.proc, [])
        recoveries.append(row)
        if self._limit is not None:
            del recoveries[:-RECOVERIES_MAX]

    def _install(self, row: Row) -> Breach | None:
        view, proc = self._view(row), row.proc
        frozen = self._frozen.get(view.id, {})
        known = self._known.get(proc)
        news = False
        if self._total:
            if not view.installs:
                for freeze, before in frozen.values():
                    view.bring(before, freeze)
                for member in () if frozen else view.members:
                    view.bring(self._known.get(member), None)
            news = view.bring(*_brought(frozen.get(proc), known, row))
        was_established = view.established
        view.known.setdefault(proc, known)
        view.installs.setdefault(proc, row)
        view.holders[proc] = row
        self._held[proc] = view
        self._known[proc] = row
        self._forget()
        if not self._total:
            return None
        return self._beside(view, news, was_established) or self._at_once(view)

    def _view(self, row: Row) -> Primary:
        id_ = identity(row)
        view = self.views.get(id_)
        if view is None:
            if self._forgotten is not None and id_ <= self._forgotten:
                self.unsure = "a primary view is installed that is older than those remembered"
            members = row.members or ()
            voters = tuple(dict.fromkeys(members if row.voters is None else row.voters))
            view = self.views[id_] = Primary(id_, members, voters)
            self.count += 1
        return view

    def _beside(self, view: Primary, news: bool, was_established: bool) -> Breach | None:
        """Whether established views still are one line."""
        if self.unsure:
            return None
        if not was_established and view.established:
            place = bisect_left(self._established, view.id)
            if not place and self._forgotten is not None:
                self.unsure = "the primary views before one of them are forgotten"
                return None
            insort(self._established, view.id)
            near = self._established[max(place - 1, 0) : place + 2]
            return self._first_beside(near)
        return self._first_beside() if news else None

    def _first_beside(self, ids: list[Identity] | None = None) -> Breach | None:
        """The first of two neighbours that the way back from the second passes by. If there is no
        such pair, every way back meets all views before, or ends at a founding after them."""
        ids = self._established if ids is None else ids
        for one, two in pairwise(ids):
            earlier, later = self.views[one], self.views[two]
            way = list(self._way_back(later, one))
            parent = way[-1].parent
            if parent is not None and parent < one:
                return Breach(True, earlier, later, self._shown(earlier, way), parent)
        return None

    def _way_back(self, view: Primary, end: Identity) -> Iterator[Primary]:
        """A view and its ancestors, while they are later than `end`."""
        yield view
        while view.parent is not None and view.parent > end:
            view = self.views[view.parent]
            yield view

    def _shown(self, earlier: Primary, way: list[Primary]) -> tuple[Row, ...]:
        rows = [*earlier.majority(earlier.installs), *way[0].majority(way[0].installs)]
        for view in way:
            some = next(iter(self._frozen.get(view.id, {}).values()), (None, None))[0]
            rows += [row for row in (view.origin, view.told, some) if row is not None]
            rows += list(view.installs.values())[:1]
        return tuple(self._with_recoveries(rows))

    def _with_recoveries(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows, and which of their processes restarted since: what these still knew."""
        since: dict[int, tuple[int, int]] = {}
        for row in rows:
            since[row.proc] = min((row.inc, row.lseq), since.get(row.proc, (row.inc, row.lseq)))
            yield row
        for proc, place in since.items():
            for row in self._recoveries.get(proc, ()):
                if (row.inc, row.lseq) > place:
                    yield row

    def _at_once(self, view: Primary) -> Breach | None:
        """Whether another primary view is held beside this one, which somebody just installed."""
        if not view.ruling:
            return None
        for other in dict.fromkeys(self._held.values()):
            if other is not view and other.ruling:
                first, second = sorted((view, other), key=lambda view: view.id)
                rows = (*first.majority(first.holders), *second.majority(second.holders))
                return Breach(False, first, second, rows)
        return None

    def _forget(self) -> None:
        """Let the oldest views go that can no longer contradict a later one."""
        if self._limit is None:
            return
        while len(self._frozen) > self._limit:
            ring = min(self._frozen)
            del self._frozen[ring]
            self._forgotten = max(ring, self._forgotten or ring)
        while len(self.views) > self._limit:
            oldest = self.views[min(self.views)]
            if oldest.holders or oldest.id in self._established[-1:]:
                return
            del self.views[oldest.id]
            self._forgotten = max(oldest.id, self._forgotten or oldest.id)
            if self._established and self._established[0] == oldest.id:
                del self._established[0]


def _brought(
    freeze: tuple[Row, Row | None] | None, known: Row | None, install: Row
) -> tuple[Row | None, Row]:
    """What a node that installs a view knew when it was formed, and the row that tells of it."""
    return (known, install) if freeze is None else (freeze[1], freeze[0])
