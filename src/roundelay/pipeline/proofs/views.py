"""Who was in which view, and what it delivered there, as the facts of a run say."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from roundelay.trace.schema import REGULAR

View = tuple[int, ...]
"""c_seq, c_rep, c_kind."""
Key = tuple[int, ...]
"""k0, k1, k2, k3."""
Life = tuple[int, int]
"""proc, inc."""

NOWHERE: View = ()
"""The view of rows that name none, and of a static group."""


class Fact(NamedTuple):
    """A row of facts."""

    fact: str
    proc: int
    inc: int
    first: int
    v: list[int]

    @property
    def life(self) -> Life:
        return self.proc, self.inc


Facts = dict[str, list[Fact]]
"""By name, in the order of the rows of each node."""

Print = tuple[int, int, int]
"""Messages, and a fingerprint in two parts."""


def added(one: Print, messages: int, first: int, second: int) -> Print:
    return one[0] + messages, one[1] ^ first, one[2] ^ second


def regular(view: View) -> bool:
    """Whether a view is regular; that of a static group is."""
    return not view or view[2] == REGULAR


def view_of(values: list[int]) -> View:
    """The view at the beginning of a fact, which has whether there is one."""
    return tuple(values[:3]) if values[3] else NOWHERE


@dataclass(slots=True)
class Stay:
    """What one life of a node delivered in a view, as its rows say."""

    first: int
    """The lseq of the first delivery, and of the last."""
    last: int
    print: Print = (0, 0, 0)
    unkeyed: int = 0
    """Messages without a key."""
    turns: int = 0
    """How often the view of the keys changes."""
    low: Key = ()
    """The first key, without k3."""
    high: Key = ()
    """The last key."""

    @property
    def messages(self) -> int:
        return self.print[0]


@dataclass(slots=True)
class Entered:
    """A view as one life of a node had it."""

    view: View
    regular: View | None
    """The view, or the regular one before it; None if there is none."""
    start: float
    end: float
    """The lseq of the install that began it and of the next one."""
    members: frozenset[int] | None
    """As this node has them; None for everybody."""


@dataclass(slots=True)
class Views:
    """The views of a run. A static group has one that everybody is always in."""

    static: bool
    entered: dict[tuple[int, int, View], Entered] = field(default_factory=dict)
    stays: dict[tuple[int, int, View], Stay] = field(default_factory=dict)
    clear: bool = True
    """Whether nobody enters a view twice in a life, and deliveries name the view they are in."""

    def at(self, life: Life, values: list[int]) -> Entered | None:
        """The view that a fact names, as the node had it."""
        return self.entered.get((*life, NOWHERE if self.static else view_of(values)))

    def within(self, fact: Fact, last: int) -> Entered | None:
        """The view of rows from a fact's first to `last`; None if they are not all in it."""
        entered = self.at(fact.life, fact.v)
        inside = entered is not None and entered.start < fact.first and last < entered.end
        return entered if inside else None

    def stay(self, life: Life, view: View) -> Stay | None:
        return self.stays.get((*life, view))

    def paths(self) -> dict[Life, list[Entered]]:
        """The views of each life, in order."""
        paths: dict[Life, list[Entered]] = defaultdict(list)
        for (proc, inc, _), entered in self.entered.items():
            paths[proc, inc].append(entered)
        return paths

    def members(self) -> dict[View, frozenset[int] | None]:
        """Who is in each view; None for everybody."""
        return {entered.view: entered.members for entered in self.entered.values()}


def read_views(facts: Facts) -> Views:
    """Views from installs and stays."""
    installs = facts["install"]
    views = Views(static=not installs)
    if views.static:
        lives = {fact.life for fact in facts["writer"]}
        for life in sorted(lives):
            everywhere = (float("-inf"), float("inf"))
            views.entered[*life, NOWHERE] = Entered(NOWHERE, NOWHERE, *everywhere, None)
    for path in _paths(installs):
        before: View | None = None
        for fact, next_ in pairwise([*path, None]):
            assert fact is not None
            view = tuple(fact.v[:3])
            before = view if regular(view) else before
            end = float("inf") if next_ is None else next_.first
            views.clear &= (*fact.life, view) not in views.entered
            entered = Entered(view, before, fact.first, end, frozenset(fact.v[3:]))
            views.entered[*fact.life, view] = entered
    _read_stays(views, facts["stay"])
    return views


def _paths(installs: Iterable[Fact]) -> Iterator[list[Fact]]:
    lives: dict[Life, list[Fact]] = defaultdict(list)
    for fact in installs:
        lives[fact.life].append(fact)
    yield from lives.values()


def _read_stays(views: Views, facts: list[Fact]) -> None:
    for fact in facts:
        last, messages, one, two, unkeyed, turns, *keys = fact.v[4:]
        views.clear &= views.within(fact, last) is not None
        life = (*fact.life, NOWHERE if views.static else view_of(fact.v))
        stay = views.stays.setdefault(life, Stay(fact.first, last))
        stay.first, stay.last = min(stay.first, fact.first), max(stay.last, last)
        stay.print = added(stay.print, messages, one, two)
        stay.unkeyed += unkeyed
        low, high = tuple(keys[:3]), tuple(keys[3:])
        stay.turns += turns + (bool(stay.high) and stay.high[:2] != low[:2])
        stay.low = stay.low or low
        stay.high = max(stay.high, high)
