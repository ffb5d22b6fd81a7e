"""Records and journals for the tests of this directory."""

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roundelay.core.checksum import crc32
from roundelay.core.ids import ViewId
from roundelay.core.log import Checkpoint, Entries, Head, LogRecord, Mark, Place, Session
from roundelay.group.body import pack
from roundelay.journal.files import OsFiles
from roundelay.journal.journal import Journal, JournalConfig
from roundelay.journal.policy import parse_policy
from roundelay.wire.log_record import decode_record

T1, T2, T3 = ViewId(1, "a"), ViewId(2, "b"), ViewId(3, "a")
LOG = b"L" * 16
SMALL = JournalConfig(segment_bytes=8192, preallocate_bytes=4096, reserve_bytes=4096)
BEGIN = Place()


class QuickFiles(OsFiles):
    """Files of a machine that never loses power, so there is nothing to wait for."""

    def fdatasync(self, fd: int) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        pass


class NoRoom(QuickFiles):
    """A disk on which a new file finds no room, if `full`; or none while the reserve is there."""

    full = False
    error = errno.ENOSPC

    def __init__(self, reserve: Path) -> None:
        self.reserve: Path | None = reserve

    def pwritev(self, fd: int, parts: Sequence[bytes], offset: int) -> None:
        if self.full and (self.reserve is None or self.reserve.exists()):
            raise OSError(self.error, "what the disk says")
        super().pwritev(fd, parts, offset)


def mark(term: ViewId = T1, base: int = 0, generation: int = 0, *, lossy: bool = False) -> Mark:
    return Mark(term, base, ("a", "b"), ("a", "b"), (5, 6), generation, LOG, lossy)


def entries(index: int, count: int = 1, term: ViewId = T1, size: int = 20) -> Entries:
    body = pack([b"%06d" % (index + n) + b"." * (size - 6) for n in range(count)])
    return Entries(Head(index, term, "a", 7, 5, index, count, 1000 + index, crc32(body)), body)


def opening(index: int, term: ViewId = T1) -> Entries:
    body = b"billing"
    return Entries(Head(index, term, "a", 7, 1 << 63, 0, 0, 1000, crc32(body)), body)


def checkpoint(length: int, term: ViewId = T1, opened: int = 0) -> Checkpoint:
    return Checkpoint(Place(term, length, opened), 77, 9, (Session(5, length - 1, length - 1),))


def some(count: int, start: int = 0, term: ViewId = T1, size: int = 20) -> list[LogRecord]:
    """So many records of one entry each."""
    return [entries(start + n, 1, term, size) for n in range(count)]


def with_checkpoints(count: int, every: int, size: int = 100) -> list[LogRecord]:
    """A log of one term with so many entries and a checkpoint now and then."""
    records: list[LogRecord] = [mark()]
    for n in range(count):
        records.append(entries(n, size=size))
        if n % every == every - 1:
            records.append(checkpoint(n + 1))
    return records


def open_journal(path: Path, policy: str = "always", **options: Any) -> Journal:
    options.setdefault("config", SMALL)
    options.setdefault("boot", "boot 1")
    options.setdefault("files", QuickFiles())
    return Journal(path, "orders", "a", parse_policy(policy), **options)


def held(journal: Journal, place: Place = BEGIN) -> list[LogRecord]:
    """The records behind a place, without checkpoints inside."""
    records = [decode_record(data) for data in journal.read(place, 1 << 30)]
    if journal._lock is None:  # It is closed already, and to read it has opened its files again.
        for segment in journal._segments:
            segment.close()
    return records


def plain(records: list[LogRecord]) -> list[LogRecord]:
    return [record for record in records if not isinstance(record, Checkpoint)]


def die(journal: Journal) -> None:
    """What `kill -9` does: files and lock are closed, and nothing is written."""
    for segment in journal._segments:
        segment.close()
    journal._release()


def log_files(path: Path) -> list[Path]:
    return sorted((path / "log").glob("*.log"))
