"""The calls to the operating system that a journal makes, and no others.

Tests put another object in place of `OsFiles`: one that runs out of room, fails, or forgets and
tears what was not synced.
"""

import contextlib
import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says when there is no room. Nothing else is harmless."""


class Files(Protocol):
    """Where a journal keeps its bytes. All raise OSError."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """A descriptor for reading and writing; `create` makes the file empty."""
        ...

    def close(self, fd: int) -> None: ...

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """At most `size` bytes; fewer only at the end of the file."""
        ...

    def pwritev(self, fd: int, parts: Sequence[bytes], offset: int) -> None:
        """Write all parts, one behind the other."""
        ...

    def fdatasync(self, fd: int) -> None: ...

    def ftruncate(self, fd: int, size: int) -> None:
        """What lies behind `size` reads as zeros if the file grows again."""
        ...

    def fallocate(self, fd: int, offset: int, size: int) -> None:
        """Let the file reach to `offset + size`, with room on the disk for all of it."""
        ...

    def size(self, fd: int) -> int: ...

    def rename(self, old: Path, new: Path) -> None: ...

    def unlink(self, path: Path) -> None: ...

    def sync_directory(self, path: Path) -> None: ...

    def free_bytes(self, path: Path) -> int:
        """Room on the disk that `path` is on."""
        ...


class OsFiles:
    """The files of this machine."""

    def open(self, path: Path, *, create: bool = False) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_TRUNC if create else 0)
        return os.open(path, flags, 0o600)

    def close(self, fd: int) -> None:
        os.close(fd)

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        return pread_all(fd, size, offset)

    def pwritev(self, fd: int, parts: Sequence[bytes], offset: int) -> None:
        for start in range(0, len(parts), _PARTS_MAX):
            some = parts[start : start + _PARTS_MAX]
            size = sum(map(len, some))
            done = os.pwritev(fd, some, offset)
            while done < size:
                done += os.pwrite(fd, b"".join(some)[done:], offset + done)
            offset += size

    def fdatasync(self, fd: int) -> None:
        os.fdatasync(fd)

    def ftruncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def fallocate(self, fd: int, offset: int, size: int) -> None:
        try:
            os.posix_fallocate(fd, offset, size)
        except OSError as e:
            if e.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            # This file system cannot take room ahead: then a sync writes the size, too.
            os.ftruncate(fd, max(offset + size, self.size(fd)))

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def sync_directory(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def free_bytes(self, path: Path) -> int:
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize


class ReadOnlyFiles(OsFiles):
    """For who only reads, perhaps from a file system that lets nobody write."""

    def open(self, path: Path, *, create: bool = False) -> int:
        assert not create
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


class HeldFiles(OsFiles):
    """As `OsFiles`, but what is done reaches the disk only when it is synced: for power cuts of
    real processes.

    A process that is killed leaves all that it wrote to the kernel, which writes it to the disk
    later. With `HeldFiles` in place of `OsFiles` it leaves only what it had synced, as if the
    machine had lost its power: writes are held in memory until `fdatasync`, of few files, and
    renames and removals until `sync_directory`; whoever looks into the directory sees the old names
    until then. A kill during a sync leaves the first of them, the last write perhaps torn. Files
    are made and cut at once. The boot id stays the same, of course: to have a start judged as one
    after a power cut, give it another one (`Journal(boot=...)`).
    """

    def __init__(self) -> None:
        self._held: dict[int, list[tuple[int, bytes]]] = {}
        """By inode: offsets and bytes, in the order of writing."""
        self._sizes: dict[int, int] = {}
        """The size that a file would have, by inode, if it has unsynced writes."""
        self._names: list[tuple[Path, Path | None]] = []
        """Files that are renamed, or removed, once their directory is synced; in order."""
        self._lock = threading.RLock()
        """One thread may sync while another writes and a third one reads."""

    def open(self, path: Path, *, create: bool = False) -> int:
        with self._lock:
            if create:
                self._names = [held for held in self._names if held[0] != path]
            fd = super().open(path, create=create)
            if create:  # Another file may have had this inode.
                self._held.pop(self._inode(fd), None)
                self._sizes.pop(self._inode(fd), None)
            return fd

    def rename(self, old: Path, new: Path) -> None:
        with self._lock:
            self._names.append((self._known(old), new))

    def unlink(self, path: Path) -> None:
        with self._lock:
            self._names.append((self._known(path), None))

    def sync_directory(self, path: Path) -> None:
        self.release(path)
        super().sync_directory(path)

    def release(self, directory: Path) -> None:
        """Do the renames and removals that were held in a directory."""
        with self._lock:
            due = [held for held in self._names if held[0].parent == directory]
            self._names = [held for held in self._names if held[0].parent != directory]
            for old, new in due:
                if new is None:
                    super().unlink(old)
                else:
                    super().rename(old, new)

    def _known(self, path: Path) -> Path:
        """FileNotFoundError if there is no such file, or will be none."""
        there = path.exists()
        for old, new in self._names:
            there = (there and old != path) or new == path
        if not there:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return path

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        with self._lock:
            inode = self._inode(fd)
            writes = self._writes(inode)
            if not writes and inode not in self._sizes:
                return super().pread(fd, size, offset)
            end = min(offset + size, self.size(fd))
            if end <= offset:
                return b""
            data = bytearray(super().pread(fd, end - offset, offset).ljust(end - offset, b"\0"))
            for at, written in writes:
                start, stop = max(at, offset), min(at + len(written), end)
                if start < stop:
                    data[start - offset : stop - offset] = written[start - at : stop - at]
            return bytes(data)

    def pwritev(self, fd: int, parts: Sequence[bytes], offset: int) -> None:
        with self._lock:
            inode = self._inode(fd)
            end = offset + sum(map(len, parts))
            self._sizes[inode] = max(self.size(fd), end)
            self._held.setdefault(inode, []).append((offset, b"".join(parts)))

    def fdatasync(self, fd: int) -> None:
        with self._lock:
            inode = self._inode(fd)
            for offset, data in self._held.pop(inode, []):
                super().pwritev(fd, [data], offset)
            size = self._sizes.pop(inode, None)
            if size is not None and size > super().size(fd):
                super().ftruncate(fd, size)
            super().fdatasync(fd)

    def ftruncate(self, fd: int, size: int) -> None:
        with self._lock:
            inode = self._inode(fd)
            kept = [(at, data[: size - at]) for at, data in self._writes(inode) if at < size]
            if kept:
                self._held[inode] = kept
            else:
                self._held.pop(inode, None)
            self._sizes.pop(inode, None)
            super().ftruncate(fd, size)

    def size(self, fd: int) -> int:
        return max(super().size(fd), self._sizes.get(self._inode(fd), 0))

    def _inode(self, fd: int) -> int:
        return os.fstat(fd).st_ino

    def _writes(self, inode: int) -> list[tuple[int, bytes]]:
        return self._held.get(inode, [])


_PARTS_MAX = min(os.sysconf("SC_IOV_MAX"), 1024)


def pread_all(fd: int, size: int, offset: int) -> bytes:
    """As `Files.pread`, from a file of this machine."""
    data = os.pread(fd, size, offset)
    if len(data) == size or not data:
        return data
    parts = [data]
    done = len(data)
    while done < size and (data := os.pread(fd, size - done, offset + done)):
        parts.append(data)
        done += len(data)
    return b"".join(parts)


def replace_file(files: Files, path: Path, data: bytes) -> None:
    """Replace a small file as a whole; durable when this returns. If it fails before, the old one
    is still there."""
    beside = path.with_name(path.name + ".new")
    fd = files.open(beside, create=True)
    try:
        try:
            files.pwritev(fd, [data], 0)
            files.fdatasync(fd)
        finally:
            files.close(fd)
    except OSError:
        with contextlib.suppress(OSError):
            files.unlink(beside)
        raise
    files.rename(beside, path)
    files.sync_directory(path.parent)
