"""What was delivered and waits for the application: bounded, by whoever fills it.

Nothing is lost between two readers: what one of them did not take, the next one gets. So the place
in a batch that is being read message by message is kept here, and not by the reader.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

from roundelay.runtime.errors import ClosedError, ConfigError, FailedError
from roundelay.runtime.events import Arrival, Batch, Event, Message, messages

MESSAGE_BYTES = 48
"""What a message takes in memory beyond its payload, about."""
CHUNK_MESSAGES = 128
"""Given to the application at a time ..."""
CHUNK_BYTES = 16_384
"""... and what these count for, whatever their size: a look at the socket is due then."""


def charge(arrival: Arrival) -> int:
    """What an arrival counts for while it waits."""
    if type(arrival) is Batch:
        return arrival.size + MESSAGE_BYTES * len(arrival.payloads)
    return 0


class Inbox:
    """A queue of arrivals for one reader."""

    def __init__(self) -> None:
        self.waiting: deque[Arrival] = deque()
        self.bytes = 0
        """Of the batches that wait, with what their messages cost beyond their payloads."""
        self.taken = 0
        """Batches and views that were ever taken."""
        self.rest: Iterator[Event] = iter(())
        """Events that come before whatever waits: take them from here, then `refill`."""
        self.opened_bytes = 0
        """Of the messages that `refill` put there last, about."""
        self._batch: Batch | None = None
        """The batch that `rest` is a part of, if there is more of it ..."""
        self._next = 0
        """... from this message on."""
        self._lent = 0
        """Bytes that count although they were taken."""
        self._ignored = False
        self._reader: asyncio.Future[None] | None = None
        self._error: ClosedError | None = None

    def put(self, arrival: Arrival) -> None:
        if not self._ignored:
            self.waiting.append(arrival)
            self.bytes += charge(arrival)
            if self._reader is not None:
                self._wake()

    def _take(self) -> Arrival:
        arrival = self.waiting.popleft()
        self.bytes -= charge(arrival)
        self.taken += 1
        return arrival

    def refill(self) -> bool:
        """Put what comes next into `rest`, which must be empty; False if there is nothing."""
        batch = self._batch
        if batch is None:
            if not self.waiting:
                return False
            arrival = self._take()
            if not isinstance(arrival, Batch):
                self.rest = iter((arrival,))
                return True
            batch, self._next = arrival, 0
        start, payloads = self._next, batch.payloads
        self._next = end = start + CHUNK_MESSAGES
        if end < len(payloads):
            self._batch = batch
            self.opened_bytes = CHUNK_BYTES
        else:
            self._batch = None
            self.opened_bytes = batch.size
        self.rest = messages(batch, start, end)
        return True

    def take(self) -> Arrival | None:
        """The next batch, or what is left of one that was begun, or view; None if there is none."""
        for event in self.rest:
            if isinstance(event, Message):
                self.rest, self._batch = iter(()), None
                return event.batch.after(event.offset)
            return event
        if self._batch is not None:
            batch, self._batch = self._batch, None
            return batch.after(self._next)
        return self._take() if self.waiting else None

    def lend(self, most: int, most_bytes: int) -> list[Arrival]:
        """Take some of what waits, for a reader with a queue of its own: they go on counting until
        it comes for more."""
        self.bytes -= self._lent
        self._lent = 0
        lent: list[Arrival] = []
        while len(lent) < most and self._lent < most_bytes:
            arrival = self.take()
            if arrival is None:
                break
            lent.append(arrival)
            self._lent += charge(arrival)
        self.bytes += self._lent
        return lent

    def ignore(self) -> None:
        """Nobody will read: throw away what is here and what comes."""
        self._ignored = True
        self.waiting.clear()
        self.rest, self._batch = iter(()), None
        self.bytes = self._lent = 0

    def close(self, error: ClosedError) -> None:
        """Nothing more will come: what waits can still be read."""
        self._error = error
        self._wake()

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for something to read."""
        return self._reader is not None and not self._reader.done()

    async def ready(self) -> bool:
        """Wait until there is something to take; False if the group was left, FailedError if its
        node failed. Cancelling it loses nothing."""
        while not self.waiting:
            if self._error is not None:
                if isinstance(self._error, FailedError):
                    raise self._error
                return False
            if self.awaited:
                raise await read_twice()
            self._reader = future = asyncio.get_running_loop().create_future()
            try:
                await future
            finally:
                if self._reader is future:
                    self._reader = None
        return True

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


async def read_twice() -> ConfigError:
    """What to raise when two read at the same time."""
    # Others have a turn first: whoever tries again at once would keep them from ever ending it.
    await asyncio.sleep(0)
    return ConfigError(
        "events of this group are read already, by another task or thread; read in one place only"
    )
