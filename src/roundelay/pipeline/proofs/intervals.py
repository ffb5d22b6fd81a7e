"""Sets of whole numbers, as sorted spans that neither touch nor overlap."""

from collections.abc import Iterable

Span = tuple[int, int]
"""The first and the last number."""
Spans = list[Span]


def merged(spans: Iterable[Span]) -> Spans:
    """Any spans as a set."""
    found: Spans = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def common(one: Spans, other: Spans) -> Spans:
    """What is in both."""
    found: Spans = []
    i = j = 0
    while i < len(one) and j < len(other):
        first, last = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if first <= last:
            found.append((first, last))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return found


def without(one: Spans, other: Spans) -> Spans:
    """What is in the first alone."""
    found: Spans = []
    place = 0
    for first, last in one:
        while place < len(other) and other[place][1] < first:
            place += 1
        at = place
        while at < len(other) and other[at][0] <= last:
            if first < other[at][0]:
                found.append((first, other[at][0] - 1))
            first = other[at][1] + 1
            at += 1
        if first <= last:
            found.append((first, last))
    return found


def size(spans: Spans) -> int:
    return sum(last - first + 1 for first, last in spans)


def below(spans: Spans, end: int) -> Spans:
    """The numbers smaller than `end`."""
    return [(first, min(last, end - 1)) for first, last in spans if first < end]


def above(spans: Spans, start: int) -> Spans:
    """The numbers greater than `start`."""
    return [(max(first, start + 1), last) for first, last in spans if last > start]
