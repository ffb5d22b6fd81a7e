"""Disks that are full, that fail, and that lose power; and room that is made in time."""

import errno
import os
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.patience import LIMIT_S
from tests.unit.journal.logs import (
    BEGIN,
    SMALL,
    T1,
    NoRoom,
    QuickFiles,
    checkpoint,
    die,
    entries,
    held,
    log_files,
    mark,
    open_journal,
    plain,
    some,
    with_checkpoints,
)

from roundelay.core.log import Checkpoint, LogRecord, Place
from roundelay.journal.errors import DiskError, FullError, JournalError
from roundelay.journal.files import HeldFiles, OsFiles
from roundelay.journal.journal import Journal, JournalConfig
from roundelay.journal.retention import removable


class SmallDisk(QuickFiles):
    """A disk with room for so many bytes of segments, and which fails when it is told to."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.failing: set[str] = set()
        self.error = errno.EIO

    def _fail(self, call: str) -> None:
        if call in self.failing:
            raise OSError(self.error, "what the disk says")

    def _used(self, path: Path) -> int:
        return sum(file.stat().st_size for file in path.rglob("*.log*") if file.is_file())

    def fallocate(self, fd: int, offset: int, size: int) -> None:
        self._fail("fallocate")
        if offset + size > self.size(fd):
            self.room -= offset + size - self.size(fd)
            if self.room < 0:
                self.room += offset + size - self.size(fd)
                raise OSError(errno.ENOSPC, "no space left on device")
        super().fallocate(fd, offset, size)

    def ftruncate(self, fd: int, size: int) -> None:
        self._fail("ftruncate")
        self.room += max(0, self.size(fd) - size)
        super().ftruncate(fd, size)

    def pwritev(self, fd: int, parts: Sequence[bytes], offset: int) -> None:
        if "pwritev" in self.failing:
            super().pwritev(fd, [b"".join(parts)[:-5]], offset)
        self._fail("pwritev")
        super().pwritev(fd, parts, offset)

    def fdatasync(self, fd: int) -> None:
        self._fail("fdatasync")

    def free_bytes(self, path: Path) -> int:
        return self.room


def fill(journal: Journal, records: list[LogRecord]) -> int:
    """Write until the disk is full; how many records were taken."""
    for done in range(0, len(records), 25):
        try:
            journal.append(records[done : done + 25])
        except FullError:
            return done
        journal.sync()
    raise AssertionError("the disk is not full")


def test_a_full_disk_takes_nothing_of_a_batch_and_goes_on_when_there_is_room(tmp_path):
    disk = SmallDisk(50_000)
    journal = open_journal(tmp_path, files=disk)
    assert (tmp_path / "reserve").stat().st_size == SMALL.reserve_bytes
    records = with_checkpoints(2000, every=10)
    done = fill(journal, records)
    assert journal.full
    assert not (tmp_path / "reserve").exists()
    assert held(journal) == plain(records[:done])
    with pytest.raises(FullError, match="is full"):
        journal.append(records[done : done + 25])
    assert held(journal) == plain(records[:done])
    disk.room += 100_000
    journal.append(records[done : done + 100])
    assert not journal.full
    assert (tmp_path / "reserve").exists()
    die(journal)
    journal = open_journal(tmp_path)
    assert held(journal) == plain(records[: done + 100])
    assert not journal.repaired


@pytest.mark.parametrize("reserve", [True, False])
def test_a_full_disk_is_made_room_on_if_anything_can_be_written(tmp_path, reserve):
    files = NoRoom(tmp_path / "reserve")
    config = replace(SMALL, retain_bytes=12_000)
    journal = open_journal(tmp_path, files=files, config=config)
    journal.append(with_checkpoints(500, every=10))
    journal.committed = journal.place.length
    files.full = True
    if not reserve:
        files.reserve = None
    assert journal.retire() == reserve
    assert (journal.first > 0) == reserve
    assert not (tmp_path / "reserve").exists()
    assert not list(tmp_path.glob("*.new"))
    files.full = False
    assert journal.retire() != reserve
    die(journal)
    assert not open_journal(tmp_path).repaired


def test_a_journal_on_a_full_disk_is_closed_though_not_in_order(tmp_path):
    files = NoRoom(tmp_path / "reserve")
    journal = open_journal(tmp_path, "off", files=files)
    journal.append([mark(), *some(3)])
    journal.set_able()
    files.full, files.reserve = True, None
    assert not journal.close()
    journal = open_journal(tmp_path)
    assert held(journal) == [mark(), *some(3)]
    assert "not closed in order" in journal.unable
    assert journal.close()


def test_that_a_node_is_able_is_noted_once_there_is_room(tmp_path):
    journal = open_journal(tmp_path, "off")
    journal.append([mark(), *some(3)])
    die(journal)
    files = NoRoom(tmp_path / "reserve")
    journal = open_journal(tmp_path, files=files)
    assert journal.unable
    files.full, files.reserve = True, None
    assert not journal.set_able()
    files.full = False
    assert journal.set_able()
    die(journal)
    assert open_journal(tmp_path).kept.able


def test_two_threads_that_note_something_take_turns(tmp_path):
    """A reader notes where it met damage, while the writer notes where the log begins."""
    journal = open_journal(tmp_path)

    def note(thread: int) -> None:
        for number in range(100):
            journal._write_life(damaged=((f"{thread}.log", number),))

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(note, thread) for thread in range(2)]:
            done.result(LIMIT_S)


def test_a_disk_that_fails_to_note_that_a_node_is_able_ends_the_journal(tmp_path):
    journal = open_journal(tmp_path, "off")
    journal.append([mark(), *some(3)])
    die(journal)
    files = NoRoom(tmp_path / "reserve")
    journal = open_journal(tmp_path, files=files)
    files.full, files.reserve, files.error = True, None, errno.EIO
    with pytest.raises(DiskError, match="what the disk says"):
        journal.set_able()


@pytest.fixture
def tiny_disk(tmp_path):
    """A real file system of one megabyte, if this machine lets us have one."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_real_disk_that_fills_up(tiny_disk):
    journal = open_journal(tiny_disk / "j", files=OsFiles())
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(600_000))
    records = with_checkpoints(5000, every=50)
    done = fill(journal, records)
    assert 100 < done < len(records)
    assert held(journal) == plain(records[:done])
    (tiny_disk / "standing").write_bytes(bytes(4096))  # That is what the reserve is for.
    ballast.unlink()
    journal.append(records[done : done + 100])
    journal.sync()
    journal.close()
    journal = open_journal(tiny_disk / "j", files=OsFiles())
    assert held(journal) == plain(records[: done + 100])
    assert not journal.repaired
    journal.close()


