"""Circles are found if and only if there are any, and shown as short as they come."""

import itertools
import random
from collections.abc import Sequence

import pytest

from roundelay.check import acyclicity
from roundelay.check.acyclicity import find_cycle, find_opposed, follow_one

Lines = Sequence[Sequence[str]]


def closure(lines: Lines) -> set[tuple[str, str]]:
    """Which item comes before which, by brute force: everything that follows from anything."""
    before = {(a, b) for line in lines for a, b in itertools.combinations(once(line), 2)}
    items = sorted({item for line in lines for item in line})
    for middle, a, b in itertools.product(items, repeat=3):
        if (a, middle) in before and (middle, b) in before:
            before.add((a, b))
    return before


def once(line: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(line))


def shortest_circle(lines: Lines) -> int:
    """The fewest steps of any circle, by brute force over all walks of that length."""
    steps = {(a, b) for line in lines for a, b in itertools.combinations(once(line), 2)}
    reached = dict.fromkeys(steps, 1)
    for length in itertools.count(2):
        for a, middle in [pair for pair, n in reached.items() if n == length - 1]:
            for other, b in steps:
                if other == middle:
                    reached.setdefault((a, b), length)
        if circles := [n for (a, b), n in reached.items() if a == b]:
            return min(circles)
    raise AssertionError


def conflicts(lines: Lines) -> bool:
    """Whether two sequences have two items in opposite order."""
    orders = [set(itertools.combinations(once(line), 2)) for line in lines]
    return any((b, a) in other for one in orders for a, b in one for other in orders)


def random_lines(rng: random.Random) -> list[list[str]]:
    """A few short sequences; most follow one order but for a slip or two, so that some agree."""
    items = "abcdef"[: rng.randint(2, 6)]
    if rng.random() < 0.2:  # Pairs, of which circles without a conflict are made.
        return [rng.sample(items, 2) for _ in range(4)]
    lines = []
    for _ in range(rng.randint(2, 4)):
        line = sorted(rng.sample(items, rng.randint(0, len(items))))
        if len(line) > 1 and rng.random() < 0.4:
            i = rng.randrange(len(line) - 1)
            line[i], line[i + 1] = line[i + 1], line[i]
        if line and rng.random() < 0.3:
            line.append(line.pop(0))
        if line and rng.random() < 0.1:
            line.append(rng.choice(line))
        lines.append(line)
    return lines


def check_circle(lines: Lines, cycle: list[acyclicity.Step]) -> None:
    for step, next_ in itertools.pairwise([*cycle, cycle[0]]):
        assert step.first < step.then
        assert lines[step.line][step.then] == lines[next_.line][next_.first]
        for place in step[1:]:
            assert lines[step.line].index(lines[step.line][place]) == place


def test_it_agrees_with_brute_force():
    rng = random.Random(20260)
    cyclic = hidden = agreeing = 0
    for _ in range(10_000):
        lines = random_lines(rng)
        before = closure(lines)
        cycle = find_cycle(lines)
        assert (cycle is not None) == any(a == b for a, b in before), lines
        assert (find_opposed(lines) is not None) == conflicts(lines), lines
        if follow_one(lines):
            agreeing += 1
            assert cycle is None, lines
        if cycle is not None:
            cyclic += 1
            hidden += not conflicts(lines)
            check_circle(lines, cycle)
            assert (len(cycle) == 2) == conflicts(lines), lines
    assert cyclic > 1000
    assert hidden > 30, "circles that no pair of sequences shows"
    assert agreeing > 300


def test_circles_are_shortest_within_their_knot():
    rng = random.Random(7)
    seen: set[int] = set()
    while len(seen) < 3:
        lines = ["".join(rng.sample("abcdefg", 3)) for _ in range(5)]
        cycle = find_cycle(lines)
        if cycle is None or conflicts(lines):
            continue
        knot = {lines[step.line][step.first] for step in cycle}
        assert len(cycle) >= shortest_circle(lines)
        if len(knot) == len({item for line in lines for item in line}):
            assert len(cycle) == shortest_circle(lines)
        seen.add(len(cycle))


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_a_ring_of_sequences(size: int):
    items = "abcdefg"[:size]
    lines = [items[i] + items[(i + 1) % size] for i in range(size)]
    cycle = find_cycle(lines)
    assert cycle is not None
    assert len(cycle) == size
    assert sorted(step.line for step in cycle) == list(range(size))


def test_no_two_of_three_contradict_each_other():
    lines = ["ab", "bc", "ca"]
    assert find_opposed(lines) is None
    assert len(find_cycle(lines) or ()) == 3


def test_what_lies_between_is_left_out():
    cycle = find_cycle(["axyb", "bzwa"])
    assert cycle is not None
    check_circle(["axyb", "bzwa"], cycle)
    assert [(step.line, step.first, step.then) for step in cycle] == [(0, 0, 3), (1, 0, 3)]


def test_a_direct_contradiction_is_preferred_to_a_small_knot():
    cycle = find_cycle(["ab", "bc", "ca", "qrstu", "tusrq"])
    assert len(cycle or ()) == 2


def test_repetitions_count_where_they_occur_first():
    assert find_cycle(["aba", "ab"]) is None
    assert find_cycle(["abca"]) is None


def test_nothing_contradicts_itself():
    assert find_cycle([]) is None
    assert find_cycle([[], []]) is None
    assert find_cycle(["a", "a", "b"]) is None


def test_long_sequences_need_no_recursion():
    size = 20_000
    line = list(range(size))
    assert find_cycle([line, line[1:], line[::2]]) is None
    cycle = find_cycle([line, [size - 1, size, 0]])
    assert cycle is not None
    assert len(cycle) == 2


def test_a_long_circle_costs_a_bounded_search(monkeypatch: pytest.MonkeyPatch):
    """With nothing left to spend, the first circle found has to do."""
    monkeypatch.setattr(acyclicity, "SEARCH_STEPS_MAX", 0)
    size = 300
    lines = [[i, (i + 1) % size] for i in range(size)]
    assert len(find_cycle(lines) or ()) == size
