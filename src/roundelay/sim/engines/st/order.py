"""A partial order that grows, and never has a circle."""

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class GrowingOrder(Generic[T]):
    """Keeps its elements in a line that agrees with all that was put so far, as in the algorithm
    of Pearce and Kelly: a pair that goes against the line moves what is between, and nothing
    else."""

    def __init__(self) -> None:
        self._place: dict[T, int] = {}
        self._after: dict[T, set[T]] = {}
        self._before: dict[T, set[T]] = {}

    def add(self, element: T) -> None:
        """An element that may come anywhere."""
        if element not in self._place:
            self._place[element] = len(self._place)
            self._after[element] = set()
            self._before[element] = set()

    def put(self, first: T, second: T) -> None:
        """One element comes before another; AssertionError if it comes after it already."""
        self.add(first)
        self.add(second)
        if second in self._after[first]:
            return
        if self._place[first] >= self._place[second]:
            later = self._reach(second, self._after, self._place[first])
            assert first not in later, f"{second} comes before {first}, and after it"
            earlier = self._reach(first, self._before, -self._place[second])
            line = sorted(earlier, key=self._place.__getitem__)
            line += sorted(later, key=self._place.__getitem__)
            places = sorted(self._place[element] for element in line)
            self._place.update(zip(line, places, strict=True))
        self._after[first].add(second)
        self._before[second].add(first)

    def _reach(self, start: T, edges: dict[T, set[T]], limit: int) -> set[T]:
        """What can be reached from there without going beyond a place; backwards, if the edges go
        back and the limit is negative."""
        sign = 1 if edges is self._after else -1
        found, left = {start}, [start]
        while left:
            for element in edges[left.pop()]:
                if element not in found and sign * self._place[element] <= limit:
                    found.add(element)
                    left.append(element)
        return found
