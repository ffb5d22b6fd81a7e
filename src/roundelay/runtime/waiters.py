"""Tasks that wait until something has changed.

Whoever gives up, as after a time-out, is forgotten at once: while no view is open nothing changes,
and an application may try again and again.
"""

import asyncio
import math


class Waiters:
    """Tasks that wait for one thing, some of them until a number is reached."""

    def __init__(self) -> None:
        self._futures: dict[asyncio.Future[None], float] = {}

    def __len__(self) -> int:
        return len(self._futures)

    async def wait(self, number: float = 0) -> None:
        """Wait until `wake` is called, with this number or a greater one."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures[future] = number
        try:
            await future
        finally:
            self._futures.pop(future, None)

    def wake(self, number: float = math.inf) -> None:
        for future, wanted in list(self._futures.items()):
            if wanted <= number:
                del self._futures[future]
                if not future.done():
                    future.set_result(None)
