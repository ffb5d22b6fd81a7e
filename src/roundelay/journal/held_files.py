"""Files that lose what was not synced when their process dies: for power cuts of real processes.

A process that is killed leaves all that it wrote to the kernel, which writes it to the disk later.
With `HeldFiles` in place of `OsFiles` it leaves only what it had synced, as if the machine had lost
its power: writes are held in memory until `fdatasync`, one thread's and of few files. A kill during
a sync leaves the first of the writes, the last of them perhaps torn. Renames, removals and new
sizes are done at once. The boot id stays the same, of course: to have a start judged as one after a
power cut, give it another one (`Journal(boot=...)`).
"""

import os
from collections.abc import Sequence

from roundelay.journal.files import OsFiles


class HeldFiles(OsFiles):
    """As `OsFiles`, but a write reaches the file only when it is synced."""

    def __init__(self) -> None:
        self._held: dict[int, list[tuple[int, bytes]]] = {}
        """By inode: offsets and bytes, in the order of writing."""
        self._sizes: dict[int, int] = {}
        """The size that a file would have, by inode, if it has unsynced writes."""

    def pread(self, fd: int, size: int, offset: int) -> bytes:
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
        inode = self._inode(fd)
        end = offset + sum(map(len, parts))
        self._sizes[inode] = max(self.size(fd), end)
        self._held.setdefault(inode, []).append((offset, b"".join(parts)))

    def fdatasync(self, fd: int) -> None:
        inode = self._inode(fd)
        for offset, data in self._held.pop(inode, []):
            super().pwritev(fd, [data], offset)
        size = self._sizes.pop(inode, None)
        if size is not None and size > super().size(fd):
            super().ftruncate(fd, size)
        super().fdatasync(fd)

    def ftruncate(self, fd: int, size: int) -> None:
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
