"""The writer thread: group commit, a full disk, a failing one."""

import asyncio
import threading
from collections.abc import Sequence

import pytest
from tests.patience import LIMIT_S

from roundelay.core.effects import Cut, Store, StoreSnapshot
from roundelay.core.ids import ViewId
from roundelay.core.log import Checkpoint, Entries, Head, LogRecord, Mark, Place
from roundelay.group.body import checksum, pack
from roundelay.journal.policy import parse_policy
from roundelay.runtime.log import writer
from roundelay.runtime.log.syncer import Syncer
from roundelay.runtime.log.writer import DiskFullError, Report, Writer

TERM = ViewId(4, "a")


def entry(index: int) -> Entries:
    body = pack([b"%d" % index])
    return Entries(Head(index, TERM, "a", 1, 9, index, 1, 0, checksum(body)), body)


class Disk:
    """A journal in memory, whose calls wait until they are allowed."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.stored: list[int] = []
        self.synced: list[int] = []
        self.room = 1_000_000
        self.sync_error: Exception | None = None
        self.gate = threading.Semaphore(0)
        """Passed once by each sync, while it is not open."""
        self.open = True
        self.in_sync = threading.Event()
        self.noted = 0
        self.quick = False
        """Whether the event loop may write."""
        self.write_error: Exception | None = None
        self.threads: set[threading.Thread] = set()
        """Those that wrote."""
        self.trimmed: int | None = None

    def write(self, records: Sequence[LogRecord], committed: int) -> int:
        self.threads.add(threading.current_thread())
        if self.write_error is not None:
            raise self.write_error
        if len(records) > self.room:
            raise DiskFullError("full")
        self.room -= len(records)
        indexes = [record.head.index for record in records if isinstance(record, Entries)]
        self.calls.append(("write", indexes))
        self.stored += indexes
        self.noted = min(committed, len(self.stored) - len(indexes))
        return self.noted

    def has_room(self, size: int) -> bool:
        return self.quick

    def cut(self, place: Place) -> None:
        self.calls.append(("cut", place.length))
        self.stored = [index for index in self.stored if index < place.length]

    def reset(self, checkpoint: Checkpoint, mark: Mark) -> None:
        self.calls.append("reset")

    def write_snapshot(self, index: int, offset: int, data: bytes, *, last: bool) -> bool:
        return not last

    def sync(self) -> None:
        self.calls.append("sync")
        self.in_sync.set()
        if not self.open:
            assert self.gate.acquire(timeout=LIMIT_S)
        if self.sync_error is not None:
            raise self.sync_error
        self.synced = list(self.stored)

    def note(self, committed: int) -> int:
        self.noted = min(committed, len(self.stored))
        return self.noted

    def trim(self) -> int | None:
        trimmed, self.trimmed = self.trimmed, None
        return trimmed

    def close(self) -> None:
        self.calls.append("close")


class Harness:
    """A writer, and what it reports."""

    def __init__(self, fsync: str = "always") -> None:
        self.disk = Disk()
        self.reports: list[Report] = []
        self._told = asyncio.Event()
        self.writer = Writer(
            asyncio.get_running_loop(), self.disk, parse_policy(fsync), self._on_report, "test"
        )

    def _on_report(self) -> None:
        self.reports.append(self.writer.take())
        self._told.set()

    def store(self, *indexes: int) -> int:
        number = self.writer.issued + 1
        self.writer.put(Store(number, tuple(map(entry, indexes))))
        return number

    @property
    def stored(self) -> int:
        return max((report.stored for report in self.reports), default=0)

    def take_due(self) -> None:
        """As whoever puts does, after all effects of an input."""
        if self.writer.due:
            self._on_report()

    async def until_stored(self, number: int) -> None:
        async with asyncio.timeout(LIMIT_S):
            self.take_due()
            while self.stored < number:
                self._told.clear()
                await self._told.wait()

    async def until(self, found) -> Report:
        async with asyncio.timeout(LIMIT_S):
            self.take_due()
            while True:
                for report in self.reports:
                    if found(report):
                        return report
                self._told.clear()
                await self._told.wait()

    def end(self) -> None:
        self.disk.open = True
        for _ in range(10):
            self.disk.gate.release()
        self.writer.stop()
        assert self.writer.join(LIMIT_S)


def test_what_gathers_while_the_disk_syncs_is_written_and_synced_at_once():
    async def story() -> None:
        harness = Harness()
        disk = harness.disk
        disk.open = False
        harness.store(0)
        await asyncio.to_thread(disk.in_sync.wait, LIMIT_S)
        for index in range(1, 50):
            last = harness.store(index)
        assert harness.stored == 0
        assert harness.writer.waiting_bytes > 0
        disk.open = True
        disk.gate.release()
        await harness.until_stored(last)
        assert disk.calls == [
            ("write", [0]),
            "sync",
            ("write", list(range(1, 50))),
            "sync",
        ]
        assert harness.writer.waiting_bytes == 0
        harness.end()

    asyncio.run(story())


def test_always_reports_nothing_before_it_is_synced():
    async def story() -> None:
        harness = Harness()
        harness.disk.open = False
        number = harness.store(0)
        await asyncio.to_thread(harness.disk.in_sync.wait, LIMIT_S)
        await asyncio.sleep(0)
        assert harness.stored == 0
        harness.disk.gate.release()
        await harness.until_stored(number)
        assert harness.disk.synced == [0]
        harness.end()

    asyncio.run(story())


def test_interval_reports_what_is_written_and_syncs_soon():
    async def story() -> None:
        harness = Harness("interval:10ms")
        harness.disk.open = False
        number = harness.store(0)
        await harness.until_stored(number)
        assert await asyncio.to_thread(harness.disk.in_sync.wait, LIMIT_S)
        harness.end()
        assert harness.disk.synced == [0]

    asyncio.run(story())


def test_with_interval_a_sync_does_not_hold_up_writes():
    async def story() -> None:
        harness = Harness("interval:1ms")
        disk = harness.disk
        disk.open = False
        harness.store(0)
        assert await asyncio.to_thread(disk.in_sync.wait, LIMIT_S)
        for index in range(1, 20):
            await harness.until_stored(harness.store(index))
        assert disk.calls.count("sync") == 1
        assert disk.synced == []
        disk.in_sync.clear()
        disk.gate.release()
        assert await asyncio.to_thread(disk.in_sync.wait, LIMIT_S), "the rest is synced too"
        harness.end()
        assert disk.synced == list(range(20))
        assert harness.writer.take().sync_s

    asyncio.run(story())


def test_with_interval_only_so_much_is_written_during_a_sync(monkeypatch):
    waits = threading.Event()
    wait = Syncer.wait

    def noted(syncer: Syncer) -> None:
        waits.set()
        wait(syncer)

    monkeypatch.setattr(writer, "BEHIND_BYTES", 500)
    monkeypatch.setattr(Syncer, "wait", noted)

    async def story() -> None:
        harness = Harness("interval:1ms")
        disk = harness.disk
        disk.open = False
        harness.store(0)
        assert await asyncio.to_thread(disk.in_sync.wait, LIMIT_S)
        await harness.until_stored(harness.store(1))
        assert not waits.is_set()
        last = harness.store(*range(2, 20))
        assert await asyncio.to_thread(waits.wait, LIMIT_S)
        assert harness.stored < last
        disk.gate.release()
        await harness.until_stored(last)
        harness.end()

    asyncio.run(story())


@pytest.mark.parametrize("fsync", ["interval:1ms", "off"])
def test_the_loop_writes_small_batches_itself_while_nothing_else_is_to_be_done(fsync):
    async def story() -> None:
        harness = Harness(fsync)
        disk = harness.disk
        disk.quick = True
        for index in range(50):
            await harness.until_stored(harness.store(index))
        assert threading.current_thread() in disk.threads
        assert disk.stored == list(range(50))
        assert harness.writer.waiting_bytes == 0
        if fsync != "off":
            async with asyncio.timeout(LIMIT_S):
                while disk.synced != disk.stored:
                    await asyncio.to_thread(disk.in_sync.wait, LIMIT_S)
        harness.end()

    asyncio.run(story())


def test_of_what_the_loop_writes_the_first_of_a_turn_is_told_at_once_and_the_rest_together():
    async def story() -> None:
        harness = Harness("off")
        harness.disk.quick = True
        for first in (0, 3):
            harness.reports.clear()
            harness.store(first)
            assert harness.writer.due
            harness.take_due()
            assert [report.stored for report in harness.reports] == [first + 1]
            harness.store(first + 1)
            harness.store(first + 2)
            assert not harness.writer.due
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert [report.stored for report in harness.reports] == [first + 1, first + 3]
        harness.end()

    asyncio.run(story())


@pytest.mark.parametrize("why", ["always", "room", "large", "before", "sync", "slow", "stopped"])
def test_the_loop_leaves_to_the_thread_what_may_take_time(why, monkeypatch):
    async def story() -> None:
        harness = Harness("always" if why == "always" else "interval:1ms")
        disk = harness.disk
        disk.quick = why != "room"
        if why == "slow":
            monkeypatch.setattr(writer, "SLOW_S", -1.0)
        if why in ("sync", "slow"):
            disk.open = False
            await harness.until_stored(harness.store(0))
            assert await asyncio.to_thread(disk.in_sync.wait, LIMIT_S)
        if why == "slow":
            disk.open = True
            disk.gate.release()
        if why == "before":
            disk.quick = False
            harness.store(0)
        if why == "large":
            monkeypatch.setattr(writer, "HERE_BYTES", 60)
        if why == "stopped":
            harness.end()
        disk.quick = why != "room"
        disk.threads.clear()
        number = harness.store(1)
        assert threading.current_thread() not in disk.threads
        if why == "stopped":
            assert disk.stored == []
            return
        await harness.until_stored(number)
        assert disk.stored[-1] == 1
        assert threading.current_thread() not in disk.threads
        harness.end()

    asyncio.run(story())


def test_a_disk_that_is_full_or_fails_when_the_loop_writes():
    async def story() -> None:
        harness = Harness("interval:1ms")
        disk = harness.disk
        disk.quick, disk.room = True, 0
        refused = harness.store(0)
        dropped = harness.store(1)
        report = await harness.until(lambda report: report.unstored)
        assert report.unstored == refused
        disk.room = 10
        await harness.until_stored(harness.store(0))
        assert disk.stored == [0]
        assert dropped
        disk.write_error = OSError(5, "Input/output error")
        lost = harness.store(1)
        report = await harness.until(lambda report: report.error)
        assert report.error is disk.write_error
        assert harness.stored < lost
        assert harness.writer.join(LIMIT_S)
        disk.write_error = None
        harness.store(2)
        assert disk.stored == [0]

    asyncio.run(story())


def test_off_never_syncs():
    async def story() -> None:
        harness = Harness("off")
        await harness.until_stored(harness.store(0))
        harness.end()
        assert "sync" not in harness.disk.calls

    asyncio.run(story())


def test_jobs_are_done_in_their_order():
    async def story() -> None:
        harness = Harness()
        harness.store(0, 1, 2)
        harness.writer.put(Cut(2, Place(TERM, 1)))
        last = harness.store(1)
        await harness.until_stored(last)
        assert harness.disk.synced == [0, 1]
        kinds = [call[0] for call in harness.disk.calls if isinstance(call, tuple)]
        assert kinds == ["write", "cut", "write"]
        harness.end()

    asyncio.run(story())


def test_on_a_full_disk_everything_is_dropped_until_the_loop_has_heard_of_it():
    async def story() -> None:
        harness = Harness()
        disk = harness.disk
        disk.room = 1
        await harness.until_stored(harness.store(0))
        refused = harness.store(1, 2)
        for index in range(3, 9):
            last = harness.store(index)
        report = await harness.until(lambda report: report.unstored)
        assert report.unstored == refused
        assert harness.stored < refused
        disk.room = 100
        # Whatever was put before the report was taken is gone; what comes now is stored.
        assert harness.writer.issued == last
        again = harness.store(1)
        await harness.until_stored(again)
        assert disk.synced == [0, 1]
        assert harness.writer.waiting_bytes == 0
        harness.end()

    asyncio.run(story())


def test_a_damaged_snapshot_counts_as_not_stored():
    async def story() -> None:
        harness = Harness()
        harness.writer.put(StoreSnapshot(1, 7, 0, b"abc", False))
        await harness.until_stored(1)
        harness.writer.put(StoreSnapshot(2, 7, 3, b"def", True))
        report = await harness.until(lambda report: report.unstored)
        assert report.unstored == 2
        harness.end()

    asyncio.run(story())


@pytest.mark.parametrize("fsync", ["always", "interval:1ms"])
def test_a_failed_sync_ends_the_writer_and_is_not_repeated(fsync):
    async def story() -> None:
        harness = Harness(fsync)
        harness.disk.sync_error = OSError(5, "Input/output error")
        harness.store(0)
        report = await harness.until(lambda report: report.error)
        assert isinstance(report.error, OSError)
        if fsync == "always":
            assert harness.stored == 0
        assert harness.writer.join(LIMIT_S)
        assert harness.disk.calls.count("sync") == 1
        assert harness.disk.calls[-1] == "close"

    asyncio.run(story())


def test_whoever_waited_for_a_sync_knows_that_it_failed():
    told = threading.Event()
    allowed = threading.Event()

    def sync() -> None:
        raise OSError(5, "Input/output error")

    def done(seconds: float) -> None:
        told.set()
        allowed.wait(LIMIT_S)

    syncer = Syncer(sync, done, "test")
    syncer.begin()
    syncer.wait()
    assert isinstance(syncer.failed, OSError)
    allowed.set()
    syncer.stop()
    assert told.is_set()


def test_at_the_end_all_that_waits_is_written_and_the_commit_is_noted():
    async def story() -> None:
        harness = Harness()
        harness.writer.committed = 2
        harness.store(0, 1)
        harness.end()
        assert harness.disk.noted == 2
        assert harness.disk.synced == [0, 1]
        assert harness.disk.calls[-1] == "close"

    asyncio.run(story())


def test_what_was_removed_is_told():
    async def story() -> None:
        harness = Harness()
        harness.disk.trimmed = 40
        harness.store(0)
        assert (await harness.until(lambda report: report.first is not None)).first == 40
        harness.end()

    asyncio.run(story())
