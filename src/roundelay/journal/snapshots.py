"""Snapshots of an application's state, as files that are whole or not there.

A file is as `wire.snapshot_file` says: a head, parts with checksums, and an end with a digest. It
is written under another name, synced, and renamed. Two are kept. A peer's snapshot comes as bytes
of such a file, in order, and is checked as a whole before it counts.
"""

import hashlib
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from roundelay.core.checksum import crc32
from roundelay.core.log import Checkpoint
from roundelay.journal.errors import ForeignLogError, JournalError
from roundelay.journal.files import Files, OsFiles
from roundelay.wire.primitives import WireError
from roundelay.wire.snapshot_file import (
    DIGEST_BYTES,
    END_BYTES,
    HEAD_BYTES_MAX,
    SnapshotHead,
    decode_end,
    decode_head,
    encode_end,
    encode_head,
)

KEPT = 2
"""Snapshots that are kept: if the newer one turns out to be damaged there is the other."""
PART_BYTES_MAX = 1 << 20
"""Parts that are larger are written as several."""
SUFFIX = ".snap"
ASIDE = ".damaged"
"""Ends the name of the last snapshot that was found damaged: people may look at it."""

_PART = struct.Struct(">II")


class SnapshotWriter:
    """Writes one snapshot; slice by slice, if its application gives it so."""

    def __init__(self, snapshots: "Snapshots", head: SnapshotHead, files: Files) -> None:
        self._snapshots = snapshots
        self._files = files
        self.index = head.checkpoint.place.length
        self._path = snapshots.path_of(self.index)
        self._beside = self._path.with_suffix(".new")
        self._fd: int | None = files.open(self._beside, create=True)
        self._offset = 0
        self._digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._size = 0
        try:
            self._put(encode_head(head))
        except BaseException:
            self.abandon()
            raise

    def add(self, data: bytes) -> None:
        """Write what comes next of the state."""
        for start in range(0, len(data), PART_BYTES_MAX):
            part = data[start : start + PART_BYTES_MAX]
            self._put(_PART.pack(len(part), crc32(part)), part)
            self._size += len(part)

    def finish(self) -> None:
        """The snapshot is complete; on disk when this returns."""
        fd = self._fd
        assert fd is not None, "the snapshot was finished or abandoned"
        self._put(encode_end(self._size, self._digest.digest()), summed=False)
        self._files.fdatasync(fd)
        self._files.close(fd)
        self._fd = None
        self._files.rename(self._beside, self._path)
        self._snapshots.was_added()

    def abandon(self) -> None:
        """There will be no snapshot."""
        if self._fd is not None:
            self._files.close(self._fd)
            self._fd = None
            with suppress(OSError):
                self._files.unlink(self._beside)

    def _put(self, *parts: bytes, summed: bool = True) -> None:
        assert self._fd is not None, "the snapshot was finished or abandoned"
        self._files.pwritev(self._fd, parts, self._offset)
        for part in parts:
            self._offset += len(part)
            if summed:
                self._digest.update(part)


