"""Committed entries from memory and from disk, to readers at any pace."""

import asyncio
from collections.abc import Sequence

import pytest

from roundelay.core.ids import ViewId
from roundelay.core.log import Checkpoint, Entries, Head, LogRecord, Mark, Place
from roundelay.group.body import checksum, pack
from roundelay.runtime.errors import ClosedError, ConfigError, FailedError, TruncatedError
from roundelay.runtime.log.entries import Entry, EntryBatch, Lossy
from roundelay.runtime.log.feed import RECORD_BYTES, Feed
from roundelay.runtime.log.reading import BatchReader, EntryReader, LogReader

TERM, LATER = ViewId(4, "a"), ViewId(8, "b")


def entries(index: int, count: int, term: ViewId = TERM) -> Entries:
    body = pack([b"%d" % (index + n) for n in range(count)]) if count else b"a session"
    return Entries(Head(index, term, "a", 1, 9, index, count, 0, checksum(body)), body)


def mark(base: int, term: ViewId = TERM, *, lossy: bool = False) -> Mark:
    return Mark(term, base, ("a",), ("a",), (9,), int(lossy), b"x" * 16, lossy)


class Disk:
    """All that was ever stored, and who asked for it."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.asked: list[int] = []
        self.first = 0

    def history(self, place: Place, index: int) -> "asyncio.Future[Sequence[LogRecord]]":
        self.asked.append(index)
        future: asyncio.Future[Sequence[LogRecord]] = asyncio.get_running_loop().create_future()
        here, found = Place(), []
        for record in self.records:
            here = here.past(record)
            if here > place:
                found.append(record)
        future.set_result(found[:3])
        return future


class Log:
    """A feed with a disk behind it."""

    def __init__(self, *, bytes_max: int = 1 << 20) -> None:
        self.disk = Disk()
        self.feed = Feed(0, 0, 0, (), self.disk.history, bytes_max)

    def store(self, *records: LogRecord, commit: int | None = None) -> None:
        self.disk.records += records
        self.feed.store(records)
        if commit is not None:
            self.feed.commit(commit)

    def read(self, start: int | None = 0) -> EntryReader:
        return EntryReader(LogReader(self.feed, None, start))


async def take(reader: EntryReader, count: int) -> list[bytes]:
    taken = []
    for _ in range(count):
        entry = await anext(reader)
        assert isinstance(entry, Entry)
        assert entry.payload == b"%d" % entry.index
        taken.append(entry.payload)
    return taken


async def nothing(reader: EntryReader) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await anext(reader)


def test_nothing_is_shown_before_it_is_committed():
    async def story() -> None:
        log = Log()
        reader = log.read()
        log.store(mark(0), entries(0, 3), entries(3, 2))
        await nothing(reader)
        log.feed.commit(3)
        assert await take(reader, 3) == [b"0", b"1", b"2"]
        await nothing(reader)
        log.feed.commit(5)
        assert await take(reader, 2) == [b"3", b"4"]
        assert log.disk.asked == []

    asyncio.run(story())


def test_a_reader_begins_in_the_middle_of_a_packet():
    async def story() -> None:
        log = Log()
        log.store(mark(0), entries(0, 5), commit=5)
        assert await take(log.read(3), 2) == [b"3", b"4"]

    asyncio.run(story())


def test_who_is_too_slow_for_the_memory_goes_on_from_disk_and_returns():
    async def story() -> None:
        log = Log(bytes_max=4 * RECORD_BYTES)
        log.store(mark(0), *(entries(n, 1) for n in range(20)), commit=20)
        reader = log.read()
        assert await take(reader, 20) == [b"%d" % n for n in range(20)]
        asked = len(log.disk.asked)
        assert asked
        log.store(entries(20, 2), commit=22)
        assert await take(reader, 2) == [b"20", b"21"]
        assert len(log.disk.asked) == asked

    asyncio.run(story())


def test_memory_is_bounded():
    log = Log(bytes_max=10 * RECORD_BYTES)
    for n in range(100):
        log.store(mark(n, ViewId(4 + n, "a")), entries(n, 1, ViewId(4 + n, "a")))
        assert log.feed._bytes <= 10 * RECORD_BYTES + RECORD_BYTES + 100
        assert len(log.feed._tail) == len(log.feed._starts) <= 12


def test_what_is_cut_off_is_never_shown():
    async def story() -> None:
        log = Log()
        log.store(mark(0), entries(0, 2), entries(2, 3), commit=2)
        reader = log.read()
        assert await take(reader, 2) == [b"0", b"1"]
        log.feed.cut(Place(TERM, 2))
        del log.disk.records[-1]
        log.store(mark(2, LATER), entries(2, 1, LATER), commit=3)
        entry = await anext(reader)
        assert isinstance(entry, Entry)
        assert (entry.index, entry.term) == (2, LATER)

    asyncio.run(story())


def test_a_cut_below_what_is_in_memory_leaves_the_rest_to_the_disk():
    async def story() -> None:
        log = Log(bytes_max=2 * RECORD_BYTES)
        log.store(mark(0), *(entries(n, 1) for n in range(9)))
        log.feed.cut(Place(TERM, 3))
        del log.disk.records[4:]
        log.store(mark(3, LATER), entries(3, 1, LATER), commit=4)
        assert await take(log.read(), 4) == [b"0", b"1", b"2", b"3"]

    asyncio.run(story())


def test_records_that_open_sessions_are_no_entries():
    async def story() -> None:
        log = Log()
        log.store(mark(0), entries(0, 1), entries(1, 0), entries(1, 1), commit=2)
        assert await take(log.read(), 2) == [b"0", b"1"]

    asyncio.run(story())


def test_a_generation_that_an_operator_began_is_told_in_its_place():
    async def story() -> None:
        log = Log()
        log.store(mark(0), entries(0, 2), mark(2, LATER, lossy=True), entries(2, 1, LATER))
        log.feed.commit(3)
        seen = [item async for item in _first(log.read(), 4)]
        assert seen[2] == Lossy(2, 1)
        assert [item.index for item in seen if isinstance(item, Entry)] == [0, 1, 2]

    asyncio.run(story())


def test_it_is_told_from_disk_too():
    async def story() -> None:
        log = Log(bytes_max=RECORD_BYTES)
        log.store(mark(0), entries(0, 2), mark(2, LATER, lossy=True), entries(2, 1, LATER))
        log.store(*(entries(n, 1, LATER) for n in range(3, 9)), commit=9)
        seen = [item async for item in _first(log.read(2), 2)]
        assert seen[0] == Lossy(2, 1)
        assert log.disk.asked

    asyncio.run(story())


async def _first(reader: EntryReader, count: int):
    for _ in range(count):
        yield await anext(reader)


def test_an_index_that_was_removed_is_told_with_the_first_that_is_left():
    async def story() -> None:
        log = Log()
        log.store(mark(0), entries(0, 5), commit=5)
        log.feed.removed(3)
        with pytest.raises(TruncatedError) as told:
            await take(log.read(), 1)
        assert told.value.first == 3

    asyncio.run(story())


def test_a_log_that_begins_anew_goes_on_behind_its_beginning():
    async def story() -> None:
        log = Log()
        log.store(mark(0), entries(0, 5), commit=5)
        slow, fast = log.read(3), log.read(None)
        log.feed.reset(Checkpoint(Place(LATER, 40), 0, 0, ()), mark(30, LATER))
        log.disk.records = [mark(30, LATER)]
        log.store(entries(40, 2, LATER), commit=42)
        with pytest.raises(TruncatedError):
            await take(slow, 1)
        with pytest.raises(TruncatedError):
            await take(fast, 1)
        assert await take(log.read(40), 2) == [b"40", b"41"]

    asyncio.run(story())


def test_reading_ends_when_the_group_is_left_and_raises_when_the_node_failed():
    async def story() -> None:
        log = Log()
        log.store(mark(0), entries(0, 1), commit=1)
        reader = log.read()
        log.feed.close(ClosedError("left"))
        assert [entry async for entry in reader if isinstance(entry, Entry)]
        failed = Log()
        failed.feed.close(FailedError("bug"))
        with pytest.raises(FailedError):
            await anext(failed.read())

    asyncio.run(story())


def test_what_is_stored_again_is_there_once():
    """The journal had no room, and the core asks it again for all since."""

    async def story() -> None:
        log = Log()
        log.store(mark(0), entries(0, 2), entries(2, 3), commit=2)
        log.feed.cut(Place(TERM, 3))
        log.feed.store([mark(2, LATER), entries(2, 1, LATER)])
        reader = log.read()
        assert await take(reader, 1) == [b"0"]
        log.feed.store([entries(2, 3)])
        log.feed.cut(Place(TERM, 2))
        log.feed.store([mark(2, LATER), entries(2, 1, LATER)])
        log.feed.store([entries(3, 1, LATER)])
        log.feed.commit(4)
        assert await take(reader, 3) == [b"1", b"2", b"3"]
        assert [mark.term for mark in log.feed._marks] == [TERM, LATER]
        assert log.disk.asked == []

    asyncio.run(story())


def test_batches_are_the_packets():
    async def story() -> None:
        log = Log()
        log.store(mark(0), entries(0, 3), entries(3, 4), commit=7)
        reader = BatchReader(LogReader(log.feed, None, 1))
        first, second = await anext(reader), await anext(reader)
        assert isinstance(first, EntryBatch)
        assert isinstance(second, EntryBatch)
        assert (first.index, len(first), second.index, len(second)) == (1, 2, 3, 4)
        assert [entry.number for entry in first] == [1, 2]

    asyncio.run(story())


@pytest.mark.parametrize("start", [-1, "last", True, 1.5])
def test_a_place_that_makes_no_sense_is_refused(start):
    with pytest.raises(ConfigError, match="no index"):
        LogReader(Log().feed, None, start)


def test_a_reader_from_now_on_sees_what_is_committed_later():
    async def story() -> None:
        log = Log()
        log.store(mark(0), entries(0, 2), commit=2)
        reader = log.read(None)
        log.store(entries(2, 1), commit=3)
        assert await take(reader, 1) == [b"2"]

    asyncio.run(story())


class Marks:
    """A reader that writes down what it is told, in order."""

    def __init__(self, log: Log, start: int = 0) -> None:
        self.seen: list[object] = []
        self.reader = LogReader(log.feed, None, start)
        self.reader.on_mark = lambda mark: self.seen.append(mark.term.seq)

    def step(self) -> list[object]:
        """Read all that is there."""

        async def read() -> None:
            try:
                async with asyncio.timeout(0.2):
                    while True:
                        arrival = await self.reader.step()
                        if isinstance(arrival, EntryBatch):
                            self.seen.append(arrival.payloads)
            except TimeoutError:
                pass

        asyncio.run(read())
        return self.seen


def test_a_mark_is_told_before_the_entry_behind_it_and_not_earlier():
    """A view that never opened may have left a mark, which other nodes do not have."""
    log = Log()
    log.store(mark(0), entries(0, 1), mark(1, ViewId(5, "a")), commit=1)
    marks = Marks(log)
    assert marks.step() == [4, (b"0",)]
    log.disk.records.pop()
    log.feed.cut(Place(TERM, 1))
    log.store(mark(1, ViewId(6, "a")), entries(1, 1, ViewId(6, "a")), commit=2)
    assert marks.step() == [4, (b"0",), 6, (b"1",)]


@pytest.mark.parametrize("bytes_max", [1 << 20, 1])
def test_terms_without_an_entry_are_told_from_memory_and_from_disk(bytes_max):
    log = Log(bytes_max=bytes_max)
    log.store(mark(0), entries(0, 1), commit=1)
    marks = Marks(log)
    marks.step()
    log.store(mark(1, ViewId(5, "a")))
    log.store(mark(1, ViewId(6, "a")))
    log.store(entries(1, 1, ViewId(6, "a")), commit=2)
    assert marks.step() == [4, (b"0",), 5, 6, (b"1",)]
    assert Marks(log, 1).step() == [5, 6, (b"1",)]
