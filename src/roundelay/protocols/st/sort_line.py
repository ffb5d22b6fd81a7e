"""Where the paper puts packets that were lost: pure functions over logs.

A *log* is the order in which a member accepted packets. A *line* is a vector of packet numbers, one
per source. Each member's *sort point* is the first packet of its log that is not below the line;
what is before that is settled, and what was lost goes behind it, or just before it.

These rules are the paper's, and are wrong: `docs/st.md` says where.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from roundelay.protocols.st.messages import Name

Line = tuple[int, ...]
T = TypeVar("T")


def sort_point(log: Sequence[Name], line: Line) -> int:
    """The place in the log of the first packet that is not below the line; the end of the log if
    there is none."""
    return next((i for i, (source, number) in enumerate(log) if number >= line[source]), len(log))


def lowered(log: Sequence[Name], expected: Line, asked: Line) -> Line:
    """Step (2): what a member expects, lowered to the packets of its log from its sort point for
    `asked` on. The sort point itself counts."""
    found = list(expected)
    for source, number in log[sort_point(log, asked) :]:
        found[source] = min(found[source], number)
    return tuple(found)


def least(lines: Iterable[Line]) -> Line:
    """Step (3): the smallest number of each source."""
    return tuple(map(min, zip(*lines, strict=True)))


def losses(got: Mapping[int, Line], sent: Mapping[int, Line]) -> list[tuple[int, int]]:
    """Step (5): pairs of a member and a source whose packets it lacks. `got` says, by member, which
    packet for it is expected next from each source; `sent`, by source, which one for each member
    will be sent next. How many pairs there are is what the paper calls FAIL."""
    members = sorted(got)
    return [(i, j) for i in members for j in members if got[i][j] < sent[j][i]]


def repaired(
    rest: Sequence[T],
    again: Sequence[T],
    fail: int,
    rank: Callable[[T], tuple[int, int]],
) -> list[T]:
    """The log from the sort point on, with the packets that came again: put before it if FAIL is 1,
    else put at its end, and all of it sorted. `rank` gives the place of a packet's source in the
    agreed order of sources, and its number there."""
    if fail <= 1:
        return [*again, *rest]
    return sorted([*rest, *again], key=rank)
