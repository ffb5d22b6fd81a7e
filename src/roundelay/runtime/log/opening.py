"""Opening the journal of a node, and the journal as the node's threads use it."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from roundelay.core.log import Checkpoint, LogRecord, Mark, Place
from roundelay.journal import errors as faults
from roundelay.journal.directory import group_directory
from roundelay.journal.files import NO_ROOM, Files, OsFiles
from roundelay.journal.journal import Journal, JournalConfig
from roundelay.journal.retention import reserve_in
from roundelay.runtime.descriptors import exhausted, exhausted_error
from roundelay.runtime.errors import DiskError, JournalError, LogError, TruncatedError
from roundelay.runtime.log.applying import StateMachine
from roundelay.runtime.log.driver import JournalSetup, Restored
from roundelay.runtime.log.writer import DiskFullError
from roundelay.runtime.machine import Machine
from roundelay.runtime.node_log import log
from roundelay.runtime.settings import Settings
from roundelay.runtime.state import StateDirectory, Storage
from roundelay.wire.log_record import decode_record

RETIRE_S = 1.0
"""How often it is looked for files that need not be kept, in seconds. Too small: looks for nothing;
too large: the disk holds more than `retain_bytes` for long."""

make_files: Callable[[], Files] = OsFiles
"""Makes what the journal calls instead of the operating system; tests put another one here."""


async def open_journal(
    settings: Settings, machine: Machine, state_machine: StateMachine | None
) -> tuple[JournalSetup, Storage]:
    """The journal that the settings name, and where the core's standing is kept; or JournalError.
    What a crash left is repaired first, which may take a moment: it is done in a thread."""
    assert settings.journal is not None
    files = make_files()
    path = group_directory(settings.journal, settings.group)
    storage = StateDirectory(
        *(settings.journal, settings.group, settings.node, machine),
        kind="journal",
        error=JournalError,
        files=files,
        make_room=partial(_give_up_reserve, path),
    )
    loop = asyncio.get_running_loop()
    try:
        journal = await loop.run_in_executor(None, _open, settings, storage, machine, files)
    except BaseException:
        storage.close()
        raise
    journal.on_close = storage.close
    journal.has_machine = state_machine is not None
    if journal.has_machine and (why := journal.no_state(journal.inner.kept.snapshot)):
        journal.close()
        raise JournalError(why)
    setup = JournalSetup(
        journal,
        journal.inner.kept,
        settings.policy,
        machine.wall_ns,
        state_machine,
        settings.snapshot_bytes,
    )
    if journal.inner.repaired:
        setup.repaired.append(journal.inner.repaired)
    return setup, _Standing(storage)


def _open(
    settings: Settings, storage: StateDirectory, machine: Machine, files: Files
) -> "DiskJournal":
    assert settings.journal is not None
    path = group_directory(settings.journal, settings.group)
    try:
        inner = Journal(
            path,
            settings.group,
            settings.node,
            settings.policy,
            config=JournalConfig(
                segment_bytes=settings.segment_bytes,
                retain_bytes=settings.retain_bytes,
                retain_s=settings.retain_s,
            ),
            files=files,
            locked=True,
            ours=storage.ours,
            boot=machine.id,
        )
    except faults.BaseJournalError as e:
        raise JournalError(str(e)) from None
    except OSError as e:
        if exhausted(e):
            raise exhausted_error() from None
        raise JournalError(
            f"the journal {path} cannot be used ({e.strerror}); check the disk, or name another "
            "directory"
        ) from None
    return DiskJournal(inner)


def _give_up_reserve(path: Path) -> bool:
    """Make room for the standing; whether there was anything to give up. It is done at once, in
    whatever thread."""
    try:
        reserve_in(path).unlink()
    except OSError:
        return False
    return True


class _Standing:
    """The standing of a core that has a journal. The journal's writer outlives the node for a
    moment, and gives up the lock of the directory."""

    def __init__(self, storage: StateDirectory) -> None:
        self._storage = storage
        self.incarnation = storage.incarnation
        self.stored = storage.stored

    def save(self, state: bytes) -> None:
        self._storage.save(state)

    def close(self) -> None:
        """Does nothing."""


class DiskJournal:
    """A journal on disk as the threads of a node use it. Its errors are those of the node."""

    def __init__(self, inner: Journal) -> None:
        self.inner = inner
        self.on_close: Callable[[], None] = lambda: None
        self.has_machine = False
        """Whether a machine follows the log: what is behind its snapshots is kept for it."""
        self._retire_at = 0.0
        self._scrubbed = 0
        self._able_due = False
        """Whether it is still to be noted that the node is able."""

    # For the writer

    def write(self, records: Sequence[LogRecord], committed: int) -> int:
        self._know(committed)
        try:
            self.inner.append(records)
        except faults.FullError as e:
            raise DiskFullError(str(e)) from None
        except faults.DiskError as e:
            raise DiskError(str(e)) from None
        return self.inner.committed

    def has_room(self, size: int) -> bool:
        return self.inner.has_room(size)

    def _know(self, committed: int) -> None:
        """Readers of the files expect all that is said to be committed to be there: a node whose
        disk lags knows of more."""
        self.inner.committed = min(committed, self.inner.place.length)

    def cut(self, place: Place) -> None:
        with _translated():
            self.inner.cut(place)

    def reset(self, checkpoint: Checkpoint, mark: Mark) -> None:
        try:
            self.inner.reset(checkpoint, mark)
        except faults.FullError as e:
            raise DiskFullError(str(e)) from None
        except faults.DiskError as e:
            raise DiskError(str(e)) from None

    def write_snapshot(self, index: int, offset: int, data: bytes, *, last: bool) -> bool:
        try:
            return self.inner.snapshots.write_part(index, offset, data, last=last)
        except OSError as e:
            with contextlib.suppress(OSError):
                self.inner.snapshots.drop_incoming()
            if e.errno not in NO_ROOM:
                raise DiskError(
                    f"a snapshot cannot be written to {self.inner.path} ({e.strerror}), so the "
                    "node stops; check the disk, then start the node again"
                ) from None
            return False  # Nothing depends on a part of it: it is fetched again.

    def sync(self) -> None:
        with _translated():
            self.inner.sync()

    def note(self, committed: int) -> int:
        self._know(committed)
        with _translated():
            self.inner.note()
        return self.inner.committed

    def trim(self) -> int | None:
        now = time.monotonic()
        if now < self._retire_at:
            return None
        self._retire_at = now + RETIRE_S
        if self._able_due:
            self.set_able()
        if self.has_machine and not self.inner.snapshots.indexes():
            return None  # Its state cannot be made again from less than the whole log.
        with _translated():
            return self.inner.first if self.inner.retire() else None

    def set_able(self) -> None:
        with _translated():
            noted = self.inner.set_able()
        if not noted and not self._able_due:
            log.warning(
                "the disk that the journal %s is on is full, so it could not be noted that this "
                "node is able; until that is done, it votes after a restart only once it has "
                "caught up: free some space",
                self.inner.path,
            )
        self._able_due = not noted

    def close(self) -> None:
        try:
            with _translated():
                in_order = self.inner.close()
        finally:
            self.on_close()
        if not in_order:
            log.warning(
                "the disk that the journal %s is on is full, so it could not be noted that it was "
                "closed in order: its next start is one after a crash",
                self.inner.path,
            )

    # For other threads

    @property
    def first(self) -> int:
        return self.inner.first

    @property
    def snapshot(self) -> int | None:
        return self.inner.snapshots.newest(self.inner.log, self.inner.generation)

    def load(self, place: Place, bytes_max: int) -> Sequence[bytes]:
        with _translated():
            return self.inner.read(place, bytes_max)

    def history(self, place: Place, index: int, bytes_max: int) -> Sequence[LogRecord]:
        while True:
            raw = self.load(place, bytes_max)
            if index < self.first:
                raise TruncatedError(index, self.first)
            if not raw:
                return ()
            records = [decode_record(data) for data in raw]
            for record in records:
                place = place.past(record)
            if place.length > index:
                return records

    def load_snapshot(self, index: int, offset: int, bytes_max: int) -> tuple[bytes, int] | None:
        return self.inner.snapshots.read_part(index, offset, bytes_max)

    def restore(self, index: int, into: Callable[[Iterable[bytes]], None]) -> Restored:
        inner, snapshots = self.inner, self.inner.snapshots
        damaged: list[str] = []
        at: int | None = index
        while at is not None:
            try:
                _, parts = snapshots.restore(at, inner.log)
            except (faults.JournalError, faults.ForeignLogError) as e:
                with contextlib.suppress(OSError):
                    snapshots.set_aside(at)
                at = snapshots.newest(inner.log, inner.generation, at)
                damaged.append(str(e))
                if why := self.no_state(at):
                    raise LogError("; ".join([*damaged, why])) from None
            else:
                with _translated():
                    into(parts)
                break
        if not damaged:
            return Restored(index)
        begin = "the beginning of the log" if at is None else f"the one at entry {at}"
        told = f"{'; '.join(damaged)}: the machine goes on from {begin}; check the disk"
        return Restored(at or 0, told)

    def no_state(self, snapshot: int | None) -> str:
        """Why the state of a machine cannot be made from that snapshot, or without one; empty if it
        can."""
        if (snapshot or 0) >= self.first:
            return ""
        return (
            f"the entries below {self.first} were removed from the journal {self.inner.path}, and "
            "there is no snapshot that has them, so the state of the machine cannot be made here: "
            "copy the newest file in the directory 'snapshots' of another node into this one's, "
            "or start this node with an empty directory, and it fetches all from the others"
        )

    def take(self, checkpoint: Checkpoint, chunks: Iterable[bytes]) -> None:
        inner = self.inner
        inner.snapshots.take(inner.log, inner.generation, checkpoint, chunks)

    def scrub(self) -> None:
        """Compare the checksums of one more segment; LogError if one is wrong."""
        with _translated():
            self._scrubbed = self.inner.scrub(self._scrubbed)


class _translated:  # noqa: N801  # Used as a function, like those of contextlib.
    """Turns the errors of a journal into those of a node."""

    def __enter__(self) -> None:
        """Nothing is to be done."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, faults.DiskError):
            raise DiskError(str(error)) from None
        if isinstance(error, faults.TruncatedError):
            raise TruncatedError(error.index, error.first) from None
        if isinstance(error, faults.BaseJournalError):
            raise LogError(str(error)) from None
