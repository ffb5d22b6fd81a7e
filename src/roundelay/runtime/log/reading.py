"""Readers of a log: iterators over its entries, each with a place of its own.

A reader holds nothing but its place. It may be dropped or cancelled at any moment, and another one
may go on from the index after the last entry that was given.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol, TypeAlias

from roundelay.core.log import NO_TERM, Checkpoint, Entries, LogRecord, Mark
from roundelay.runtime.errors import ClosedError, ConfigError, FailedError
from roundelay.runtime.log.entries import Entry, EntryBatch, LogArrival, LogItem, Lossy
from roundelay.runtime.log.feed import Feed

From: TypeAlias = int | Literal["first"] | None
"""Where to read from: an index, the first entry that is held, or, with None, what comes next."""

WAIT_AGAIN_S = 0.05
"""How long a reader waits before it looks again for a committed entry that is not on this node's
disk yet, in seconds. Too small: it looks in vain; too large: it is late."""


class Looks(Protocol):
    """The reading side of a node, as far as it looks at the socket for the group."""

    def look_due(self, given: int) -> bool: ...

    async def serve_group(self) -> None: ...


class LogReader:
    """One reader of the log: where it is, and what it gives next."""

    def __init__(self, feed: Feed, looks: Looks | None, start: From) -> None:
        """With `looks` the node's socket is looked at now and then, so that the group does not
        wait for an application that is busy with entries."""
        self.feed = feed
        self.next = _start(feed, start)
        """The index of the next entry to be given."""
        self._looks = looks
        self._term = NO_TERM
        """Of the last mark or entry that was looked at: a mark is given once."""
        self.on_mark: Callable[[Mark], None] = lambda mark: None
        """Called with each mark, in its place between the entries, once an entry behind it is
        committed: before that a view that never opened may have left the mark, and others may not
        have it."""
        self._marks: list[Mark] = []
        """Marks that were read, and no entry behind them."""
        self._records: Iterator[LogRecord] = iter(())
        self._given = 0

    async def batch(self) -> LogArrival:
        """The next entries; StopAsyncIteration once the group is left, FailedError if its node
        failed, TruncatedError if these entries were removed."""
        while True:
            try:
                arrival = await self.step()
            except FailedError:
                raise
            except ClosedError:
                raise StopAsyncIteration from None
            if arrival is not None:
                return arrival

    async def take(self, most: int) -> list[LogArrival]:
        """What is there, at least one and up to `most` batches; raises as `batch` does."""
        taken = [await self.batch()]
        while len(taken) < most and (arrival := self._pop()) is not None:
            taken.append(arrival)
        return taken

    async def step(self) -> LogArrival | None:
        """The next entries, or None after waiting until something has changed."""
        looks = self._looks
        if looks is not None and self._given and looks.look_due(self._given):
            await looks.serve_group()
        self._given = 0
        arrival = self._pop()
        if arrival is None and not await self._refill():
            return None
        return arrival or self._pop()

    def pop_now(self, most: int) -> LogArrival | None:
        """The next entries, if no more than so many are committed and not given yet, and they are
        in memory."""
        feed = self.feed
        if not 0 < feed.committed - self.next <= most:
            return None
        arrival = self._pop()
        if arrival is None and (found := feed.from_memory(self.next)):
            self._marks.clear()  # As in `_refill`.
            self._records = iter(found)
            arrival = self._pop()
        return arrival

    def _pop(self) -> LogArrival | None:
        for record in self._records:
            if type(record) is Entries:
                head = record.head
                skip = self.next - head.index
                if skip >= head.count:
                    self._marks.clear()  # They, too, were there before.
                    self._term = max(self._term, head.term)
                    continue
                if skip < 0:
                    break  # Entries are missing between: they are read again.
                self._tell_marks()
                self._term = max(self._term, head.term)
                batch = EntryBatch(record, skip)
                self.next = head.index + head.count
                self._given = len(record.body)
                return batch
            if type(record) is Mark and record.term > self._term:
                self._marks.append(record)
                if record.lossy and record.base >= self.next:
                    self._tell_marks()
                    return Lossy(record.base, record.generation)
        return None

    def _tell_marks(self) -> None:
        for mark in self._marks:
            self._term = mark.term
            self.on_mark(mark)
        self._marks.clear()

    async def _refill(self) -> bool:
        """Find more records; or wait until something has changed, and say False."""
        feed = self.feed
        self._marks.clear()  # They are read again, with the entry behind them.
        if self.next >= feed.committed:
            await feed.changed()
            return False
        found: Sequence[LogRecord] | None = feed.from_memory(self.next)
        if found is None:
            found = _committed(await feed.from_disk(self.next), feed.committed)
        if _helps(found, self.next):
            self._records = iter(found)
            return True
        # It is committed by others, and not on this node's disk yet.
        try:
            async with asyncio.timeout(WAIT_AGAIN_S):
                await feed.changed()
        except TimeoutError:
            pass
        return False


def _start(feed: Feed, start: From) -> int:
    if start is None:
        return feed.committed
    if start == "first":
        return feed.first
    if isinstance(start, bool) or not isinstance(start, int) or start < 0:
        raise ConfigError(f"from_index={start!r} is no index; use 0 or more, 'first' or None")
    return start


def _committed(records: Sequence[LogRecord], committed: int) -> list[LogRecord]:
    """The records that may be shown."""
    shown: list[LogRecord] = []
    for record in records:
        if type(record) is Entries and record.head.index + record.head.count > committed:
            break
        if type(record) is Mark and record.base > committed:
            break
        if type(record) is not Checkpoint:
            shown.append(record)
    return shown


def _helps(records: Sequence[LogRecord], index: int) -> bool:
    """Whether there is an entry of that index, or a later one, among them."""
    for record in reversed(records):
        if type(record) is Entries and record.head.count:
            return record.head.index + record.head.count > index
    return False


class EntryReader:
    """Entries one by one: what `async for entry in group.log.read()` runs through."""

    __slots__ = ("_reader", "_rest")

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._rest: Iterator[Entry] = iter(())

    def __aiter__(self) -> "EntryReader":
        return self

    async def __anext__(self) -> LogItem:
        for entry in self._rest:
            return entry
        arrival = await self._reader.batch()
        if type(arrival) is not EntryBatch:
            assert isinstance(arrival, Lossy)
            return arrival
        self._rest = iter(arrival)
        return next(self._rest)


class BatchReader:
    """Entries as they travelled: what `group.log.batches()` gives."""

    __slots__ = ("_reader",)

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader

    def __aiter__(self) -> "BatchReader":
        return self

    async def __anext__(self) -> LogArrival:
        return await self._reader.batch()