def test_a_disk_that_is_full_from_the_beginning(tmp_path):
    disk = SmallDisk(10)
    journal = open_journal(tmp_path, files=disk)
    with pytest.raises(FullError):
        journal.append([mark()])
    assert held(journal) == []
    assert log_files(tmp_path) == []
    disk.room = 1 << 20
    journal.append([mark(), *some(3)])
    assert held(journal) == [mark(), *some(3)]


def test_a_write_that_the_disk_has_no_room_for_leaves_no_half_of_it(tmp_path):
    disk = SmallDisk(1 << 20)
    journal = open_journal(tmp_path, files=disk)
    journal.append([mark(), *some(3)])
    disk.failing, disk.error = {"pwritev"}, errno.ENOSPC
    with pytest.raises(FullError):
        journal.append(some(5, 3))
    disk.failing = set()
    assert journal.place == Place(T1, 3)
    journal.append([entries(3, size=7)])
    die(journal)
    journal = open_journal(tmp_path)
    assert held(journal) == [mark(), *some(3), entries(3, size=7)]
    assert not journal.repaired


def test_no_room_for_a_reset_leaves_the_old_log(tmp_path):
    disk = SmallDisk(1 << 20)
    journal = open_journal(tmp_path, files=disk)
    journal.append([mark(), *some(3)])
    disk.room = 10
    with pytest.raises(FullError):
        journal.reset(checkpoint(10), mark())
    assert held(journal) == [mark(), *some(3)]