class Snapshots:
    """The snapshots of a node. One thread may write parts of a peer's while another one writes the
    node's own; the rest is for any thread."""

    def __init__(self, directory: Path, files: Files | None = None) -> None:
        self._files = files or OsFiles()
        self._directory = directory
        self._incoming: tuple[int, int, int] | None = None
        """Index, descriptor and size of what a peer sends."""
        self._heads: dict[int, SnapshotHead] = {}
        self._adding = threading.Lock()
        """Both threads remove what is old: one after the other, each by what is there then."""
        directory.mkdir(parents=True, exist_ok=True)
        for path in [*directory.glob("*.new"), *directory.glob("*.part")]:
            self._files.unlink(path)

    @staticmethod
    def path_in(directory: Path, index: int) -> Path:
        return directory / f"{index:020}{SUFFIX}"

    @staticmethod
    def indexes_in(directory: Path) -> list[int]:
        """Of the snapshots in a directory, the oldest first."""
        found = (path.stem for path in directory.glob(f"*{SUFFIX}"))
        return sorted(int(stem) for stem in found if len(stem) == 20 and stem.isdecimal())

    def path_of(self, index: int) -> Path:
        return self.path_in(self._directory, index)

    def indexes(self) -> list[int]:
        """Of the snapshots that are kept, the older one first."""
        return self.indexes_in(self._directory)

    def newest(self, log: bytes, generation: int, below: int | None = None) -> int | None:
        """The index of the newest one of this log whose head can be read, or of the newest one
        before index `below`; None if there is none."""
        for index in reversed(self.indexes()):
            with suppress(JournalError, OSError):
                head = self.head(index)
                older = below is None or index < below
                if older and head.log == log and head.generation <= generation:
                    return index
        return None

    def head(self, index: int) -> SnapshotHead:
        """What a snapshot is of; JournalError if that cannot be read."""
        known = self._heads.get(index)
        if known is not None:
            return known
        with self.path_of(index).open("rb") as file:
            head = _head_in(file.read(HEAD_BYTES_MAX), self.path_of(index))[0]
        self._heads[index] = head
        return head

    def begin(self, log: bytes, generation: int, checkpoint: Checkpoint) -> SnapshotWriter:
        """Begin a snapshot of this node's own application."""
        return SnapshotWriter(self, SnapshotHead(log, generation, checkpoint), self._files)

    def take(
        self, log: bytes, generation: int, checkpoint: Checkpoint, chunks: Iterable[bytes]
    ) -> int:
        """Write a whole snapshot and return its index; if `chunks` or the disk fail, nothing of it
        stays."""
        writer = self.begin(log, generation, checkpoint)
        try:
            for chunk in chunks:
                writer.add(chunk)
            writer.finish()
        except BaseException:
            writer.abandon()
            raise
        return writer.index

    def was_added(self) -> None:
        """A snapshot was renamed into its place: make that durable, and remove the oldest."""
        with self._adding:
            self._files.sync_directory(self._directory)
            self._heads.clear()
            for index in self.indexes()[:-KEPT]:
                self._files.unlink(self.path_of(index))

    def set_aside(self, index: int) -> None:
        """Give a damaged snapshot another name, so that it does not count; one that was set aside
        before is removed. FileNotFoundError if it is gone."""
        with self._adding:
            path = self.path_of(index)
            for old in self._directory.glob(f"*{ASIDE}"):
                self._files.unlink(old)
            self._files.rename(path, path.with_suffix(ASIDE))
            self._heads.pop(index, None)
            self._files.sync_directory(self._directory)

    def set_unreadable_aside(self) -> list[str]:
        """Set those aside whose heads make no sense; what was found, as sentences."""
        found: list[str] = []
        for index in self.indexes():
            try:
                with suppress(OSError):
                    self.head(index)
            except JournalError as e:
                with suppress(OSError):
                    self.set_aside(index)
                found.append(f"{e} and is not used; check the disk")
        return found

    def drop_behind(self, index: int) -> None:
        """Remove snapshots of what is behind this index: an operator goes on without that."""
        with self._adding:
            for taken in self.indexes():
                if taken > index:
                    self._files.unlink(self.path_of(taken))
            self._heads.clear()
            self._files.sync_directory(self._directory)

    def write_part(self, index: int, offset: int, data: bytes, *, last: bool) -> bool:
        """Take a part of the file of a peer's snapshot. Offset 0 begins again, whatever came
        before. After the last part the whole is checked: False if it is damaged or no snapshot at
        `index`, and then it was dropped; so it is if a part does not continue the one before."""
        if not offset:
            self.drop_incoming()
            fd = self._files.open(self._part_path(index), create=True)
            self._incoming = index, fd, 0
        if self._incoming is None or self._incoming[0] != index or self._incoming[2] != offset:
            self.drop_incoming()
            return False
        fd = self._incoming[1]
        self._files.pwritev(fd, [data], offset)
        self._incoming = index, fd, offset + len(data)
        if not last:
            return True
        self._files.fdatasync(fd)
        self._files.close(fd)
        self._incoming = None
        part = self._part_path(index)
        try:
            check_snapshot(part, index)
        except JournalError:
            self._files.unlink(part)
            return False
        self._files.rename(part, self.path_of(index))
        self.was_added()
        return True

    def drop_incoming(self) -> None:
        """Forget the beginning of a peer's snapshot."""
        if self._incoming is not None:
            index, fd, _ = self._incoming
            self._incoming = None
            self._files.close(fd)
            with suppress(FileNotFoundError):
                self._files.unlink(self._part_path(index))

    def _part_path(self, index: int) -> Path:
        return self.path_of(index).with_suffix(".part")

    def read_part(self, index: int, offset: int, bytes_max: int) -> tuple[bytes, int] | None:
        """Bytes of the file of a snapshot, and the size of the file; None if it is gone."""
        try:
            with self.path_of(index).open("rb") as file:
                size = file.seek(0, 2)
                file.seek(min(offset, size))
                return file.read(bytes_max), size
        except FileNotFoundError:
            return None

    def restore(self, index: int, log: bytes) -> tuple[Checkpoint, Iterator[bytes]]:
        """The checkpoint of a snapshot, and the state of the application in parts. The whole was
        checked: JournalError if it is damaged, ForeignLogError if it is of another log."""
        path = self.path_of(index)
        try:
            head = check_snapshot(path, index)
        except OSError as e:
            raise JournalError(f"the snapshot {path} cannot be read ({e.strerror})") from None
        if head.log != log:
            raise ForeignLogError(f"the snapshot {path} belongs to another log; remove it")
        return head.checkpoint, _read(path)


