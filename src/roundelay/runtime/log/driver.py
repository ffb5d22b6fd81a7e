"""What a node with a journal does besides: it performs the log's effects and feeds the core what
came of them.

    writer      a thread that writes what the core stores
    readers     two threads that read the journal, for peers that catch up and for slow readers
    feed        committed entries for the application
    appending   what the application appends
    syncs       linearizable reads
    applying    the state machine, if there is one
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias

from roundelay.core.contract import LogCore
from roundelay.core.effects import (
    Appended,
    Committed,
    Cut,
    Effect,
    Fork,
    Load,
    LoadSnapshot,
    LogChanged,
    Reset,
    Store,
    StoreSnapshot,
    Synced,
)
from roundelay.core.log import Checkpoint, KeptLog, LogRecord, LogStatus, Place
from roundelay.journal.policy import Policy
from roundelay.runtime.errors import (
    ClosedError,
    ConfigError,
    DiskError,
    FailedError,
    ForkError,
    LogError,
    NotPrimaryError,
    RoundelayError,
)
from roundelay.runtime.input_log import Input
from roundelay.runtime.instruments import Instruments
from roundelay.runtime.log.appending import Appending
from roundelay.runtime.log.applying import Applying, StateMachine, chunks_of
from roundelay.runtime.log.feed import Feed
from roundelay.runtime.log.reading import Looks
from roundelay.runtime.log.syncs import Syncs
from roundelay.runtime.log.writer import Target, Writer
from roundelay.runtime.log_inputs import encode_loaded, encode_numbers, encode_snapshot_part
from roundelay.runtime.meter import Histogram
from roundelay.runtime.waiters import Waiters
from roundelay.structures.errors import MachineError

READERS = 2
"""Threads that read the journal. Too few: a peer that catches up waits for a slow reader of this
node; too many: they compete for the disk."""
SCRUB_S = 60.0
"""After so many seconds the checksums of one more file of the journal are compared. Too small: the
disk is read for nothing; too large: damage is found when it is needed."""
HISTORY_BYTES = 1024 * 1024
"""Bytes of old entries that are read at a time for the application. Too small: many reads; too
large: memory for each reader."""
SLOW_BYTES = 16 * 1024 * 1024
"""If so many bytes wait for the disk while the node is behind, the disk is at fault, and not that
the group is faster than a fetch. Too small: it warns of the wrong thing; too large: not at all."""

LogEffect: TypeAlias = (
    Store
    | Cut
    | Reset
    | Load
    | StoreSnapshot
    | LoadSnapshot
    | Committed
    | Appended
    | Synced
    | LogChanged
    | Fork
)


class Journal(Target, Protocol):
    """What the driver needs of a journal, besides what the writer needs. These calls come from
    other threads than the writer's."""

    def load(self, place: Place, bytes_max: int) -> Sequence[bytes]:
        """Records for a peer: see `Load`."""
        ...

    def history(self, place: Place, index: int, bytes_max: int) -> Sequence[LogRecord]:
        """Records behind `place`, as soon as there is one that holds this index, or a later one;
        none if there is none yet. TruncatedError if it was removed."""
        ...

    def load_snapshot(self, index: int, offset: int, bytes_max: int) -> tuple[bytes, int] | None:
        """A part of that snapshot and the size of its file; None if it is gone."""
        ...

    def restore(self, index: int, into: Callable[[Iterable[bytes]], None]) -> "Restored":
        """Give the state of that snapshot to `into`. If it is damaged it is set aside, and an older
        one taken, or none if the log is whole; LogError if neither can be."""
        ...

    def take(self, checkpoint: Checkpoint, chunks: Iterable[bytes]) -> None:
        """Store a snapshot of the state at the place of the checkpoint."""
        ...

    def set_able(self) -> None:
        """The node is able from now on; in the writer's thread."""
        ...

    def scrub(self) -> None:
        """Compare some checksums; RoundelayError if one is wrong."""
        ...

    @property
    def first(self) -> int: ...

    @property
    def snapshot(self) -> int | None:
        """The index of the newest snapshot."""
        ...


Step = Callable[[Input, bytes, Callable[[], list[Effect[Any]]]], None]
"""Gives the core an input, and performs the effects."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a machine begins with."""

    index: int
    """Of the snapshot that was restored; 0 if none was."""
    damaged: str = ""
    """What was set aside instead, as a sentence; empty if nothing was."""


@dataclass(frozen=True, slots=True)
class JournalSetup:
    """The journal of a node, and what it was opened with."""

    journal: Journal
    kept: KeptLog
    policy: Policy
    wall_ns: Callable[[], int]
    """The wall clock of the machine."""
    machine: StateMachine | None = None
    snapshot_bytes: int = 1 << 28
    repaired: list[str] = field(default_factory=list)
    """What was repaired at the start, as sentences."""