@pytest.mark.parametrize("call", ["fdatasync", "pwritev", "fallocate", "ftruncate"])
def test_a_disk_that_fails_ends_the_journal_for_good(tmp_path, call):
    disk = SmallDisk(1 << 20)
    journal = open_journal(tmp_path, files=disk)
    journal.append([mark(), *some(3)])
    disk.failing = {call}

    def go_on() -> None:
        if call == "ftruncate":
            journal.cut(Place(T1, 1))
        journal.append(some(60, journal.place.length, size=100))
        journal.sync()

    with pytest.raises(DiskError, match="so the node stops"):
        go_on()
    disk.failing = set()
    for again in (lambda: journal.append([entries(3)]), journal.sync, journal.note):
        with pytest.raises(DiskError):
            again()
    journal.close()
    kept = open_journal(tmp_path).kept
    assert kept.first == 0  # It opens, and was not closed in order.


@pytest.mark.parametrize("scrub", [False, True])
def test_a_disk_that_does_not_answer_ends_the_journal(tmp_path, scrub):
    class Mute(QuickFiles):
        mute = False

        def pread(self, fd: int, size: int, offset: int) -> bytes:
            if self.mute:
                raise OSError(errno.EIO, "input/output error")
            return super().pread(fd, size, offset)

    files = Mute()
    journal = open_journal(tmp_path, files=files)
    journal.append([mark(), *some(3)])
    files.mute = True
    with pytest.raises(DiskError, match="cannot read"):
        journal.scrub(0) if scrub else journal.read(BEGIN, 100)
    with pytest.raises(DiskError):
        journal.append(some(1, 3))


