"""What was delivered and waits for the application: bounded, by whoever fills it."""

import asyncio
from collections import deque

from roundelay.runtime.errors import ClosedError, FailedError
from roundelay.runtime.events import Arrival, Batch


class Inbox:
    """A queue of arrivals for one reader."""

    def __init__(self) -> None:
        self.waiting: deque[Arrival] = deque()
        self.bytes = 0
        """Of the batches that wait."""
        self._ignored = False
        self._reader: asyncio.Future[None] | None = None
        self._error: ClosedError | None = None

    def put(self, arrival: Arrival, size: int = 0) -> None:
        if not self._ignored:
            self.waiting.append(arrival)
            self.bytes += size
            if self._reader is not None:
                self._wake()

    def take(self) -> Arrival:
        """The next one; there must be one."""
        arrival = self.waiting.popleft()
        if type(arrival) is Batch:
            self.bytes -= arrival.size
        return arrival

    def ignore(self) -> None:
        """Nobody will read: throw away what is here and what comes."""
        self._ignored = True
        self.waiting.clear()
        self.bytes = 0

    def close(self, error: ClosedError) -> None:
        """Nothing more will come: what waits can still be read."""
        self._error = error
        self._wake()

    async def ready(self) -> bool:
        """Wait until there is something to take; False if the group was left, FailedError if its
        node failed."""
        while not self.waiting:
            if self._error is not None:
                if isinstance(self._error, FailedError):
                    raise self._error
                return False
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return True

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
