"""The log of a simulated node, as its driver keeps it: a journal on a disk, written by one writer,
and an application that is given what is committed.

The writer takes all that waits, writes it and syncs it, and while it syncs the next batch gathers.
Cuts and resets are synced alone, before anything behind them is written. What happens to the disk
is in `disk`; here is how long that takes and what the core is told.

The application is a chain of digests over all entries: two nodes with equal entries have equal
states. Its clients append, open sessions by name, and read.
"""

from collections import deque
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

from roundelay.core.checksum import crc32
from roundelay.core.contract import LogCore, QueueFullError
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
from roundelay.core.ids import NodeId
from roundelay.core.log import Checkpoint, Entries, KeptLog, LogRecord, LogStatus, Mark, Place
from roundelay.core.value import value
from roundelay.sim.application import Application
from roundelay.sim.clients import Clients, Machines
from roundelay.sim.disk import Disk, Ending, Mood, Policy, position
from roundelay.structures.replica import TICK
from roundelay.wire.log_record import encode_record
from roundelay.wire.primitives import WireError
from roundelay.wire.snapshot_file import (
    DIGEST_BYTES,
    END_BYTES,
    SnapshotHead,
    decode_end,
    decode_head,
    encode_end,
    encode_head,
)

if TYPE_CHECKING:
    from roundelay.sim.host import Host
    from roundelay.sim.world import World

MS = 1_000_000
WRITE_NS = 20_000
"""How long a write without a sync takes."""
READ_NS = 100_000
"""How long a read takes."""
INTERVAL_NS = 50 * MS
"""How often `interval` syncs."""
NOTE = ("note",)
NOTE_NS = 1_000 * MS
"""How long after a sync, if nothing else is written, the journal notes how far it was synced."""
SLOW = 100
"""A slow disk takes this many times as long."""

Call = tuple[Any, ...]
"""An input of the core, or what the driver does later: a name and arguments."""

Step = Store | Cut | Reset | StoreSnapshot
"""What the writer does in order."""


@dataclass(frozen=True, slots=True)
class PowerCut:
    """What stays of records that were written and not synced; None: as chance has it."""

    keep: int | None = None
    """So many whole ones."""
    torn: int | None = None
    """Of the next one so many bytes, or all with one block garbled there; None: nothing."""
    garbled: bool = False


@dataclass(frozen=True, slots=True)
class Journals:
    """How the nodes of a world keep journals."""

    policy: Policy = Policy.ALWAYS
    sync_ns: int = MS
    nodes: frozenset[NodeId] | None = None
    """Those that do; None: all."""
    application: bool = False
    """Whether an application's state belongs to the log, of which there are snapshots."""
    objects: bool = False
    """Whether that application has replicated machines."""

    def host_log(self, host: "Host", world: "World") -> "HostLog | None":
        if self.nodes is not None and host.name not in self.nodes:
            return None
        return HostLog(host, world, self)


@value
class LogRead:
    """A read is answered."""

    request: int
    length: int
    """As of when."""
    state: str = ""
    """Of the log, if it was answered at once, from what is known to be committed here."""


@value
class LogReceipt:
    """Messages of a session have these indexes; None if they were known before and where is not."""

    session: int
    number: int
    count: int
    index: int | None
    forgotten: bool


