"""The thread that writes a node's trace.

The event loop gathers rows and hands them over in batches. The thread makes columns of a batch,
compresses and writes them, mostly without Python's lock. If it cannot keep up, at most
`BATCHES_MAX` batches wait; then the event loop waits too, and that is counted. Rows are never
dropped, unless the disk fails: the trace then ends there.
"""

import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from roundelay.trace.compact import Batch
from roundelay.trace.manifest import TraceError
from roundelay.trace.pieces import PieceWriter
from roundelay.trace.writer import Writer

BATCHES_MAX = 4
"""Batches that may wait. Too few: a short delay of the disk stops the node; too many: memory."""

Job: TypeAlias = Callable[[], object]


class TraceThread:
    """Writes what it is given with a writer that nobody else uses any more.

    After a failure of the disk every call raises its TraceError, and the writer is abandoned.
    """

    def __init__(self, writer: Writer, name: str) -> None:
        self.waited = (0, 0.0)
        """How often the event loop had to wait until there was room for a batch, and for how many
        seconds in all."""
        self._writer = writer
        self._error: TraceError | None = None
        self._jobs: queue.Queue[Job | None] = queue.Queue(BATCHES_MAX)
        self._jobs.put(writer.prepare)  # Now the node has little else to do.
        self._thread = threading.Thread(target=self._run, name=f"trace {name}", daemon=True)
        self._thread.start()

    def write(self, batch: Batch) -> None:
        if batch.size:
            self._put(partial(self._writer.write, batch))

    def roll(self) -> None:
        """Make a whole file of what was written so far."""
        assert isinstance(self._writer, PieceWriter)
        self._put(self._writer.roll)

    def close(self) -> None:
        """Write what waits, and the manifest; the trace is whole when this returns."""
        self._put(self._writer.close)
        self._jobs.put(None)
        self._thread.join()
        self._raise()

    def _put(self, job: Job) -> None:
        self._raise()
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            began = time.monotonic()
            self._jobs.put(job)
            times, seconds = self.waited
            self.waited = times + 1, seconds + time.monotonic() - began

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    # In the thread

    def _run(self) -> None:
        while self._work():
            pass

    def _work(self) -> bool:
        """Do the next job; False if that was the last."""
        job = self._jobs.get()
        if job is None:
            return False
        try:
            job()
        except TraceError as e:
            self._fail(e)
        except Exception as e:  # The event loop must not wait for a thread that has ended.
            self._fail(TraceError(f"a bug in the writing of it ({e!r}); please report it"))
        return self._error is None

    def _fail(self, error: TraceError) -> None:
        self._writer.abandon()
        self._error = error
        while True:  # The event loop may wait for room, and asks no more once it has found this.
            try:
                self._jobs.get_nowait()
            except queue.Empty:
                return
