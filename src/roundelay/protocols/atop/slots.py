"""Slots: an endless list of members, drawn by weight, that every member computes alike.

A distribution gives each member of a view an integer weight. The owner of slot i is drawn with
SplitMix64 from the number of the view, the number of the distribution and i: integers only, so
that the list is the same on every machine and any slot can be computed without those before it.
"""

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

GAMMA = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1

WEIGHT_RATIO_MAX = 4096
"""Largest weight of a distribution, as a multiple of its smallest. The larger it is, the more slots
are walked until a rare owner comes up: about this many for each member of the view."""
WEIGHT_SUM_MAX = 2**32 - 1

Weights = tuple[int, ...]
"""One weight, at least 1, for each member of a view, in the order of the view."""

Owner = Callable[[int], int]
"""The place in the view of the member that owns a slot."""


def mix(z: int) -> int:
    """The output function of SplitMix64: 64 bits in, 64 bits out."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def seed(view: int, distribution: int) -> int:
    """Where the list of a distribution in a view begins."""
    return mix(mix((view + GAMMA) & _MASK) ^ (distribution * GAMMA & _MASK))


def draw(seed: int, slot: int) -> int:
    """64 bits for a slot."""
    return mix((seed + (slot + 1) * GAMMA) & _MASK)


def owner_of_slots(seed: int, weights: Weights) -> Owner:
    """The list of slot owners that begins at `seed`."""
    sums = [*accumulate(weights)]
    total = sums[-1]

    def owner(slot: int) -> int:
        z = (seed + (slot + 1) * GAMMA) & _MASK  # `draw`, without its calls: this is every slot's.
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return bisect_right(sums, (z ^ (z >> 31)) * total >> 64)

    return owner


def owners(view: int, distribution: int, weights: Weights) -> Owner:
    """The list of slot owners of a distribution in a view."""
    return owner_of_slots(seed(view, distribution), weights)


def valid(weights: Weights, members: int) -> bool:
    """Whether these can be the weights of a distribution for so many members."""
    return (
        len(weights) == members
        and min(weights) >= 1
        and max(weights) <= WEIGHT_RATIO_MAX * min(weights)
        and sum(weights) <= WEIGHT_SUM_MAX
    )
