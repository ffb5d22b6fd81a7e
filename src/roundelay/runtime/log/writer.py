"""The writer thread: what the core wants stored, one batch after another.

The thread takes everything that waits, writes it with as few calls of the system as it can, syncs
once, and reports once. While it syncs the next batch gathers: that is all there is to group commit.
With the policy `interval` another thread syncs, and the writer goes on meanwhile.

Theory of operation
===================

The event loop puts jobs into a queue and never waits for the thread. Only where nothing has to be
synced before it counts as stored, and the thread has nothing to do, the loop writes a small batch
itself: to wake the thread and to be woken takes five times as long as such a write, which goes into
the kernel's memory. It does not while the disk syncs or was slow, nor where a file would have to
grow.

The thread tells the loop what
is done through two numbers and one wake-up, which is not repeated while the loop has yet to answer.
If the disk is full, the first job that was not done and all that the loop put into the queue until
it heard of that are dropped: the core then cuts its log to what is stored. Any other failure of the
disk ends the thread and the node: after a failed sync nobody knows which pages the kernel dropped,
and a second one would report success.
"""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from roundelay.core.effects import Cut, Reset, Store, StoreSnapshot
from roundelay.core.log import Checkpoint, LogRecord, Mark, Place
from roundelay.journal.policy import Policy
from roundelay.runtime.log.syncer import BEHIND_BYTES, Syncer

NOTE_S = 1.0
"""After so many seconds without anything to write the thread writes down how far the log is
committed. Too small: writes for nothing; too large: readers in other processes see the newest
entries late."""
STOP_S = 10.0
"""How long the end of a node waits for its writer, in seconds. Too small: what waits to be written
is written after the node seems to be gone; too large: a disk that hangs holds up the program."""
BATCH_BYTES = 8 * 1024 * 1024
"""Bytes that are written and synced at a time, at most, about. Too small: a sync for little; too
large: nobody hears of what is stored for long."""
HERE_BYTES = 16 * 1024
"""Batches up to this size may be written by the event loop. Too small: a commit in a quiet group
takes longer; too large: the loop copies what the thread could copy meanwhile."""
SLOW_S = 0.002
"""After a write that took so long the thread writes everything for a while. Too small: a busy
machine makes commits slow; too large: a slow disk holds up the loop."""
SLOW_FOR_S = 1.0
"""So long."""

Job: TypeAlias = Store | Cut | Reset | StoreSnapshot
JOBS = (Store, Cut, Reset, StoreSnapshot)
Call: TypeAlias = Callable[[], None]


class DiskFullError(Exception):
    """There was no room, and the journal is as it was before the call."""


class Target(Protocol):
    """What the writer needs of a journal."""

    def write(self, records: Sequence[LogRecord], committed: int) -> int:
        """Append records; `DiskFullError` if there is no room, and then nothing has changed. So
        many entries are `committed`; how many of them the journal says so of from now on."""
        ...

    def has_room(self, size: int) -> bool:
        """Whether so many bytes can be written with one call of the system."""
        ...

    def cut(self, place: Place) -> None: ...

    def reset(self, checkpoint: Checkpoint, mark: Mark) -> None:
        """Begin the journal anew; `DiskFullError` as with `write`."""
        ...

    def write_snapshot(self, index: int, offset: int, data: bytes, *, last: bool) -> bool:
        """Write a part of a snapshot; False if the whole is damaged, and was dropped."""
        ...

    def sync(self) -> None:
        """Sync what was written; with the policy `interval` in another thread than all else."""
        ...

    def note(self, committed: int) -> int:
        """Write down how far the log is committed, if that is not known on disk; how far."""
        ...

    def trim(self) -> int | None:
        """Remove what need not be kept; the new first index, or None if nothing was removed."""
        ...

    def close(self) -> None:
        """The end, also after an error."""
        ...