def test_a_file_system_without_preallocation(tmp_path, monkeypatch):
    def refuse(fd: int, offset: int, size: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    records = with_checkpoints(300, every=10)
    journal = open_journal(tmp_path)
    journal.append(records)
    die(journal)
    journal = open_journal(tmp_path)
    assert held(journal) == plain(records)
    assert not journal.repaired


def test_what_is_not_synced_is_lost_with_the_power_and_what_is_synced_is_not(tmp_path):
    for lost in range(4):
        path = tmp_path / str(lost)
        journal = open_journal(path, files=HeldFiles())
        journal.set_able()
        journal.append([mark(), *some(100, size=200)])
        journal.sync()
        assert held(journal) == [mark(), *some(100, size=200)]
        for n in range(lost):
            journal.append(some(30, 100 + 30 * n, size=200))
        assert held(journal) == [mark(), *some(100 + 30 * lost, size=200)]
        die(journal)
        journal = open_journal(path, boot="boot 2")
        assert journal.kept.able
        records = held(journal)
        # A segment that was finished was synced with it.
        assert [mark(), *some(100, size=200)] == records[:101]
        assert records == [mark(), *some(len(records) - 1, size=200)]
        assert len(records) < 101 + 30 * lost or not lost
        journal.close()


def test_what_a_kill_left_is_synced_before_anybody_is_told_that_it_is(tmp_path):
    class Watched(QuickFiles):
        def __init__(self) -> None:
            self.synced: set[int] = set()

        def fdatasync(self, fd: int) -> None:
            self.synced.add(os.fstat(fd).st_ino)

    journal = open_journal(tmp_path)
    journal.append([mark(), *some(3)])
    die(journal)
    files = Watched()
    journal = open_journal(tmp_path, files=files)
    assert log_files(tmp_path)[0].stat().st_ino in files.synced
    assert journal.unsynced_bytes == 0
    journal.append(some(1, 3))
    assert journal.unsynced_bytes > 0
    journal.sync()
    assert journal.unsynced_bytes == 0


def test_what_has_room_needs_one_call_of_the_system(tmp_path):
    """Nothing has to be made or taken for it, whatever the records are."""
    files = Slow()
    config = JournalConfig(segment_bytes=200_000, preallocate_bytes=50_000, reserve_bytes=0)
    journal = open_journal(tmp_path, files=files, config=config)
    assert not journal.has_room(1), "there is no file yet"
    journal.append([mark()])
    quick = slow = 0
    for n in range(400):
        record = checkpoint(n) if n % 7 == 6 else entries(n - n // 7, size=1000)
        if type(record) is Checkpoint:
            record = replace(record, place=journal.place)
        has_room, files.calls = journal.has_room(1100), []
        journal.append([record])
        if has_room:
            assert files.calls == ["pwritev"]
            quick += 1
        else:
            slow += files.calls != ["pwritev"]
    assert quick > 100
    assert slow > 1
    journal.close()


class Slow(OsFiles):
    """Syncs wait until they are allowed."""

    def __init__(self) -> None:
        self.slow = False
        self.syncing = threading.Event()
        self.go_on = threading.Event()
        self.error: OSError | None = None
        self.calls: list[str] = []

    def open(self, path: Path, *, create: bool = False) -> int:
        self.calls.append("open")
        return super().open(path, create=create)

    def pwritev(self, fd: int, parts: Sequence[bytes], offset: int) -> None:
        self.calls.append("pwritev")
        super().pwritev(fd, parts, offset)

    def fallocate(self, fd: int, offset: int, size: int) -> None:
        self.calls.append("fallocate")
        super().fallocate(fd, offset, size)

    def fdatasync(self, fd: int) -> None:
        self.calls.append("fdatasync")
        if self.slow:
            self.syncing.set()
            assert self.go_on.wait(LIMIT_S)
        os.fstat(fd)  # It is still open.
        if self.error is not None:
            raise self.error

    def sync_directory(self, path: Path) -> None:
        pass


def in_sync(journal: Journal, files: Slow) -> Future[None]:
    """A sync in another thread, which waits for the disk."""
    files.slow = True
    files.syncing.clear()
    files.go_on.clear()
    pool = ThreadPoolExecutor(1)
    future = pool.submit(journal.sync)
    assert files.syncing.wait(LIMIT_S)
    files.slow = False
    pool.shutdown(wait=False)
    return future


class Asked:
    """A lock that tells when somebody wants it."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.asked = threading.Event()

    def __enter__(self) -> None:
        self.asked.set()
        self.lock.__enter__()

    def __exit__(self, *error: object) -> None:
        self.lock.__exit__(*error)


def test_one_thread_appends_and_reads_while_another_syncs(tmp_path):
    files = Slow()
    journal = open_journal(tmp_path, files=files, config=JournalConfig(1 << 20, 1 << 16, 0))
    journal.append([mark(), *some(3)])
    before = journal._end
    sync = in_sync(journal, files)
    journal.append(some(4, 3))
    assert held(journal) == [mark(), *some(7)]
    assert journal._synced < before
    files.go_on.set()
    sync.result(LIMIT_S)
    assert journal._synced == before, "what came meanwhile may not be on disk"
    journal.sync()
    assert journal.unsynced_bytes == 0


@pytest.mark.parametrize("what", ["cut", "reset", "roll", "close"])
def test_no_file_goes_while_it_is_synced(tmp_path, what):
    files = Slow()
    journal = open_journal(tmp_path, files=files)
    journal.append([mark(), *some(30, size=100)])
    sync = in_sync(journal, files)
    done = []

    def work() -> None:
        if what == "cut":
            journal.cut(Place(T1, 3))
        elif what == "reset":
            journal.reset(checkpoint(40), mark())
        elif what == "roll":
            journal.append(some(100, 30, size=100))
        else:
            journal.close()
        done.append(True)

    lock = Asked(journal._syncing)
    journal._syncing = lock  # type: ignore[assignment]
    thread = threading.Thread(target=work)
    thread.start()
    assert lock.asked.wait(LIMIT_S)
    assert not done
    files.go_on.set()
    thread.join(LIMIT_S)
    assert done
    sync.result(LIMIT_S)
    if what == "roll":
        assert held(journal) == [mark(), *some(130, size=100)]
        journal.sync()
        assert journal.unsynced_bytes == 0


def test_after_a_sync_that_failed_in_another_thread_no_file_is_finished(tmp_path):
    files = Slow()
    journal = open_journal(tmp_path, files=files)
    journal.append([mark(), *some(30, size=100)])
    sync = in_sync(journal, files)
    files.error = OSError(errno.EIO, "Input/output error")
    files.go_on.set()
    with pytest.raises(DiskError):
        sync.result(LIMIT_S)
    files.error = None
    with pytest.raises(DiskError):
        journal.append(some(100, 30, size=100))
    assert len(log_files(tmp_path)) == 1


def test_held_files_are_files(tmp_path):
    files = HeldFiles()
    fd = files.open(tmp_path / "f", create=True)
    files.pwritev(fd, [b"abc", b"def"], 2)
    files.pwritev(fd, [b"X"], 4)
    assert files.pread(fd, 100, 0) == b"\0\0abXdef"
    assert files.size(fd) == 8
    assert (tmp_path / "f").read_bytes() == b""
    files.ftruncate(fd, 5)
    assert files.pread(fd, 100, 3) == b"bX"
    files.fdatasync(fd)
    assert (tmp_path / "f").read_bytes() == b"\0\0abX"
    files.pwritev(fd, [b"Z"], 6)
    assert files.pread(fd, 3, 4) == b"X\0Z"
    files.close(fd)
    assert OsFiles().pread(files.open(tmp_path / "f"), 10, 0) == b"\0\0abX"


def test_names_are_held_until_their_directory_is_synced(tmp_path):
    def names() -> set[str]:
        return {path.name for path in tmp_path.iterdir()}

    files = HeldFiles()
    for name in ("a", "b"):
        files.close(files.open(tmp_path / name, create=True))
    files.rename(tmp_path / "a", tmp_path / "c")
    files.unlink(tmp_path / "b")
    assert names() == {"a", "b"}
    with pytest.raises(FileNotFoundError):
        files.unlink(tmp_path / "b")
    with pytest.raises(FileNotFoundError):
        files.rename(tmp_path / "a", tmp_path / "d")
    files.sync_directory(tmp_path)
    assert names() == {"c"}
    files.unlink(tmp_path / "c")
    files.close(files.open(tmp_path / "c", create=True))  # It is there again.
    files.sync_directory(tmp_path)
    assert names() == {"c"}


# Retention.


def filled(path: Path, **limits: object):
    config = JournalConfig(segment_bytes=8192, preallocate_bytes=4096, reserve_bytes=0, **limits)  # type: ignore[arg-type]
    clock = [0.0]
    wall = [0]
    journal = open_journal(
        path, config=config, monotonic_s=lambda: clock[0], wall_us=lambda: wall[0]
    )
    records = with_checkpoints(500, every=10)
    for record in records:
        wall[0] += 1_000_000
        journal.append([record])
    return journal, records, clock, wall


def test_segments_go_by_size_and_only_below_what_is_committed(tmp_path):
    journal, records, _, _ = filled(tmp_path, retain_bytes=20_000)
    assert not journal.retire()
    journal.committed = 100
    assert journal.retire()
    assert 0 < journal.first <= 100
    journal.committed = 500
    assert journal.retire()
    assert not journal.retire()
    assert journal.size_bytes <= 20_000 + 8192
    first = journal.first
    assert held(journal, Place(T1, first)) == plain(records)[1 + first :]
    beginning = held(journal, BEGIN)
    assert beginning[:2] == [checkpoint(first), mark()]
    assert beginning[2:] == plain(records)[1 + first :]
    journal.set_able()
    die(journal)
    kept = open_journal(tmp_path).kept
    assert (kept.able, kept.first, kept.marks) == (True, first, (mark(),))


def test_a_segment_whose_term_may_be_cut_off_again_is_no_beginning(tmp_path):
    """Where it begins is committed, but a mark at that place need not be: its term may never open,
    and a log cannot be cut before its beginning."""
    journal, _, _, _ = filled(tmp_path, retain_bytes=1)
    second = int(log_files(tmp_path)[1].stem)
    journal.committed = second
    assert not journal.retire()
    journal.committed = second + 1
    assert journal.retire()
    assert journal.first == second


def test_segments_go_by_age(tmp_path):
    journal, _, _, wall = filled(tmp_path, retain_s=200.0)
    journal.committed = 500
    wall[0] = 500_000_000
    assert journal.retire()
    assert 200 < journal.first <= 350
    wall[0] = 10_000_000_000
    assert journal.retire()
    assert len(log_files(tmp_path)) == 1


def test_without_limits_nothing_goes_but_what_a_snapshot_replaces(tmp_path):
    journal, _, _, _ = filled(tmp_path)
    journal.committed = 500
    assert not journal.retire()
    journal.snapshots.take(journal.log, 0, checkpoint(200), [b"state"])
    assert not journal.retire()  # The older one of two is what counts.
    journal.snapshots.take(journal.log, 0, checkpoint(300), [b"state"])
    assert journal.retire()
    assert 100 < journal.first <= 200


def test_with_a_state_limits_do_not_go_above_the_older_snapshot(tmp_path):
    journal, _, _, _ = filled(tmp_path, retain_bytes=1)
    journal.committed = 500
    journal.snapshots.take(journal.log, 0, checkpoint(100), [b"state"])
    journal.snapshots.take(journal.log, 0, checkpoint(300), [b"state"])
    assert journal.retire()
    assert journal.first <= 100


def test_what_a_learner_reads_is_held_for_a_minute(tmp_path):
    journal, _, clock, _ = filled(tmp_path, retain_bytes=1)
    journal.committed = 500
    journal.read(Place(T1, 150), 1000)
    assert journal.retire()
    assert journal.first <= 150
    clock[0] = 30.0
    journal.read(Place(T1, 150), 1000)  # Asking again does not hold it longer.
    assert not journal.retire()
    clock[0] = 61.0
    assert journal.retire()
    assert journal.first > 150


def test_a_removed_beginning_that_nobody_removed_is_noticed(tmp_path):
    journal, _, _, _ = filled(tmp_path, retain_bytes=30_000)
    journal.committed = 500
    journal.retire()
    journal.set_able()
    die(journal)
    log_files(tmp_path)[0].unlink()
    kept = open_journal(tmp_path).kept
    assert not kept.able
    assert "first segments" in kept.why


def test_a_disk_that_cannot_be_opened_is_a_journal_error(tmp_path):
    class Broken(QuickFiles):
        def pread(self, fd: int, size: int, offset: int) -> bytes:
            raise OSError(errno.EIO, "input/output error")

    journal = open_journal(tmp_path)
    journal.append([mark()])
    journal.close()
    with pytest.raises(JournalError, match="check the disk"):
        open_journal(tmp_path, files=Broken())
    open_journal(tmp_path).close()


def test_the_marks_behind_a_snapshot_stay(tmp_path):
    """A node that gets the snapshot goes on from there: a segment that begins at its index may
    begin behind marks that the node lacks."""
    journal, _, _, _ = filled(tmp_path, retain_bytes=20_000)
    journal.committed = 500
    begins = [segment.place.length for segment in journal._segments]
    index = begins[3]
    counts = [
        removable(
            journal._segments,
            journal.config,
            below=below,
            committed=500,
            now_us=0,
            replaced=True,
        )
        for below in (index, index + 1)
    ]
    assert counts == [2, 3]
    journal.close()
