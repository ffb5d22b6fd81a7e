"""What is wrong with the logs of a run: pure functions.

A log is what one member delivered, in order. Messages are numbered by the order in which they were
submitted.
"""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise

Log = Sequence[int]


def disagree(logs: Sequence[Log]) -> bool:
    """Whether two members deliver two messages in different orders (O5p)."""
    for one, other in combinations([_places(log) for log in logs], 2):
        common = sorted(one.keys() & other.keys(), key=one.__getitem__)
        if any(other[a] > other[b] for a, b in pairwise(common)):
            return True
    return False


def run_in_circles(logs: Sequence[Log]) -> bool:
    """Whether no order of all messages agrees with every log (O5)."""
    before: dict[int, set[int]] = {}
    for log in logs:
        for a, b in pairwise(log):
            before.setdefault(b, set()).add(a)
    try:
        TopologicalSorter(before).prepare()
    except CycleError:
        return True
    return False


def reverse(logs: Sequence[Log], pairs: Iterable[tuple[int, int]]) -> bool:
    """Whether some member delivers the second of a pair before the first. Pairs of one sender (O1),
    or of a message and one that its sender had heard before (receive, then send)."""
    places = [_places(log) for log in logs]
    return any(
        first in place and second in place and place[second] < place[first]
        for first, second in pairs
        for place in places
    )


def _places(log: Log) -> Mapping[int, int]:
    return {message: place for place, message in enumerate(log)}