class Writer:
    """The thread that writes one node's journal."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        target: Target,
        policy: Policy,
        report: Callable[[], None],
        name: str,
    ) -> None:
        """`report` is called in the event loop when `take` has something to tell."""
        self.committed = 0
        """How far the log is committed; set by the event loop."""
        self.issued = 0
        """The number of the last job."""
        self.waiting_bytes = 0
        """Bytes that were put and are not stored yet, about."""
        self._loop = loop
        self._target = target
        self._policy = policy
        self._report = report
        self._jobs: queue.SimpleQueue[tuple[Job | Call, int] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        """Guards what follows, up to `_told`."""
        self._stored = 0
        self._unstored = 0
        self._first: int | None = None
        self._error: Exception | None = None
        self._sync_s: list[float] = []
        self._done_bytes = 0
        self._told = False
        """Whether the loop was told that there is something, and has not taken it yet."""
        self.due = False
        """Whether `take` has something to tell of what was written in the event loop itself, and
        `report` is not called for it: whoever has called `put` takes it."""
        self._taken = False
        """Whether that was done in this turn of the event loop already."""
        self._full = False
        """Whether jobs are dropped until the loop has heard that the disk is full."""
        self._skip = 0
        """Jobs up to this number are dropped."""
        self._dirty_since: float | None = None
        """When something was written that is not synced, on the monotonic clock."""
        self._noted = 0
        """What the journal says that is committed."""
        self._written_at = 0.0
        self._behind = 0
        """Bytes that were written since the sync under way began."""
        self._failed: Exception | None = None
        """What went wrong in the event loop."""
        self._busy = threading.Lock()
        """Held by whoever works with the target."""
        self._over = policy.name == "always"
        """Whether the event loop writes nothing itself."""
        self._slow_until = 0.0
        self._syncer: Syncer | None = None
        if policy.name == "interval":
            self._syncer = Syncer(target.sync, self._on_synced, name)
        self._thread = threading.Thread(target=self._run, name=f"journal {name}", daemon=True)
        self._thread.start()

    # In the event loop

    def put(self, job: Job) -> None:
        assert job.number > self.issued, "the numbers of jobs grow"
        before, self.issued = self.issued, job.number
        size = _size(job)
        self.waiting_bytes += size
        quick = not self._over and self._stored == before and size <= HERE_BYTES
        if quick and type(job) is Store and self._busy.acquire(blocking=False):
            try:
                if self._write_here(job, size):
                    return
            finally:
                self._busy.release()
        self._jobs.put((job, size))

    def _write_here(self, job: Store, size: int) -> bool:
        """Write this in the event loop, if that is quick."""
        began = time.monotonic()
        syncing = self._syncer is not None and self._syncer.busy
        if self._over or self._full or syncing or began < self._slow_until:
            return False
        if not self._target.has_room(size):
            return False
        try:
            self._noted = self._target.write(job.records, self.committed)
        except DiskFullError:
            self._full = True
            self._tell(unstored=job.number, size=size, here=True)
            return True
        except Exception as e:
            self._failed = e
            self._over = True
            self._jobs.put((_nothing_to_do, 0))  # The thread ends with this.
            return True
        self._written_at = now = time.monotonic()
        if now - began > SLOW_S:
            self._slow_until = now + SLOW_FOR_S
        if self._dirty_since is None:
            self._dirty_since = now
            if self._syncer is not None:
                self._jobs.put((_nothing_to_do, 0))  # The thread has to see when to sync.
        self._tell(stored=job.number, size=size, here=True)
        return True

    def take(self) -> "Report":
        """What has happened since the last call."""
        if self.due:
            self.due, self._taken = False, True
            self._loop.call_soon(self._end_turn)
        with self._lock:
            self._told = False
            report = Report(
                self._stored, self._unstored, self._first, self._error, tuple(self._sync_s)
            )
            self.waiting_bytes -= self._done_bytes
            self._unstored, self._first, self._done_bytes = 0, None, 0
            self._sync_s.clear()
            if report.unstored:
                self._skip = self.issued
                self._full = False
        return report

    def _end_turn(self) -> None:
        self._taken = False

    def call(self, work: Callable[[], None]) -> None:
        """Do this in the thread, after all that was put before."""
        self._jobs.put((work, 0))

    def stop(self) -> None:
        """Write what waits, close the journal and end the thread."""
        self._jobs.put(None)

    def join(self, timeout_s: float = STOP_S) -> bool:
        """Wait for the end of the thread; False if it takes too long."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    # In the thread

    def _run(self) -> None:
        try:
            ended = False
            while not ended:
                jobs, ended = self._gather()
                with self._busy:
                    self._over = self._over or ended
                    if jobs:
                        self._write(jobs)
                    self._sync_if_due(ended=ended)
                    if (first := self._target.trim()) is not None:
                        self._tell(first=first)
        except Exception as e:
            self._tell(error=e)
        with self._busy:
            self._over = True
        if self._syncer is not None:
            self._syncer.stop()
        try:
            self._target.close()
        except Exception as e:
            self._tell(error=e)

    def _gather(self) -> tuple[list[Job | Call], bool]:
        """Everything that waits, at least one job unless a sync or a note is due; and whether the
        thread is to end."""
        try:
            item = self._jobs.get(timeout=self._patience_s())
        except queue.Empty:
            return [], False
        jobs: list[Job | Call] = []
        size = 0
        while True:
            if item is None:
                return jobs, True
            job, bytes_ = item
            size += bytes_
            if not isinstance(job, JOBS) or (not self._full and job.number > self._skip):
                jobs.append(job)
            else:
                self._drop(bytes_)
            if size >= BATCH_BYTES:
                return jobs, False
            try:
                item = self._jobs.get_nowait()
            except queue.Empty:
                return jobs, False

    def _patience_s(self) -> float:
        if self._syncer is not None and self._syncer.busy:
            return NOTE_S
        if self._dirty_since is not None and self._policy.name == "interval":
            return max(0.0, self._dirty_since + self._policy.interval_s - time.monotonic())
        return NOTE_S

    def _write(self, jobs: list[Job | Call]) -> None:
        """Do these jobs, sync as the policy wants it, and report."""
        target, at, done = self._target, 0, 0
        unstored = 0
        size = sum(_size(job) for job in jobs if isinstance(job, JOBS))
        try:
            while at < len(jobs):
                job = jobs[at]
                if type(job) is Store:
                    records = list(job.records)
                    after = at + 1
                    while after < len(jobs) and type(more := jobs[after]) is Store:
                        records += more.records
                        after += 1
                    if records:
                        self._noted = target.write(records, self.committed)
                        self._written_at = time.monotonic()
                    done, at = job.number + after - 1 - at, after
                    continue
                if not isinstance(job, JOBS):
                    job()
                    at += 1
                    continue
                whole = True
                if type(job) is Cut:
                    target.cut(job.place)
                elif type(job) is Reset:
                    target.reset(job.checkpoint, job.mark)
                elif type(job) is StoreSnapshot:
                    whole = target.write_snapshot(job.index, job.offset, job.data, last=job.last)
                if not whole:
                    unstored = job.number
                    break
                done, at = job.number, at + 1
        except DiskFullError:
            failed = jobs[at]
            assert isinstance(failed, JOBS)
            unstored = failed.number
        if done:
            if self._policy.name == "always":
                self._sync()
            elif self._dirty_since is None:
                self._dirty_since = time.monotonic()
        self._full = self._full or bool(unstored)
        self._behind += size
        if self._syncer is not None and self._behind > BEHIND_BYTES:
            self._syncer.wait()
        if not (done or unstored):
            return
        self._tell(stored=done, unstored=unstored, size=size)

    def _sync_if_due(self, *, ended: bool) -> None:
        quiet = time.monotonic() >= self._written_at + NOTE_S
        if self._noted != self.committed and (ended or quiet):
            self._written_at = time.monotonic()
            before, self._noted = self._noted, self._target.note(self.committed)
            if self._noted != before:
                self._dirty_since = self._dirty_since or time.monotonic()
        syncer = self._syncer
        if syncer is not None and ended:
            syncer.wait()
        if self._failed is not None:
            raise self._failed
        if syncer is None:
            return
        if syncer.failed is not None:
            raise syncer.failed
        if self._dirty_since is None or syncer.busy:
            return
        if ended:
            self._sync()
        elif time.monotonic() >= self._dirty_since + self._policy.interval_s:
            self._dirty_since, self._behind = None, 0
            syncer.begin()

    def _sync(self) -> None:
        began = time.monotonic()
        self._target.sync()
        self._dirty_since = None
        with self._lock:
            self._sync_s.append(time.monotonic() - began)

    def _on_synced(self, seconds: float) -> None:
        """In the thread that syncs."""
        with self._lock:
            self._sync_s.append(seconds)
        self._jobs.put((_nothing_to_do, 0))  # The writer may have to ask for the next one, or end.

    def _drop(self, size: int) -> None:
        with self._lock:
            self._done_bytes += size

    def _tell(
        self,
        *,
        stored: int = 0,
        unstored: int = 0,
        first: int | None = None,
        size: int = 0,
        error: Exception | None = None,
        here: bool = False,
    ) -> None:
        """Tell the event loop; `here` says that this is called in it."""
        with self._lock:
            self._stored = max(self._stored, stored)
            self._unstored = self._unstored or unstored
            self._first = first if first is not None else self._first
            self._error = self._error or error
            self._done_bytes += size
            if self._told:
                return
            self._told = True
        if here:
            # The first of a turn at once, so that the group does not wait for the rest of the turn;
            # the others together, so that not each is acknowledged by itself.
            if self._taken:
                self._loop.call_soon(self._report)
            else:
                self.due = True
            return
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody listens any more.
            self._loop.call_soon_threadsafe(self._report)


class Report:
    """What a writer has done."""

    __slots__ = ("error", "first", "stored", "sync_s", "unstored")

    def __init__(
        self,
        stored: int,
        unstored: int,
        first: int | None,
        error: Exception | None,
        sync_s: tuple[float, ...],
    ) -> None:
        self.stored = stored
        """All jobs up to this number are done."""
        self.unstored = unstored
        """The first job that was not done, for lack of room or since it was damaged; 0 if all
        were."""
        self.first = first
        """Entries below this index were removed; None if none were."""
        self.error = error
        """What ended the writer."""
        self.sync_s = sync_s
        """How long each sync took, in seconds."""


def _nothing_to_do() -> None:
    pass


def _size(job: Job) -> int:
    if type(job) is Store:
        return sum(len(r.body) + 64 if hasattr(r, "body") else 64 for r in job.records)
    return len(job.data) if type(job) is StoreSnapshot else 64