class LogDriver:
    """The log of one node."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        core: LogCore[Any],
        setup: "JournalSetup",
        instruments: Instruments,
        *,
        step: Step,
        flush: Callable[[], None],
        fail: Callable[[Exception], None],
        name: str,
    ) -> None:
        """`step`, `flush` and `fail` are the node's; `name` is for people."""
        journal, kept, machine = setup.journal, setup.kept, setup.machine
        self.policy = setup.policy
        self.sync_times = Histogram()
        """How long the disk took to sync."""
        self.looks: Looks | None = None
        """The node's reading side, for readers of the log to look at the socket."""
        self._loop = loop
        self._core = core
        self._journal = journal
        self._step = step
        self._fail = fail
        self._node_log = instruments.node_log
        self._tracing = instruments.tracing
        self._name = name
        self.session = 0
        """The session of this life of the node."""
        self.on_changed: Callable[[], None] = lambda: None
        """Called when the log has opened or closed, or the node's condition has changed."""
        self._error: ClosedError | None = None
        self._able = kept.able
        """Whether the journal knows that this node is able."""
        self._scrubbing: asyncio.TimerHandle | None = None
        self._stored = 0
        """All stores up to this number are done."""
        self._after = False
        """Whether `after_effects` runs."""
        self._changed = Waiters()
        self._on_stored = Waiters()
        self._last_sync_s = 0.0
        """How long the last sync took."""
        self._full = False
        """Whether the disk had no room for what it was last asked to store."""
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix=f"journal {name}")
        self.feed = Feed(kept.first, length_of(kept), kept.committed, kept.marks, self._history)
        self.appending = Appending(loop, core, instruments, flush, setup.wall_ns)
        self.syncs = Syncs(loop, self._ask_sync, lambda: self.status.state == "open")
        self.writer = Writer(loop, journal, setup.policy, self._on_report, name)
        self.writer.committed = kept.committed
        self.applying: Applying | None = None
        if machine is not None:
            self.applying = Applying(
                machine,
                self.feed,
                lambda: self.looks,
                self._restore,
                self._take,
                self._fail_in_machine,
                snapshot=kept.snapshot,
                snapshot_bytes=setup.snapshot_bytes,
            )

    @property
    def status(self) -> LogStatus:
        return self.appending.log

    def document(self, fsync: str) -> dict[str, Any]:
        """What `roundelay status` shows."""
        status, feed = self.status, self.feed
        return {
            "id": status.id.hex(),
            "generation": status.generation,
            "state": status.state,
            "condition": status.condition,
            "why": status.why,
            "term": str(status.term),
            "voters": list(status.voters),
            "first": feed.first,
            "length": status.length,
            "stored": status.stored,
            "committed": status.committed,
            "lag": status.length - status.committed,
            "applied": None if self.applying is None else self.applying.applied,
            "machines": self._machine_status(),
            "snapshot": self._journal.snapshot,
            "waiting": status.waiting,
            "waiting_bytes": status.waiting_bytes,
            "unwritten_bytes": self.writer.waiting_bytes,
            "fsync": fsync,
            "sync": self.sync_times.as_dict(),
            "commit": self.appending.commit_times.as_dict(),
        }

    def _machine_status(self) -> object:
        """What the machines tell of themselves, by name, if they do."""
        machine = None if self.applying is None else self.applying.machine
        status = getattr(machine, "machine_status", None)
        return None if status is None else status()

    def start(self) -> None:
        self._scrubbing = self._loop.call_later(SCRUB_S, self._scrub)
        if self.applying is not None:
            self.applying.start()

    def _scrub(self) -> None:
        self._scrubbing = self._loop.call_later(SCRUB_S, self._scrub)

        def done(found: "asyncio.Future[None]") -> None:
            if not found.cancelled() and (error := found.exception()) is not None:
                self._node_log.unreadable(str(error))

        self._run(self._journal.scrub).add_done_callback(done)

    def look_at_disk(self) -> None:
        """Once a second: warn while the disk does not keep up."""
        if self.status.condition != "behind":
            return
        waiting_bytes = self.writer.waiting_bytes
        if self._full:
            self._node_log.disk_full()
        elif waiting_bytes >= SLOW_BYTES:
            self._node_log.disk_behind(waiting_bytes, self._last_sync_s)

    # Effects

    def perform(self, effect: LogEffect) -> None:
        if self._tracing is not None:
            self._tracing.write_out()  # The journal outlives this node, as the trace has to.
        if type(effect) is Store:
            self.feed.store(effect.records)
            self.writer.put(effect)
        elif type(effect) is Committed:
            self.writer.committed = effect.length
            self.feed.commit(effect.length)
        elif type(effect) is Appended:
            self.appending.on_appended(effect)
        else:
            self._perform_rare(effect)

    def after_effects(self) -> None:
        """All effects of an input are performed: do what they have made possible, if it is quick,
        and do not wait for the next turn of the event loop."""
        if self._after:
            return  # This is within the loop below, which goes on with it.
        self._after = True
        try:
            while self._error is None:
                if self.writer.due:
                    self._on_report()
                elif self.applying is None or not self.applying.apply_now():
                    break
        finally:
            self._after = False

    def _perform_rare(self, effect: LogEffect) -> None:
        match effect:
            case Cut():
                self.feed.cut(effect.place)
                self.writer.put(effect)
            case Reset():
                self.writer.put(effect)
                self.feed.reset(effect.checkpoint, effect.mark)
                if self.applying is not None and effect.snapshot is not None:
                    self.applying.restore(effect.snapshot)
            case StoreSnapshot():
                self.writer.put(effect)
            case Load():
                self._load(effect)
            case LoadSnapshot():
                self._load_snapshot(effect)
            case Synced():
                self.syncs.on_synced(effect)
            case LogChanged():
                self._on_changed()
            case Fork():
                # Nothing that follows among the effects is done any more.
                raise ForkError(f"{effect.why}; this node has stopped")
            case Store() | Committed() | Appended():
                raise AssertionError("`perform` handles these itself")

    def _on_changed(self) -> None:
        status = self.status
        self.appending.set_open(status.state == "open")
        self._node_log.log_changed(status)
        if not self._able and status.condition == "able":
            self._able = True
            self.writer.call(self._journal.set_able)
        self.appending.wake_waiting()
        self.syncs.on_changed()
        self._changed.wake()
        self.on_changed()

    # What the threads have done

    def _on_report(self) -> None:
        """In the event loop: the writer has something to tell."""
        report = self.writer.take()
        for duration_s in report.sync_s:
            self.sync_times.add(duration_s)
            self._last_sync_s = duration_s
        if self._error is not None:
            return
        if report.error is not None:
            self._fail(_disk_error(report.error))
            return
        if report.stored > self._stored:
            number = self._stored = report.stored
            self._full = False
            self._step(Input.STORED, encode_numbers(number), partial(self._core.stored, number))
            self._on_stored.wake(number)
        if report.unstored and self._error is None:
            number = report.unstored
            self._full = True
            self._node_log.disk_full()
            self._step(Input.UNSTORED, encode_numbers(number), partial(self._core.unstored, number))
        if report.first is not None and self._error is None:
            self._tell_held()

    def _tell_held(self) -> None:
        first, snapshot = self._journal.first, self._journal.snapshot
        self.feed.removed(first)
        data = encode_numbers(first, -1 if snapshot is None else snapshot)
        self._step(Input.HELD, data, partial(self._core.held, first, snapshot))

    def _load(self, effect: Load) -> None:
        request = effect.request

        def done(found: "asyncio.Future[Sequence[bytes]]") -> None:
            if self._error is not None or found.cancelled():
                return
            error = found.exception()
            records = None if error is not None else found.result()
            if error is not None:
                self._node_log.unreadable(str(error))
            self._step(
                Input.LOADED,
                encode_loaded(request, records),
                partial(self._core.loaded, request, records),
            )

        self._run(partial(self._journal.load, effect.place, effect.bytes_max)).add_done_callback(
            done
        )

    def _load_snapshot(self, effect: LoadSnapshot) -> None:
        request = effect.request

        def done(found: "asyncio.Future[tuple[bytes, int] | None]") -> None:
            if self._error is not None or found.cancelled():
                return
            part = None if found.exception() is not None else found.result()
            data, size = (None, 0) if part is None else part
            self._step(
                Input.SNAPSHOT_LOADED,
                encode_snapshot_part(request, data, size),
                partial(self._core.snapshot_loaded, request, data, size),
            )

        self._run(
            partial(self._journal.load_snapshot, effect.index, effect.offset, effect.bytes_max)
        ).add_done_callback(done)

    def _history(self, place: Place, index: int) -> "asyncio.Future[Sequence[LogRecord]]":
        return self._run(partial(self._journal.history, place, index, HISTORY_BYTES))

    def _run(self, call: Callable[[], Any]) -> "asyncio.Future[Any]":
        return self._loop.run_in_executor(self._readers, call)

    # The machine's state

    async def _restore(self, index: int, into: Callable[[Iterable[bytes]], None]) -> int:
        """Restore this snapshot or, if it is damaged, an older one; the index of that."""
        await self._until_stored(self.writer.issued)
        try:
            restored: Restored = await self._run(partial(self._journal.restore, index, into))
        except LogError as e:
            self._node_log.trouble(str(e))
            error = FailedError(str(e))
            self._fail(error)
            raise error from None
        if self._error is not None:
            raise self._error
        if restored.damaged:
            self._node_log.snapshot_damaged(restored.damaged)
            self._tell_held()
        return restored.index

    async def _until_stored(self, number: int) -> None:
        """Wait until the writer has done what it was given up to this number."""
        if self._error is None and self._stored < number:
            await self._on_stored.wait(number)
        if self._error is not None:
            raise self._error

    async def _take(self, index: int, state: Callable[[], bytes | Iterable[bytes]]) -> str:
        """Store a snapshot at this index; why it cannot be done now, if so."""
        try:
            checkpoint = self._core.snapshot_state(index)
        except ValueError as e:
            self._node_log.no_snapshot(str(e))
            return str(e)
        journal = self._journal
        try:
            await self._run(lambda: journal.take(checkpoint, chunks_of(state())))
        except OSError as e:
            why = e.strerror or str(e)
            self._node_log.no_snapshot(why)
            return why
        if self._error is not None:
            raise self._error
        self._tell_held()
        return ""

    async def snapshot(self) -> int:
        if self.applying is None:
            raise ConfigError("this node has no machine to take a snapshot of; see join(machine=)")
        return await self.applying.snapshot()

    def _fail_in_machine(self, error: Exception) -> None:
        applied = 0 if self.applying is None else self.applying.applied
        if isinstance(error, MachineError):
            self._node_log.trouble(str(error))
            self._fail(FailedError(str(error)))
            return
        self._node_log.machine_failed(applied, error)
        self._fail(
            FailedError(
                f"the machine failed at entry {applied} ({error!r}), as it does at every node: "
                "correct it, and start the nodes again"
            )
        )

    # What the application asks

    def not_open(self) -> NotPrimaryError:
        return self.appending.not_open()

    def not_in_time(self, timeout_s: float | None) -> str:
        why = self.status.why
        return f"not within {timeout_s or 0:g} s" + (f": {why}" if why else "")

    def _ask_sync(self, request: int) -> None:
        self._step(Input.SYNC, encode_numbers(request), partial(self._core.sync, request))

    async def sync(self) -> int:
        length = await self.syncs.sync()
        if self.applying is not None:
            await self.applying.applied_up_to(length)
        return length

    async def caught_up(self) -> None:
        """Wait until this node takes part in an open view and lacks nothing."""
        while not self._keeps_up():
            if self._error is not None:
                raise self._error
            await self._changed.wait()

    def _keeps_up(self) -> bool:
        status = self.status
        return status.state == "open" and status.condition not in ("filling", "behind")

    async def until_committed(self) -> None:
        """Wait until all that was appended here is committed, if a view is open that can do it."""
        run = self.appending.last()
        if run is not None and self.status.state == "open":
            number = run.first + run.count - 1
            while not run.find(number)[0]:
                await _Waiting(run, number)

    # The end

    def close(self, error: ClosedError) -> None:
        """Write what waits, and stop; every task that waits is told `error`."""
        self._error = error
        if self._scrubbing is not None:
            self._scrubbing.cancel()
        self.appending.close(error)
        self.syncs.close(error)
        self.feed.close(error)
        if self.applying is not None:
            self.applying.close(error)
        self._changed.wake()
        self._on_stored.wake()
        self.writer.stop()
        self._readers.shutdown(wait=False, cancel_futures=True)

    async def closed(self) -> None:
        """Wait until the journal is closed: then another node can open it."""
        if self.writer.alive:
            loop = asyncio.get_running_loop()
            ended = await loop.run_in_executor(None, self.writer.join)
            if not ended:
                self._node_log.slow_disk()

    def abandon(self) -> None:
        """The event loop is closed: release the journal for the next one."""
        self.writer.stop()
        self.writer.join()
        self._readers.shutdown(wait=False, cancel_futures=True)


def length_of(kept: KeptLog) -> int:
    """How many entries a log had when it was opened."""
    place = kept.checkpoint.place
    for record in kept.tail:
        place = place.past(record)
    return place.length


class _Waiting:
    """Awaits a change of a run."""

    def __init__(self, run: Any, number: int) -> None:
        self._run = run
        self._number = number

    def __await__(self) -> Any:
        return self._run.wait(self._number, None)


def _disk_error(error: Exception) -> RoundelayError:
    if isinstance(error, RoundelayError):
        return error
    what = getattr(error, "strerror", None) or str(error) or repr(error)
    return DiskError(
        f"the journal cannot be written ({what}), so this node has stopped: what it stored last "
        "may be lost; check the disk, then start it again"
    )
