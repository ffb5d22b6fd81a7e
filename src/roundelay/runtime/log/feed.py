"""Committed entries on their way to the application: the newest from memory, older ones from disk.

Every record that the core stores passes here on its way to the journal, so that an entry reaches
the application from the packet in memory. Any number of readers read at their own pace: one that is
slow falls out of the memory and goes on from the disk, and the group never waits for it.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence

from roundelay.core.ids import ViewId
from roundelay.core.log import MARKS_KEPT, NO_TERM, Checkpoint, Entries, LogRecord, Mark, Place
from roundelay.runtime.errors import ClosedError, TruncatedError
from roundelay.runtime.waiters import Waiters

TAIL_BYTES = 64 * 1024 * 1024
"""Bytes of the newest records that are kept in memory. Too small: readers that are a moment late
read the disk; too large: memory."""
RECORD_BYTES = 600
"""Bytes that a record takes in memory beyond its body, about. Too small: many small records take
more memory than `TAIL_BYTES`; too large: less is kept than could be."""

_Kept = Entries | Mark
History = Callable[[Place, int], "asyncio.Future[Sequence[LogRecord]]"]
"""Reads records from the journal, the first one behind this place that holds this index, or a later
one; none if there is none yet."""


class Feed:
    """The newest records of a log, and how far they are committed."""

    def __init__(
        self,
        first: int,
        length: int,
        committed: int,
        marks: Sequence[Mark],
        history: History,
        bytes_max: int = TAIL_BYTES,
    ) -> None:
        """The journal holds the entries from `first` up to `length`; `marks` are the newest that
        are known, oldest first."""
        self.first = first
        """Entries below were removed."""
        self.committed = committed
        self._history = history
        self._marks = list(marks)
        self.error: ClosedError | None = None
        self._tail: list[_Kept] = []
        self._starts: list[int] = []
        """The index where each record of the tail begins; of a mark, its base."""
        self._tail_from = length
        """Entries from here on are in the tail, as far as they are stored at all."""
        self._length = length
        """Where the log ends."""
        self._bytes = 0
        self._bytes_max = bytes_max
        self._readers = Waiters()
        """Those who wait until more is committed."""

    @property
    def waiting(self) -> bool:
        """Whether a reader waits for something to be committed."""
        return bool(self._readers)

    # What the core does to its log

    def store(self, records: Sequence[LogRecord]) -> None:
        """The core stores these. It may do so again, if the journal had no room for them: then it
        does the same with all that came behind."""
        for record in records:
            if type(record) is Entries:
                if not record.head.count:
                    continue
                if record.head.index < self._length:
                    self._take_back(record.head.index, record.head.term)
                self._length = record.head.index + record.head.count
                self._starts.append(record.head.index)
                self._bytes += len(record.body) + RECORD_BYTES
            elif type(record) is Mark:
                if self._marks and self._marks[-1].term >= record.term:
                    self._take_back(record.base, record.term)
                    self._marks = [known for known in self._marks if known.term < record.term]
                self._length = record.base
                self._starts.append(record.base)
                self._bytes += RECORD_BYTES
                self._marks.append(record)
                del self._marks[:-MARKS_KEPT]
            else:
                continue
            self._tail.append(record)
        if self._bytes > self._bytes_max:
            self._forget_oldest()

    def _take_back(self, index: int, term: ViewId) -> None:
        """What comes next begins at this index: what is there of it, and behind, goes."""
        while self._tail:
            last = self._tail[-1]
            if isinstance(last, Mark):
                stays = last.base <= index and last.term <= term
            else:
                stays = last.head.index + last.head.count <= index
            if stays:
                break
            self._bytes -= _bytes(last)
            self._tail.pop()
            self._starts.pop()
        if not self._tail:
            self._tail_from = min(self._tail_from, index)

    def _forget_oldest(self) -> None:
        """Make room, for a quarter of what fits at once: to remove one by one would be slow."""
        at, left = 0, self._bytes
        while at < len(self._tail) and left > self._bytes_max * 3 // 4:
            left -= _bytes(self._tail[at])
            at += 1
        self._bytes = left
        # A mark has the index of the entry behind it: keep both, or none.
        while 0 < at < len(self._tail) and self._starts[at] == self._starts[at - 1]:
            self._bytes -= _bytes(self._tail[at])
            at += 1
        end = self._starts[at] if at < len(self._tail) else self._end
        del self._tail[:at], self._starts[:at]
        self._tail_from = end

    @property
    def _end(self) -> int:
        last = self._tail[-1]
        return last.base if isinstance(last, Mark) else last.head.index + last.head.count

    def cut(self, place: Place) -> None:
        """What is behind this place is no more in the log. None of it was committed."""
        self._length = min(self._length, place.length)
        while self._tail:
            last = self._tail[-1]
            if isinstance(last, Mark):
                stays = last.term <= place.term
            else:
                stays = last.head.index + last.head.count <= place.length
                stays = stays and last.head.term <= place.term
            if stays:
                break
            self._bytes -= _bytes(last)
            self._tail.pop()
            self._starts.pop()
        if not self._tail:
            self._tail_from = min(self._tail_from, place.length)
        while self._marks and self._marks[-1].term > place.term:
            self._marks.pop()

    def reset(self, checkpoint: Checkpoint, mark: Mark) -> None:
        """The log begins anew, with these."""
        self.first = self._tail_from = self._length = checkpoint.place.length
        self._tail, self._starts, self._bytes = [], [], 0
        self._marks = [mark]
        self.commit(max(self.committed, self.first))

    def commit(self, length: int) -> None:
        """All entries below `length` are committed."""
        self.committed = length
        self.wake()

    def removed(self, first: int) -> None:
        """Entries below `first` were removed from the journal."""
        self.first = first

    def close(self, error: ClosedError) -> None:
        self.error = error
        self.wake()

    def wake(self) -> None:
        self._readers.wake()

    # What readers ask

    async def changed(self) -> None:
        """Wait until more is committed, or the feed is closed."""
        if self.error is None:
            await self._readers.wait()
        if self.error is not None:
            raise self.error

    def from_disk(self, index: int) -> "asyncio.Future[Sequence[LogRecord]]":
        """Records in the journal from the one that holds `index` on, with the mark before it."""
        marks = self._marks
        at = bisect_right(marks, index, key=_base)
        while at > 1 and marks[at - 2].base == index:
            at -= 1  # A term may have had no entry.
        if at and marks[at - 1].base == index:
            before = marks[at - 2].term if at > 1 else NO_TERM
            return self._history(Place(before, index, marks[at - 1].opened), index)
        # Before the oldest known mark the journal is searched from its beginning.
        return self._history(Place(marks[at - 1].term, index) if at else Place(), index)

    def from_memory(self, index: int) -> Sequence[_Kept] | None:
        """Records in memory from the one that holds `index` on, as far as they are committed, not
        all at once; None if the memory begins later. TruncatedError if that entry is nowhere."""
        if index < self.first:
            raise TruncatedError(index, self.first)
        if index < self._tail_from:
            return None
        starts = self._starts
        at = max(0, bisect_right(starts, index) - 1)
        while at and starts[at - 1] == starts[at]:
            at -= 1  # Marks come before the entry of their index.
        found: list[_Kept] = []
        for record in self._tail[at : at + 64]:
            if isinstance(record, Entries):
                if record.head.index + record.head.count > self.committed:
                    break
            elif record.base > self.committed:
                break
            found.append(record)
        return found


def _base(mark: Mark) -> int:
    return mark.base


def _bytes(record: _Kept) -> int:
    return RECORD_BYTES + (len(record.body) if type(record) is Entries else 0)
