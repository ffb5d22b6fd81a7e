"""Deliveries that wait for the application. `Backlog` bounds them, from outside.

Nothing is lost between two readers: the next one goes on where the last one stopped. For that, the
place in a batch that is read message by message is kept here and not in the reader.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

from roundelay.runtime.errors import ClosedError, ConfigError, FailedError
from roundelay.runtime.events import Arrival, Batch, Event, Message, messages

MESSAGE_BYTES = 48
"""Bytes that a message takes in memory beyond its payload, about. Too small: many small messages
take more memory than `backlog_bytes`; too large: the group waits although there is memory."""
CHUNK_MESSAGES = 128
"""Messages of a large batch that are given to the application between two looks at the socket. Too
small: the looks cost time; too large: the group waits for a slow handler of messages."""
CHUNK_BYTES = 16_384
"""What such a part of a batch counts for in bytes, whatever its size: as many as `POLL_BYTES` of
the reading side, so that a look at the socket is due after each part."""


def charge(arrival: Arrival) -> int:
    """Bytes that an arrival counts for while it waits."""
    if type(arrival) is Batch:
        return arrival.size + MESSAGE_BYTES * len(arrival.payloads)
    return 0


class Inbox:
    """A queue of arrivals for one reader."""

    def __init__(self) -> None:
        self.waiting: deque[Arrival] = deque()
        self.bytes = 0
        """What the arrivals that wait count for, in bytes: see `charge`."""
        self.popped = 0
        """Arrivals that were ever popped, for senders that wait until something is read."""
        self.rest: Iterator[Event] = iter(())
        """Events that come before `waiting`: readers iterate over these, then call `refill`."""
        self.opened_bytes = 0
        """Bytes of the messages that the last `refill` put there, about."""
        self._batch: Batch | None = None
        """The batch that `rest` is a part of, if there is more of it than that part."""
        self._next = 0
        """The first message of that batch that comes after the part."""
        self._lent = 0
        """Bytes that count although their arrivals were popped: see `lend`."""
        self.woken = False
        """Whether a reader that waited got something, since this was last taken back."""
        self._ignored = False
        self._reader: asyncio.Future[None] | None = None
        self._error: ClosedError | None = None

    def put(self, arrival: Arrival) -> None:
        if not self._ignored:
            self.waiting.append(arrival)
            self.bytes += charge(arrival)
            if self._reader is not None:
                self.woken = True
                self._wake()

    def _pop_waiting(self) -> Arrival:
        arrival = self.waiting.popleft()
        self.bytes -= charge(arrival)
        self.popped += 1
        return arrival

    def refill(self) -> bool:
        """Put the next events into `rest`, which must be empty; False if there are none."""
        batch = self._batch
        if batch is None:
            if not self.waiting:
                return False
            arrival = self._pop_waiting()
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

    def pop(self) -> Arrival | None:
        """The next arrival; of a batch that was read in part, the rest. None if there is none."""
        for event in self.rest:
            if isinstance(event, Message):
                self.rest, self._batch = iter(()), None
                return event.batch.after(event.offset)
            return event
        if self._batch is not None:
            batch, self._batch = self._batch, None
            return batch.after(self._next)
        return self._pop_waiting() if self.waiting else None

    def lend(self, most: int, most_bytes: int) -> list[Arrival]:
        """Pop up to `most` arrivals, of about `most_bytes`, for a reader with a queue of its own.
        They go on counting as unread until that reader comes for more."""
        self.bytes -= self._lent
        self._lent = 0
        lent: list[Arrival] = []
        while len(lent) < most and self._lent < most_bytes:
            arrival = self.pop()
            if arrival is None:
                break
            lent.append(arrival)
            self._lent += charge(arrival)
        self.bytes += self._lent
        return lent

    def ignore(self) -> None:
        """Nobody will read: throw away what waits, and whatever is put here later."""
        self._ignored = True
        self.waiting.clear()
        self.rest, self._batch = iter(()), None
        self.bytes = self._lent = 0

    def close(self, error: ClosedError) -> None:
        """Nothing more will come. What waits can still be read."""
        self._error = error
        self._wake()

    @property
    def awaited(self) -> bool:
        """Whether a reader waits for something to read."""
        return self._reader is not None and not self._reader.done()

    async def ready(self) -> bool:
        """Wait until there is something to pop; False if the group was left, FailedError if its
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
    """The error for a second reader at the same time."""
    # A caller that tries again at once would otherwise never let the first reader run.
    await asyncio.sleep(0)
    return ConfigError(
        "events of this group are read already, by another task or thread; read in one place only"
    )
