"""The runs of an audit of FC: who fails, and which copies of decisions are lost or late.

Members decide in turn, in rounds. In the first round some fail: at its turn such a member crashes,
or it decides and then crashes, and its decision reaches any of those that are there. Before that it
may miss any decision. Everything else arrives. What differs is the assumption:

    A1   members that follow one another fail, and a decision of theirs never reaches the next
    A2   the same, but it may
    W1   A1, and one copy of a decision is lost between two members that do not fail
    W2   members that follow one another are slow: nobody crashes, but copies come late
    W3   members fail that do not follow one another
    W4   A1, with two such groups at once

A1 and A2 are what the paper assumes. The others are beyond it.
"""

from collections.abc import Iterator, Sequence
from math import prod

from roundelay.core.value import value

ASSUMPTIONS = {
    "A1": "successive members crash; the next never hears them",
    "A2": "the same, but the next may hear them",
    "W1": "A1, and one loss between members that do not fail",
    "W2": "successive members are late, and nobody crashes",
    "W3": "members that do not follow one another crash",
    "W4": "A1 with two groups at once",
}
Copy = tuple[int, int]
"""A copy of a decision: its maker, and whom it is for. Members are numbered by their place, from
0."""


@value
class Case:
    """One run. Whatever is not named here happens as it should."""

    size: int
    failing: tuple[int, ...]
    silent: tuple[int, ...] = ()
    """Those who fail before they decide."""
    lost: frozenset[Copy] = frozenset()
    late: frozenset[Copy] = frozenset()
    crash: bool = True
    """Whether those who fail crash."""


@value
class _Piece:
    """One of the possibilities at one place of a run."""

    silent: tuple[int, ...] = ()
    lost: tuple[Copy, ...] = ()
    late: tuple[Copy, ...] = ()


class Cases(Sequence[Case]):
    """All cases of one assumption for one failing group. Each is made when it is asked for."""

    def __init__(self, assumption: str, size: int, failing: tuple[int, ...]) -> None:
        self._size = size
        self._failing = failing
        self._crash = assumption != "W2"
        self._choices = list(_choices(assumption, size, failing))

    def __len__(self) -> int:
        return prod(map(len, self._choices))

    def __getitem__(self, index: int) -> Case:  # type: ignore[override]  # No slices.
        if not 0 <= index < len(self):
            raise IndexError(index)
        pieces: list[_Piece] = []
        for choice in reversed(self._choices):
            index, place = divmod(index, len(choice))
            pieces.append(choice[place])
        return Case(
            self._size,
            self._failing,
            tuple(sorted(member for piece in pieces for member in piece.silent)),
            frozenset(copy for piece in pieces for copy in piece.lost),
            frozenset(copy for piece in pieces for copy in piece.late),
            self._crash,
        )


def groups(assumption: str, size: int, k: int) -> list[tuple[int, ...]]:
    """Who fails: each of these groups in turn. A majority never does."""
    most = (size - 1) // 2
    if not k:
        found: list[tuple[int, ...]] = []
    elif assumption == "W3":
        found = [(0, 2)] if k == 1 else [(0, 2), (1, 3)]
    elif assumption == "W4":
        found = [(0, 1, 3)]
    else:
        starts = 2 if assumption in ("W1", "W2") else 3
        found = [tuple(range(s, s + count)) for count in range(1, k + 1) for s in range(starts)]
    return [group for group in found if len(group) <= most and group[-1] < size]


def spaces(assumption: str, size: int, k: int) -> list[Cases]:
    """All cases of an assumption, by failing group."""
    return [Cases(assumption, size, group) for group in groups(assumption, size, k)]


def _choices(assumption: str, size: int, failing: tuple[int, ...]) -> Iterator[list[_Piece]]:
    """What may happen at each place, independently of all others."""
    slow = assumption == "W2"
    gone: list[int] = []
    for member in range(size):
        if member in failing:
            others = [m for m in range(size) if m != member and m not in gone]
            if slow:
                yield from ([_Piece(), _Piece(late=((member, m),))] for m in others)
                continue
            yield _failure(member, others, never=assumption in ("A1", "W1", "W4"), size=size)
            gone.append(member)
        else:
            ahead = [m for m in failing if m > member]
            yield from ([_Piece(), _Piece(lost=((member, m),))] for m in ahead)
    if assumption == "W1":
        yield [_Piece(), *(_Piece(lost=(copy,)) for copy in _other_copies(size, failing))]


def _failure(member: int, others: list[int], *, never: bool, size: int) -> list[_Piece]:
    """A member fails: before it decides, or after, and any of the others then lack the decision."""
    after = (member + 1) % size
    spared = [m for m in others if m != after] if never else others
    always = ((member, after),) if never else ()
    pieces = [_Piece(silent=(member,))]
    for bits in range(2 ** len(spared)):
        lost = tuple((member, m) for i, m in enumerate(spared) if bits >> i & 1)
        pieces.append(_Piece(lost=(*always, *lost)))
    return pieces


def _other_copies(size: int, failing: tuple[int, ...]) -> Iterator[Copy]:
    """Copies between members that do not fail, except to the one whose turn is next."""
    for maker in range(size):
        if maker in failing:
            continue
        later = [*range(maker + 1, size), *(m for m in range(maker) if m not in failing)]
        for member in range(size):
            if member not in failing and member != maker and member != later[0]:
                yield maker, member
