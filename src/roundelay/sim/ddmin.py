"""Delta debugging: which of many things are needed for something to happen still."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def ddmin(
    items: Sequence[T], still: Callable[[list[T]], Sequence[T] | None], tries: int = 1000
) -> list[T]:
    """The items that are left when, of ever smaller runs of them, all that can be spared are.

    `still(rest)` says whether the rest is enough: None if not, else what is there now, since a
    part may have gone along with what was taken. From the end to the beginning, because in
    a story it is what comes later that disturbs less. At most `tries` questions are asked.
    """
    left = list(items)
    size = len(left)
    while size and tries > 0:
        spared = False
        high = len(left)
        while high > 0 and tries > 0:
            low = max(0, high - size)
            tries -= 1
            now = still(left[:low] + left[high:])
            if now is not None:
                left, spared = list(now), True
            high = min(low, len(left))
        # Single items may have become superfluous by the loss of others.
        size = size // 2 if size > 1 else int(spared)
    return left
