"""The calls to the operating system that a journal makes, and no others.

Tests put another object in place of `OsFiles`: one that runs out of room, fails, or forgets and
tears what was not synced.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


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
        os.posix_fallocate(fd, offset, size)

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
    """Replace a small file as a whole; durable when this returns."""
    beside = path.with_name(path.name + ".new")
    fd = files.open(beside, create=True)
    try:
        files.pwritev(fd, [data], 0)
        files.fdatasync(fd)
    finally:
        files.close(fd)
    files.rename(beside, path)
    files.sync_directory(path.parent)
