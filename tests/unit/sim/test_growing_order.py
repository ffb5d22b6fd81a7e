"""A growing order agrees with all that was put, and refuses what would close a circle."""

from random import Random

import pytest

from roundelay.sim.engines.st.order import GrowingOrder


def reaches(edges: set[tuple[int, int]], start: int, end: int) -> bool:
    found, left = {start}, [start]
    while left:
        one = left.pop()
        for first, second in edges:
            if first == one and second not in found:
                found.add(second)
                left.append(second)
    return end in found


@pytest.mark.parametrize("seed", range(40))
def test_a_pair_is_refused_if_and_only_if_it_closes_a_circle(seed):
    random = Random(seed)
    order: GrowingOrder[int] = GrowingOrder()
    edges: set[tuple[int, int]] = set()
    for _ in range(60):
        first, second = random.sample(range(12), 2)
        if reaches(edges, second, first):
            with pytest.raises(AssertionError, match=f"{second} comes before {first}, and after"):
                order.put(first, second)
        else:
            order.put(first, second)
            edges.add((first, second))


def test_a_pair_may_be_put_again():
    order: GrowingOrder[str] = GrowingOrder()
    order.put("x", "y")
    order.put("y", "z")
    order.put("x", "y")
    with pytest.raises(AssertionError, match="x comes before z, and after it"):
        order.put("z", "x")