def check_snapshot(path: Path, index: int | None = None) -> SnapshotHead:
    """Read a whole snapshot and compare its checksums; JournalError if it is damaged, or taken at
    another index."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    size = path.stat().st_size
    with path.open("rb") as file:
        head, _ = _head_in(file.read(HEAD_BYTES_MAX), path)
        file.seek(0)
        left = size - END_BYTES
        while left > 0 and (data := file.read(min(left, PART_BYTES_MAX))):
            digest.update(data)
            left -= len(data)
        end = file.read(END_BYTES)
    try:
        application_bytes, expected = decode_end(end)
    except WireError as e:
        raise _damaged(path, str(e)) from None
    if expected != digest.digest():
        raise _damaged(path, "its digest is wrong")
    if index is not None and head.checkpoint.place.length != index:
        raise _damaged(path, "it was taken at another index")
    if sum(map(len, snapshot_parts(path))) != application_bytes:
        raise _damaged(path, "its parts are not complete")
    return head


def snapshot_parts(path: Path) -> Iterator[bytes]:
    """The parts of the application's state in a snapshot; JournalError if one is damaged."""
    with path.open("rb") as file:
        _, head_bytes = _head_in(file.read(HEAD_BYTES_MAX), path)
        file.seek(head_bytes)
        while True:
            prefix = file.read(_PART.size)
            size, crc = _PART.unpack(prefix) if len(prefix) == _PART.size else (0, 0)
            if not size:
                return
            part = file.read(size) if size <= PART_BYTES_MAX else b""
            if len(part) != size or crc32(part) != crc:
                raise _damaged(path, "a part is damaged")
            yield part


def _read(path: Path) -> Iterator[bytes]:
    """As `snapshot_parts`; JournalError also if the disk does not answer."""
    try:
        yield from snapshot_parts(path)
    except OSError as e:
        raise JournalError(f"the snapshot {path} cannot be read ({e.strerror})") from None


def _head_in(data: bytes, path: Path) -> tuple[SnapshotHead, int]:
    try:
        found = decode_head(data)
    except WireError as e:
        raise _damaged(path, str(e)) from None
    if found is None:
        raise _damaged(path, "its head is not complete")
    return found


def _damaged(path: Path, why: str) -> JournalError:
    return JournalError(f"the snapshot {path} is damaged ({why})")
