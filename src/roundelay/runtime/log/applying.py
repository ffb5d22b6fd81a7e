"""A state machine on the log: entries are applied in order, and its state is stored now and then.

A task of its own applies a batch at a time. A snapshot is taken between two batches, in a thread:
nothing is applied meanwhile, and what is committed waits in memory or on disk.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from roundelay.core.log import Mark
from roundelay.runtime.errors import ClosedError, LogError
from roundelay.runtime.log.entries import Entry, EntryBatch
from roundelay.runtime.log.feed import Feed
from roundelay.runtime.log.reading import LogReader, Looks
from roundelay.runtime.waiters import Waiters

NOW_ENTRIES = 16
"""So many entries are applied at once when they are committed. Fewer: a write in a quiet group
takes longer; more: the group waits while they are applied."""


class StateMachine(Protocol):
    """What `join(machine=...)` takes: a state that follows from the log.

    It may also have `on_mark(mark)`, called at each committed mark, and `apply_all(batch)`, called
    instead of `apply` for each entry of an `EntryBatch`.
    """

    def apply(self, entry: Entry) -> object:
        """The next entry of the log. Whatever it raises ends the node."""
        ...

    def snapshot(self) -> bytes | Iterable[bytes]:
        """The state, after all entries that were applied. It is called, and the iterable read, in
        a thread of its own; nothing is applied meanwhile."""
        ...

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Take over a state that `snapshot` of this or another node gave. The chunks may be cut
        otherwise."""
        ...


class Applying:
    """Applies the log to the machine of one node."""

    def __init__(
        self,
        machine: StateMachine,
        feed: Feed,
        looks: Callable[[], Looks | None],
        load: Callable[[int, Callable[[Iterable[bytes]], None]], Awaitable[int]],
        take: Callable[[int, Callable[[], bytes | Iterable[bytes]]], Awaitable[str]],
        fail: Callable[[Exception], None],
        *,
        snapshot: int | None,
        snapshot_bytes: int,
    ) -> None:
        """`load` gives the snapshot at an index to a function, in a thread, or an older one if that
        is damaged, and returns the index of what it gave; `take` stores one, of what a function
        returns, and says why it could not; nothing if it could."""
        self.machine = machine
        self.applied = 0
        """Entries that were applied."""
        self.busy = False
        """Whether a snapshot is taken or restored."""
        self._feed = feed
        self._looks = looks
        self._load = load
        self._take = take
        self._fail = fail
        self._restore_at = snapshot
        """The index of a snapshot that is to be restored before more is applied."""
        self._taken_at = 0 if snapshot is None else snapshot
        self._bytes = 0
        """Bytes of log since the last snapshot."""
        self._bytes_max = snapshot_bytes
        self._wanted: list[asyncio.Future[int]] = []
        self._progress = Waiters()
        """Who waits until so many entries are applied."""
        self._idle: LogReader | None = None
        """The reader, while the task waits for more to be committed."""
        self._task: asyncio.Task[None] | None = None
        self._error: ClosedError | None = None
        self.on_mark: Callable[[Mark], None] = getattr(machine, "on_mark", lambda mark: None)
        """Called at each committed mark, in its place between the entries."""
        self._apply_all: Callable[[EntryBatch], None] = getattr(
            machine, "apply_all", self._apply_each
        )

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def restore(self, index: int) -> None:
        """The snapshot at this index has come from a peer: the log begins anew there."""
        self._restore_at = index
        self._feed.wake()

    def close(self, error: ClosedError) -> None:
        self._error = error
        for wanted in self._wanted:
            if not wanted.done():
                wanted.set_exception(error)
        self._wanted = []
        self._progress.wake()
        if self._task is not None and not self.busy:
            self._task.cancel()

    async def applied_up_to(self, length: int) -> None:
        """Wait until all entries below `length` are applied."""
        while self.applied < length:
            if self._error is not None:
                raise self._error
            await self._progress.wait(length)

    async def snapshot(self) -> int:
        """Store the state now; the index of the snapshot, once it is stored, or LogError if it
        cannot be."""
        if self._error is not None:
            raise self._error
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._wanted.append(future)
        self._feed.wake()
        return await future

    async def _run(self) -> None:
        try:
            while self._error is None:
                if self._restore_at is not None:
                    await self._restore()
                await self._apply()
        except (ClosedError, asyncio.CancelledError):
            pass
        except Exception as e:
            self._fail(e)

    async def _restore(self) -> None:
        index = self._restore_at
        assert index is not None
        self._restore_at = None
        self.busy = True
        try:
            index = await self._load(index, self.machine.restore)
        finally:
            self.busy = False
        self.applied = self._taken_at = index
        self._bytes = 0
        self._progress.wake(self.applied)

    async def _apply(self) -> None:
        """Apply what is committed, until a snapshot is to be taken or restored."""
        reader = LogReader(self._feed, self._looks(), self.applied)
        reader.on_mark = self.on_mark
        while self._restore_at is None and self._error is None:
            if self._wanted or self._bytes >= self._bytes_max:
                await self._snapshot()
                continue
            self._idle = reader
            try:
                arrival = await reader.step()
            finally:
                self._idle = None
            if type(arrival) is EntryBatch:
                self._apply_batch(arrival, reader.next)

    def _apply_batch(self, batch: EntryBatch, end: int) -> None:
        self._apply_all(batch)
        self.applied = end
        self._bytes += sum(map(len, batch.payloads))
        if self._progress:
            self._progress.wake(end)

    def apply_now(self) -> bool:
        """Apply what has just been committed, if the task waits for it and it is little; whether
        something was applied."""
        reader = self._idle
        if reader is None or self._restore_at is not None or self._wanted:
            return False
        if reader.next == self._feed.committed:
            return False
        try:
            arrival = reader.pop_now(NOW_ENTRIES)
            if type(arrival) is not EntryBatch:
                return False
            self._apply_batch(arrival, reader.next)
        except Exception as e:
            self._fail(e)
            return False
        return True

    def _apply_each(self, batch: EntryBatch) -> None:
        apply = self.machine.apply
        for entry in batch:
            self.applied = entry.index
            apply(entry)

    async def _snapshot(self) -> None:
        wanted, self._wanted = self._wanted, []
        index = self.applied
        self._bytes = 0
        why = ""
        if index != self._taken_at or not index:
            self.busy = True
            try:
                why = await self._take(index, self.machine.snapshot)
            finally:
                self.busy = False
        if not why:
            self._taken_at = index
        for future in wanted:
            if future.done():
                continue
            if why:
                future.set_exception(LogError(f"no snapshot was stored: {why}"))
            else:
                future.set_result(index)


def chunks_of(state: bytes | Iterable[bytes]) -> Iterable[bytes]:
    """What `snapshot` gave, as parts."""
    return (state,) if isinstance(state, bytes) else state
