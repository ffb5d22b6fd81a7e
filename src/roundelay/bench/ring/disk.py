"""What the disk below journals does by itself, without a group: the floor of every figure."""

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SYNCS = 100
"""How many single syncs are timed. Fewer: one slow sync counts much; more: they take seconds."""
RECORD_BYTES = 200
"""Bytes that are written before each sync: a small packet with its head."""
WRITTEN_BYTES = 128 * 1024 * 1024
"""Bytes that are written in a row. Fewer: a cache of the device takes them all; more: the disk
wears."""
BLOCK_BYTES = 1024 * 1024
PACKET_BYTES = 60_000
"""Bytes of one write whose processor time is taken: a large packet."""
SYNC_BYTES = 8 * 1024 * 1024
"""Bytes between two syncs while much is written, as a journal under load has them."""


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk at one moment."""

    fdatasync_ms: float
    """The median time of an `fdatasync` after a small write to a file that has its blocks."""
    fdatasync_p99_ms: float
    bytes_per_s: float
    """How fast it takes what is written in a row."""
    cpu_s_per_byte: float
    """Processor time of the kernel to take a byte that is written and not synced."""


def measure(directory: Path) -> Disk:
    """Look at the disk that holds this directory; takes about a second."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        descriptor = file.fileno()
        os.posix_fallocate(descriptor, 0, WRITTEN_BYTES)
        os.fsync(descriptor)
        cpu_s_per_byte = _cpu_s_per_byte(descriptor)
        rate = _rate(descriptor)
        times = sorted(_sync_s(descriptor, i * RECORD_BYTES) for i in range(SYNCS))
    return Disk(median(times) * 1e3, times[len(times) * 99 // 100] * 1e3, rate, cpu_s_per_byte)


def _cpu_s_per_byte(descriptor: int) -> float:
    """Measured with packets of a journal, in a file that has room and was not written yet."""
    packet, packets = os.urandom(PACKET_BYTES), WRITTEN_BYTES // PACKET_BYTES
    before = time.process_time()
    for i in range(packets):
        os.pwrite(descriptor, packet, i * PACKET_BYTES)
    spent = time.process_time() - before
    os.fdatasync(descriptor)
    return spent / (packets * PACKET_BYTES)


def _rate(descriptor: int) -> float:
    block = os.urandom(BLOCK_BYTES)
    before = time.monotonic()
    for at in range(0, WRITTEN_BYTES, BLOCK_BYTES):
        os.pwrite(descriptor, block, at)
        if (at + BLOCK_BYTES) % SYNC_BYTES == 0:
            os.fdatasync(descriptor)
    return WRITTEN_BYTES / (time.monotonic() - before)


def _sync_s(descriptor: int, at: int) -> float:
    """The time of one sync; the blocks were written before, so it has no metadata to write."""
    os.pwrite(descriptor, os.urandom(RECORD_BYTES), at)
    before = time.monotonic()
    os.fdatasync(descriptor)
    return time.monotonic() - before
