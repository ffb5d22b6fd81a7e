"""The thread that writes a node's trace: bounded, in order, and never in the way of the node."""

import errno
import os
import queue
import threading
from pathlib import Path
from typing import Any

import pytest

from roundelay.runtime.trace_thread import BATCHES_MAX, TraceThread
from roundelay.trace.compact import Batch, Compactor
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.pieces import PieceWriter
from roundelay.trace.reader import read
from roundelay.trace.schema import Row
from roundelay.trace.writer import Writer

MANIFEST = Manifest("r", ("a", "b"))


def rows(first: int, count: int) -> list[Row]:
    return [Row("token", 0, 7, n, tag="acquire") for n in range(first, first + count)]


def batch(first: int, count: int = 3) -> Batch:
    compactor = Compactor()
    for row in rows(first, count):
        compactor.append(row)
    return compactor.take()


class SlowWriter(Writer):
    """A writer whose disk does nothing until it is let."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, MANIFEST)
        self.go = threading.Event()
        self.begun = threading.Event()
        self.failure: Exception | None = None

    def write(self, batch: Batch) -> None:
        self.begun.set()
        assert self.go.wait(60)
        if self.failure is not None:
            raise self.failure
        super().write(batch)


def test_batches_are_written_in_order_and_the_trace_is_whole_after_close(tmp_path: Path) -> None:
    thread = TraceThread(Writer(tmp_path, MANIFEST), "g/a")
    for first in range(0, 30, 3):
        thread.write(batch(first))
    thread.close()
    assert (read(tmp_path).rows, read(tmp_path).problems) == (rows(0, 30), [])


def test_an_empty_batch_is_no_job(tmp_path: Path) -> None:
    thread = TraceThread(Writer(tmp_path, MANIFEST), "g/a")
    thread.write(Compactor().take())
    thread.write(batch(0))
    thread.close()
    assert read(tmp_path).rows == rows(0, 3)


def test_a_roll_makes_a_file_of_what_was_written_before_it(tmp_path: Path) -> None:
    writer = PieceWriter(tmp_path, MANIFEST, name="a-7", unclosed={})
    thread = TraceThread(writer, "g/a")
    for first in (0, 3):
        thread.write(batch(first))
        thread.roll()
    thread.close()
    assert writer.manifest.pieces == 2
    assert read(tmp_path).rows == rows(0, 6)


class Letting(queue.Queue[Any]):
    """A queue that lets the disk of a writer go on once somebody has to wait for room."""

    def __init__(self, writer: SlowWriter) -> None:
        super().__init__(BATCHES_MAX)
        self.writer = writer

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if block and item is not None:
            self.writer.go.set()
        super().put(item, block, timeout)


def test_whoever_writes_waits_for_a_slow_disk_and_the_wait_is_counted(tmp_path: Path) -> None:
    writer = SlowWriter(tmp_path)
    thread = TraceThread(writer, "g/a")
    thread.write(batch(0))
    assert writer.begun.wait(60)
    thread._jobs = Letting(writer)
    for n in range(1, BATCHES_MAX + 1):
        thread.write(batch(3 * n))
    assert thread.waited == (0, 0.0)
    assert not writer.go.is_set()
    thread.write(batch(3 * BATCHES_MAX + 3))
    times, seconds = thread.waited
    assert (times, seconds >= 0) == (1, True)
    thread.close()
    assert read(tmp_path).rows == rows(0, 3 * (BATCHES_MAX + 2))


def test_no_more_batches_wait_than_may(tmp_path: Path) -> None:
    writer = SlowWriter(tmp_path)
    thread = TraceThread(writer, "g/a")
    done: list[int] = []

    def fill() -> None:
        for n in range(BATCHES_MAX + 3):
            thread.write(batch(3 * n))
            done.append(n)

    filler = threading.Thread(target=fill)
    filler.start()
    assert writer.begun.wait(60)
    assert len(done) <= BATCHES_MAX + 1
    writer.go.set()
    filler.join(60)
    thread.close()
    assert len(done) == BATCHES_MAX + 3
    assert read(tmp_path).rows == rows(0, 3 * (BATCHES_MAX + 3))


@pytest.mark.parametrize("waiting", range(BATCHES_MAX + 1))
def test_a_failure_is_told_to_whoever_writes_next(tmp_path: Path, waiting: int) -> None:
    writer = SlowWriter(tmp_path)
    writer.failure = TraceError("the disk is full")
    thread = TraceThread(writer, "g/a")
    for n in range(waiting + 1):
        thread.write(batch(3 * n))
        assert writer.begun.wait(60)
    writer.go.set()
    thread._thread.join(60)
    assert not thread._thread.is_alive()
    for call in (lambda: thread.write(batch(0)), thread.close):
        with pytest.raises(TraceError, match="the disk is full"):
            call()


def test_a_full_disk_ends_the_trace_and_the_manifest_says_why(tmp_path: Path) -> None:
    writer = SlowWriter(tmp_path)
    thread = TraceThread(writer, "g/a")
    writer.failure = writer._cannot_write(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    writer._counts[0, 7] = 3
    thread.write(batch(0))
    writer.go.set()
    with pytest.raises(TraceError, match="No space left"):
        thread.close()
    manifest = Manifest.from_json((tmp_path / "manifest.json").read_text())
    assert manifest.ended == {"0.7": "its disk was full"}


def test_a_bug_in_the_thread_ends_the_trace_and_not_the_node(tmp_path: Path) -> None:
    writer = SlowWriter(tmp_path)
    writer.failure = ZeroDivisionError("oh")
    writer.go.set()
    thread = TraceThread(writer, "g/a")
    thread.write(batch(0))
    with pytest.raises(TraceError, match=r"a bug in the writing of it \(ZeroDivisionError"):
        thread.close()
