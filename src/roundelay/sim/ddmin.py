"""Delta debugging: finds few of many items with which a run still fails."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def ddmin(
    items: Sequence[T], still_fails: Callable[[list[T]], Sequence[T] | None], tries: int = 1000
) -> list[T]:
    """Remove ranges of items, of ever smaller length, as long as the run still fails.

    `still_fails(rest)` returns None if the run does not fail with the rest. Else it returns the
    items that there are now: removing some may have removed others. Ranges are tried from the end
    to the beginning, since later commands of a scenario matter less to earlier ones than the other
    way round. `still_fails` is called at most `tries` times.
    """
    left = list(items)
    size = len(left)
    while size and tries > 0:
        removed = False
        high = len(left)
        while high > 0 and tries > 0:
            low = max(0, high - size)
            tries -= 1
            now = still_fails(left[:low] + left[high:])
            if now is not None:
                left, removed = list(now), True
            high = min(low, len(left))
        # Once some items are gone, single items that were needed before may not be.
        size = size // 2 if size > 1 else int(removed)
    return left