class HostLog:
    """The log of one host, over all its lives."""

    def __init__(self, host: "Host", world: "World", journals: Journals) -> None:
        self.disk = Disk(policy=journals.policy)
        self.sync_ns = journals.sync_ns
        """About how long a sync takes."""
        self.refused = 0
        """Messages of the application that found the queue full."""
        self.application = Application()
        self.view: list[LogRecord] = []
        """The journal as the process sees it, with what is still to be written."""
        self.committed = 0
        self.lacked_room = False
        """In this life the journal had no room for something."""
        self.status: LogStatus | None = None
        """As `LogChanged` told last."""
        self.cut: PowerCut | None = None
        """What the power cut that ended the last life left of what was not synced."""
        self.why = ""
        """Why the node was not able when it started."""
        self._host = host
        self._world = world
        self._stateful = journals.application
        self._objects = journals.objects
        self.clients: Clients | None = None
        """Those of the machines, if there are any."""
        self._steps: deque[Step] = deque()
        self._busy = False
        self._refuses = False
        """There was no room for a step, and the core does not know yet."""
        self._number = 0
        """Of the last step that was given to the writer."""
        self._syncs = 0
        self._sync_due = False
        self._note_due = False
        self._parts: bytearray = bytearray()
        self._requests = 0
        self._reads: dict[int, int] = {}
        """By request: the length that the application must reach."""
        self._opened: dict[str, int] = {}
        """By name: the sessions that clients have opened through this life of the node."""
        self._calls: dict[int, int] = {}
        """By request: the row with which it began."""

    # Life and death

    def boot(self) -> KeptLog:
        """What the next life finds in its journal."""
        kept = self.disk.open()
        if self.disk.found:
            self._world.observe(self._host.name, "found", self.disk.found)
        self.why = kept.why
        self.view = self.disk.records()
        self.committed = 0
        self.lacked_room = False
        self._begin_application()
        self.clients = Clients(self._host, self.session()) if self._objects else None
        self._steps.clear()
        self._reads.clear()
        self._opened = {}
        self._calls.clear()
        self._parts.clear()
        self._busy = self._sync_due = self._note_due = self._refuses = False
        if kept.snapshot is not None:
            self._restore(self.disk.snapshots[kept.snapshot])
        self.application.length = max(self.application.length, kept.first)
        self.committed = kept.committed
        self._show()
        return kept

    def close(self) -> None:
        """The node stops in good order: what waits is written and synced."""
        for step in self._steps:
            self._write(step)
        self.disk.sync(len(self.disk.written))
        self.disk.note(self.committed)
        self.disk.ending = Ending.CLOSED

    def crash(self, power: PowerCut | None) -> str:
        """The node stops; how, as rows of the trace have it."""
        self.cut = None
        if power is None:
            return "" if self.disk.ending is Ending.CLOSED else "kill"
        choices = self._world.choices
        name = f"{self._host.name}'{self._host.incarnation}"
        if power.keep is None:
            keep = choices.number(f"power {name}", self.disk.unsynced())
            torn, garbled = choices.number(f"torn record {name}", 4096), False
            if torn:
                garbled = bool(choices.number(f"garbled {name}", 1))
            power = PowerCut(keep, torn or None, garbled)
        self.cut = power
        assert power.keep is not None
        self.disk.power_cut(power.keep, power.torn, power.garbled)
        return "power"

    def session(self) -> int:
        """The session of a life: by a digest of its name, for a run needs no chance for it."""
        host = self._host
        name = f"{host.name}'{host.incarnation}".encode()
        return int.from_bytes(blake2b(name, digest_size=8).digest(), "big") >> 1

    @property
    def generation(self) -> int:
        """Of the log as the process sees it."""
        marks = (record for record in reversed(self.view) if isinstance(record, Mark))
        return next((mark.generation for mark in marks), 0)

    # What explorations compare

    @property
    def on_disk(self) -> tuple[object, ...]:
        """All that a start of the node depends on."""
        disk = self.disk
        records = tuple((kept.data, kept.synced, kept.committed) for kept in disk.written)
        rest = (disk.synced, disk.noted, disk.committed, disk.first, str(disk.ending))
        return (records, *rest, tuple(sorted(disk.snapshots.items())), str(disk.mood))

    @property
    def in_memory(self) -> tuple[object, ...]:
        """What else the driver holds while the node lives."""
        state = (self.application.length, self.application.digest, self.committed)
        waiting = (tuple(self._steps), self._busy, self._refuses, self._sync_due, self._note_due)
        clients = None if self.clients is None else self.clients.in_memory
        rest = (bytes(self._parts), tuple(self._reads.items()), clients)
        return (*state, *waiting, *rest)

    # Clients

    def _begin_application(self) -> None:
        self.application = Application(Machines() if self._objects else None)

    def _do_command(self, call: int) -> list[Effect[Any]]:
        """Append the command of a client's call."""
        core, clients = self._core, self.clients
        assert clients is not None
        try:
            clients.send(call, lambda payload: core.append(payload, self._host.wall_us()))
        except QueueFullError:
            self.refused += 1
        return core.flush()

    def append(
        self,
        payload: bytes,
        session: str = "",
        number: int | None = None,
        times: int = 1,
        *,
        once: bool = False,
    ) -> None:
        """Append a message, of the node's own session or of one that is opened by its name. With
        `once` its client opens the session once: it appends nothing more when that is closed with
        its node, and nothing through other nodes."""
        self._host.call(("append", payload, session, number, times, once))

    def _do_append(
        self, payload: bytes, session: str, number: int | None, times: int, once: bool = False
    ) -> list[Effect[Any]]:
        core, stamp_us, clients = self._core, self._host.wall_us(), self._world.log_clients
        if session in clients.gave_up:
            return []
        if session and session not in self._opened:
            if once and session in clients.opened:
                return []
            clients.opened.add(session)
        try:
            for i in range(times):
                if not session:
                    core.append(payload, stamp_us)
                    continue
                if session not in self._opened:
                    self._opened[session] = core.open_session(session, stamp_us)
                named = self._opened[session]
                at = None if number is None else number + i
                try:
                    core.append(payload, stamp_us, named, at)
                except ValueError:  # The node keeps as many numbers as the log has sessions.
                    if once:
                        break
                    core.append(payload, stamp_us, core.open_session(session, stamp_us), at)
        except QueueFullError:
            self.refused += 1
        return core.flush()

    def read(self) -> None:
        """Begin a linearizable read."""
        self._requests += 1
        request = self._requests
        self._calls[request] = self._host.recorder.invoke("log", "read")
        self._world.observe(self._host.name, "asks", request)
        self._host.call(("sync", request))

    def read_stale(self) -> None:
        """Read what is known to be committed here."""
        status = self._core.status.log
        assert status is not None
        recorder, application = self._host.recorder, self.application
        call = recorder.invoke("log", "read", stale=True)
        recorder.reply(call, "log", "read", application.state, application.length)
        said = LogRead(0, application.length, status.state)
        self._world.observe(self._host.name, "reads", said)

    def snapshot(self) -> None:
        """Take a snapshot of what the application has applied, and remove what is below it; without
        an application remove only what is below what is committed."""
        application = self.application
        if not self._stateful:
            self._remove(application.length, None)
            return
        index, state = application.length, application.snapshot()
        status = self._core.status.log
        assert status is not None
        try:
            checkpoint = self._core.snapshot_state(index)
        except ValueError as e:
            self._world.observe(self._host.name, "disk", f"takes no snapshot: {e}")
            return
        data = encode_head(SnapshotHead(status.id, status.generation, checkpoint))
        data += len(state).to_bytes(4, "big") + _crc(state) + state
        digest = blake2b(data, digest_size=DIGEST_BYTES).digest()
        self.disk.keep_snapshot(index, data + encode_end(len(state), digest))
        self._host.recorder.snapshot(index, application.state)
        self._remove(index, index, checkpoint.place)

    def _remove(self, below: int, snapshot: int | None, place: Place | None = None) -> None:
        first = self.disk.remove(below, place)
        self.view = self._view_from(first)
        self._host.call(("held", first, snapshot))

    def _view_from(self, first: int) -> list[LogRecord]:
        """The journal as the process sees it, without what was removed."""
        if not first or not self.disk.written:
            return self.view
        begin = self.disk.written[0].record(), self.disk.written[1].record()
        if self.view and self.view[0] == begin[0]:
            return self.view
        at = next(i for i, record in enumerate(self.view) if record == begin[0])
        return [*begin, *self.view[at + 1 :]]

    # Effects

    def perform(self, effect: Effect[Any]) -> None:
        match effect:
            case Store() | Cut() | Reset() | StoreSnapshot():
                self._give(effect)
            case Load():
                self._later(READ_NS, ("load", effect))
            case LoadSnapshot():
                self._later(READ_NS, ("load_snapshot", effect))
            case Committed():
                self._commit(effect.length)
            case Appended():
                receipt = LogReceipt(
                    effect.session, effect.number, effect.count, effect.index, effect.forgotten
                )
                if effect.forgotten:  # What became of its messages nobody knows any more.
                    names = [name for name, v in self._opened.items() if v == effect.session]
                    self._world.log_clients.gave_up.update(names)
                self._world.observe(self._host.name, "appended", receipt)
            case Synced():
                self._on_synced(effect)
            case LogChanged():
                self.status = self._core.status.log
                self._world.observe(self._host.name, "log", self.status)
                machines, clients = self.application.machines, self.clients
                if machines is not None and clients is not None and clients.tick(machines):
                    self._later(0, ("append", TICK, "", None, 1))
            case Fork():
                self._world.observe(self._host.name, "forks", effect.why)
                self._host.crash()
            case _:
                raise AssertionError(f"{effect} is not about the log")

    def _commit(self, length: int) -> None:
        self.committed = max(self.committed, length)
        self._show()
        assert self.lacked_room or self.application.length >= self.committed, (
            f"{self._host.name} is to show entries below {length}, and was given those below "
            f"{self.application.length}"
        )

    def _show(self) -> None:
        """Give the application what is committed, as far as it is here: what the journal had no
        room for comes again."""
        self.application.apply(self._behind(self.application.length), self.committed)
        self._world.observe(self._host.name, "commits", self.application.length)
        self.application.clear_news()
        if self.clients is not None and self.application.machines is not None:
            self.clients.settle(self.application.machines)
        for request, needed in list(self._reads.items()):
            if self.application.length >= needed:
                self._answer(request, needed)

    def pop_shown(self) -> list[tuple[int, tuple[int, int]]]:
        """What the application was shown since the last call: by index, session and number."""
        shown, self.application.new = self.application.new, []
        return shown

    def _behind(self, length: int) -> list[LogRecord]:
        """The records that may have entries from an index on."""
        view = self.view
        start = len(view)
        while start:
            record = view[start - 1]
            if isinstance(record, Entries) and 0 < record.head.count <= length - record.head.index:
                break
            start -= 1
        return view[start:]

    def _on_synced(self, effect: Synced) -> None:
        if effect.length is None:
            self._world.observe(self._host.name, "asks", effect.request)
            self._later(MS, ("sync", effect.request))
        elif self.application.length >= effect.length:
            self._answer(effect.request, effect.length)
        else:
            self._reads[effect.request] = effect.length
            self._world.observe(self._host.name, "waits", effect.request)

    def _answer(self, request: int, length: int) -> None:
        self._reads.pop(request, None)
        application = self.application
        if request < 0:
            assert self.clients is not None
            assert application.machines is not None
            self.clients.read(request, application.machines, application.length)
            return
        call = self._calls.pop(request)
        recorder = self._host.recorder
        recorder.reply(call, "log", "read", application.state, application.length)
        self._world.observe(self._host.name, "reads", LogRead(request, application.length))

    # The writer

    def _give(self, step: Step) -> None:
        self._number = step.number
        if isinstance(step, Store):
            self.view += step.records
            if self.application.length < self.committed:
                self._show()
        elif isinstance(step, Cut):
            del self.view[position(self.view, step.place) :]
        elif isinstance(step, Reset):
            self.view = [step.checkpoint, step.mark]
            if step.snapshot is None:
                self._begin_application()  # There is no state: it just goes on from there.
                self.application.length = step.checkpoint.place.length
            else:
                self._restore(self.disk.snapshots[step.snapshot])
                state = self.application
                self._host.recorder.snapshot(state.length, state.state, restored=True)
        self._steps.append(step)
        self._work()

    def _work(self) -> None:
        """Take what waits, unless a batch is under way: stores together, anything else alone."""
        disk = self.disk
        if self._refuses:
            self._steps.clear()
            self.view = disk.records()
        if self._busy or not self._steps:
            return
        if disk.mood is Mood.FULL and not isinstance(self._steps[0], Cut):
            self._refuse(self._steps[0].number)
            self.lacked_room = True
            return
        batch = [self._steps.popleft()]
        if isinstance(batch[0], Store):
            while self._steps and isinstance(self._steps[0], Store):
                batch.append(self._steps.popleft())
        for step in batch:
            if not isinstance(step, StoreSnapshot):
                self._write(step)
        self._busy = True
        last = batch[-1]
        if self._waits_for_sync(last):
            self._after(self._sync_time(), ("end_sync", last))
        else:
            took = WRITE_NS if disk.policy is Policy.INTERVAL else 0
            self._after(took, ("end_write", last))

    def _waits_for_sync(self, step: Step) -> bool:
        """Whether a step is stored only once it is on the platter."""
        return self.disk.policy is Policy.ALWAYS or not isinstance(step, Store)

    def _write(self, step: Step) -> None:
        match step:
            case Store():
                self.disk.write(step.records, self.committed)
            case Cut():
                self.disk.cut(step.place)
            case Reset():
                self.disk.reset(step.checkpoint, step.mark, self.committed)
            case StoreSnapshot():
                pass  # A part that is not whole yet is of no use to anybody.

    def _end_sync(self, last: Step) -> None:
        """A batch is on the platter."""
        disk = self.disk
        if disk.mood is Mood.FAILS:
            disk.lose(len(disk.written))
            if self._stops_at_a_failed_sync():
                return
        disk.sync(len(disk.written))
        self._busy = False
        if isinstance(last, StoreSnapshot) and not self._keep_part(last):
            self._refuse(last.number)
        else:
            self._host.call(("stored", last.number))
        self._await_note()
        self._work()

    def _refuse(self, number: int) -> None:
        """Neither this step is done nor any behind it, up to those that the core asks for before it
        knows."""
        self._steps.clear()
        self.view = self.disk.records()
        self._refuses = True
        self._later(0, ("unstored", number))

    def _stops_at_a_failed_sync(self) -> bool:
        """A second try would report success for what is lost: the node stops."""
        self._world.observe(self._host.name, "disk", "cannot sync, and the node stops")
        self._host.crash()
        return True

    def _end_write(self, last: Step) -> None:
        """A batch is written, and is to be synced some time or never."""
        self._busy = False
        self._host.call(("stored", last.number))
        if self.disk.policy is Policy.INTERVAL and not self._sync_due:
            self._sync_due = True
            self._after(INTERVAL_NS, ("begin_sync",))
        self._work()

    def _begin_sync(self) -> None:
        self._after(self._sync_time(), ("end_interval", len(self.disk.written)))

    def _end_interval(self, count: int) -> None:
        """So many records have reached the platter, which nobody waits for."""
        self._sync_due = False
        if self.disk.mood is Mood.FAILS:
            self.disk.lose(count)
            if self._stops_at_a_failed_sync():
                return
        self.disk.sync(count)
        self._await_note()
        if self.disk.unsynced():
            self._sync_due = True
            self._after(INTERVAL_NS, ("begin_sync",))

    def _await_note(self) -> None:
        if not self._note_due:
            self._note_due = True
            self._after(NOTE_NS, NOTE)

    def _note(self) -> None:
        self._note_due = False
        self.disk.note(self.committed)

    def _sync_time(self) -> int:
        """Between a half and one and a half of the disk's time, by a digest of the sync's name."""
        host = self._host
        self._syncs += 1
        name = f"{host.name}'{host.incarnation} {self._syncs}".encode()
        share = int.from_bytes(blake2b(name, digest_size=2).digest(), "big")
        time = self.sync_ns // 2 + self.sync_ns * share // 65_536
        return time * SLOW if self.disk.mood is Mood.SLOW else time

    # Reads

    def _do_load(self, effect: Load) -> list[Effect[Any]]:
        start = position(self.view, effect.place)
        found: list[bytes] = []
        size = 0
        for i, record in enumerate(self.view[start:], start):
            if i and isinstance(record, Checkpoint):
                continue  # It is for this node alone.
            data = encode_record(record)
            if found and size + len(data) > effect.bytes_max:
                break
            found.append(data)
            size += len(data)
        return self._core.loaded(effect.request, found)

    def _do_load_snapshot(self, effect: LoadSnapshot) -> list[Effect[Any]]:
        data = self.disk.snapshots.get(effect.index)
        if data is None:
            return self._core.snapshot_loaded(effect.request, None, 0)
        part = data[effect.offset : effect.offset + effect.bytes_max]
        return self._core.snapshot_loaded(effect.request, part, len(data))

    def _keep_part(self, step: StoreSnapshot) -> bool:
        """Whether a part of a snapshot fits; the last one only if the whole does."""
        if step.offset == 0:
            self._parts.clear()
        if step.offset != len(self._parts):
            return False
        self._parts += step.data
        if step.last:
            data = bytes(self._parts)
            self._parts.clear()
            if _state_of(data) is None:
                return False
            self.disk.keep_snapshot(step.index, data)
        return True

    def _restore(self, data: bytes) -> None:
        state = _state_of(data)
        assert state is not None
        self.application.restore(state)

    # Time

    @property
    def _core(self) -> LogCore[Any]:
        return cast("LogCore[Any]", self._host.core)

    def input(self, call: Call) -> list[Effect[Any]]:
        """Give the core an input."""
        name, *arguments = call
        if name == "unstored":
            self._refuses = False
        if name in ("append", "command", "load", "load_snapshot"):
            do = getattr(self, f"_do_{name}")
        else:
            do = getattr(self._core, name)
        effects: list[Effect[Any]] = do(*arguments)
        return effects

    def due(self, call: Call) -> None:
        """What was put off is due."""
        name, *arguments = call
        if name == "input":
            self._host.call(tuple(arguments))
        else:
            getattr(self, f"_{name}")(*arguments)

    def _after(self, delay_ns: int, call: Call) -> None:
        """Do it later, in this life. Calls are data, so that a world can be copied with what it
        waits for."""
        loop = self._world.loop
        loop.at(loop.now + delay_ns, self._host.due, (self._host.incarnation, call))

    def _later(self, delay_ns: int, call: Call) -> None:
        """Give the core an input later."""
        self._after(delay_ns, ("input", *call))


def _crc(data: bytes) -> bytes:
    return crc32(data).to_bytes(4, "big")


def _state_of(data: bytes) -> bytes | None:
    """The application's part of a snapshot's file; None if the file is damaged."""
    try:
        head = decode_head(data)
        if head is None:
            return None
        _, start = head
        size, digest = decode_end(data[-END_BYTES:])
        if blake2b(data[:-END_BYTES], digest_size=DIGEST_BYTES).digest() != digest:
            return None
        state = data[start + 8 : -END_BYTES]
        return state if len(state) == size else None
    except WireError:
        return None
