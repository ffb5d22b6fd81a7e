"""Whether several sequences agree with one order of everything in them.

Theory of operation. Draw an arrow from each item of a sequence to the next one. What these arrows
reach is exactly the union of the sequences' own orders, so there is one order that all sequences
follow if and only if the arrows form no circle. Arrows that several sequences share are drawn once;
then items without an arrow to them are taken away, one after the other, and what is left over is
a circle or hangs on one. All of this is linear in the number of items.

Comparing the sequences two by two is not enough. Of `a b`, `b c` and `c a` any two agree.

Only when there is a circle does more work begin, to show a short one. It is told in steps, each of
which is two items of one sequence in their order there: two steps if two sequences contradict each
other directly, else the fewest that can be found in the smallest knot of circles.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

SEARCH_STEPS_MAX = 2_000_000
"""Items that the search for the shortest circle looks at before it is content with the shortest so
far. Too few: a report shows a longer circle than it must; too many: it takes long to appear."""


class Step(NamedTuple):
    """In sequence `line`, the item at index `first` comes before the one at `then`."""

    line: int
    first: int
    then: int


def find_cycle(lines: Sequence[Sequence[Hashable]]) -> list[Step] | None:
    """A shortest contradiction between the sequences, or None if there is one order for all.

    The second item of each step is the first item of the next, and so round. An item that occurs
    again in the same sequence counts only where it occurs first.
    """
    if follow_one(lines):
        return None
    numbered = _Numbered(lines)
    arrows = _arrows(numbered.lines, numbered.count)
    left = _left_over(arrows)
    if not left:
        return None
    knots = _knots(arrows, left)
    circle = _opposed(numbered.only({node for knot in knots for node in knot}))
    if circle is None:
        smallest = min(knots, key=lambda knot: (len(knot), min(knot)))
        circle = _shortest(numbered.only(set(smallest)))
    return [numbered.step(*arc) for arc in circle]


def find_opposed(lines: Sequence[Sequence[Hashable]]) -> list[Step] | None:
    """Two sequences with two items in opposite order, as a circle of two steps."""
    numbered = _Numbered(lines)
    circle = _opposed(numbered.lines)
    return None if circle is None else [numbered.step(*arc) for arc in circle]


def follow_one(lines: Sequence[Sequence[Hashable]]) -> bool:
    """Whether every sequence is a beginning of the longest one, in which case they agree."""
    longest = max(lines, key=len, default=())
    return all(line == longest[: len(line)] for line in lines)


class _Numbered:
    """The sequences with their items as numbers 0, 1, 2 ... and without repetitions."""

    def __init__(self, lines: Sequence[Sequence[Hashable]]) -> None:
        numbers: dict[Hashable, int] = {}
        self.lines: list[list[int]] = []
        self._places: list[dict[int, int]] = []
        """Of each item, its index in the sequence as it was given."""
        for line in lines:
            places: dict[int, int] = {}
            for index, item in enumerate(line):
                places.setdefault(numbers.setdefault(item, len(numbers)), index)
            self.lines.append(list(places))
            self._places.append(places)
        self.count = len(numbers)

    def only(self, nodes: set[int]) -> list[list[int]]:
        """The sequences reduced to some of their items."""
        return [[node for node in line if node in nodes] for line in self.lines]

    def step(self, line: int, first: int, then: int) -> Step:
        places = self._places[line]
        return Step(line, places[first], places[then])


_Arc = tuple[int, int, int]
"""A sequence and two items in their order there, all as numbers."""


def _arrows(lines: list[list[int]], count: int) -> list[list[int]]:
    """To each item, those that follow it immediately somewhere."""
    arrows: list[list[int]] = [[] for _ in range(count)]
    drawn: set[int] = set()
    for line in lines:
        for one, next_ in pairwise(line):
            name = one * count + next_
            if name not in drawn:
                drawn.add(name)
                arrows[one].append(next_)
    return arrows


def _left_over(arrows: list[list[int]]) -> list[int]:
    """What remains when items that no remaining arrow points to are taken away."""
    pointed = [0] * len(arrows)
    for targets in arrows:
        for target in targets:
            pointed[target] += 1
    free = [node for node, count in enumerate(pointed) if not count]
    for node in free:  # Grows while it is walked.
        for target in arrows[node]:
            pointed[target] -= 1
            if not pointed[target]:
                free.append(target)
    return [node for node, count in enumerate(pointed) if count]


def _knots(arrows: list[list[int]], nodes: list[int]) -> list[list[int]]:
    """The strongly connected components that are more than one item, by Tarjan's algorithm."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    knots: list[list[int]] = []
    stack: list[tuple[int, Iterator[int]]] = []

    def enter(node: int) -> None:
        index[node] = low[node] = len(index)
        path.append(node)
        on_path.add(node)
        stack.append((node, iter(arrows[node])))

    for root in nodes:
        if root in index:
            continue
        enter(root)
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if target not in index:
                    enter(target)
                    break
                if target in on_path:
                    low[node] = min(low[node], index[target])
            else:
                stack.pop()
                if stack:
                    parent = stack[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    knot = [path.pop()]
                    while knot[-1] != node:
                        knot.append(path.pop())
                    on_path.difference_update(knot)
                    if len(knot) > 1:
                        knots.append(knot)
    return knots


def _opposed(lines: list[list[int]]) -> list[_Arc] | None:
    """Two sequences that have two items in opposite order."""
    places = [{node: place for place, node in enumerate(line)} for line in lines]
    for one, other in combinations(range(len(lines)), 2):
        where = places[other]
        shared = [node for node in lines[one] if node in where]
        for first, then in pairwise(shared):
            if where[first] > where[then]:
                return [(one, first, then), (other, then, first)]
    return None


def _shortest(lines: list[list[int]]) -> list[_Arc]:
    """A circle of the fewest steps among items that are all on circles."""
    where: dict[int, list[tuple[int, int]]] = {}
    for number, line in enumerate(lines):
        for place, node in enumerate(line):
            where.setdefault(node, []).append((number, place))
    best: list[_Arc] = []
    spent = 0
    for start in where:
        circle, steps = _round(lines, where, start)
        spent += steps
        if not best or len(circle) < len(best):
            best = circle
        if len(best) == 3 or spent > SEARCH_STEPS_MAX:
            break  # Two would have been found before.
    return best


def _round(
    lines: list[list[int]], where: dict[int, list[tuple[int, int]]], start: int
) -> tuple[list[_Arc], int]:
    """A circle of the fewest steps through `start`, and how many items were looked at.

    One step leads to everything behind an item in a sequence that has it. So of each sequence the
    part from the first place reached onwards is done with, and is never looked at again.
    """
    came: dict[int, _Arc] = {}
    done = [len(line) for line in lines]
    queue = [start]
    steps = 0
    for node in queue:  # Grows while it is walked.
        for number, place in where[node]:
            line = lines[number]
            reached = line[place + 1 : done[number]]
            done[number] = min(done[number], place + 1)
            steps += len(reached)
            for target in reached:
                if target not in came:
                    came[target] = (number, node, target)
                    queue.append(target)
            if start in came:
                return _back(came, start), steps
    raise AssertionError("the item is on no circle")


def _back(came: dict[int, _Arc], start: int) -> list[_Arc]:
    """The steps that led from `start` to itself."""
    circle: list[_Arc] = []
    node = start
    while not circle or node != start:
        circle.append(came[node])
        node = came[node][1]
    return circle[::-1]
