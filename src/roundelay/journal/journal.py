"""The journal of a running node.

All methods that write are for one thread, the writer. `read` may be called from another one. The
writer takes everything that waits, calls `append`, `cut` and `reset` in their order, and `sync`
once; what each policy acknowledges when is up to it (see `policy`).

    append      all of the records or, with `FullError`, none; one system call
    sync        all that was appended is on disk; with `DiskError` the node must stop
    cut, reset  on disk when they return
"""

import contextlib
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from roundelay.core.kept import place_after
from roundelay.core.log import MARKS_KEPT, Checkpoint, KeptLog, LogRecord, Mark, Place
from roundelay.journal.config import JournalConfig
from roundelay.journal.directory import Life, Lock, boot_id, check_owner, read_life, write_life
from roundelay.journal.errors import DamageError, DiskError, FullError, JournalError
from roundelay.journal.files import NO_ROOM, Files, OsFiles
from roundelay.journal.frame import (
    END,
    OVERHEAD_BYTES,
    Carry,
    frame,
    note_bytes,
    record_parts,
)
from roundelay.journal.loading import check_whole, end_of, load
from roundelay.journal.policy import Policy
from roundelay.journal.recovery import RESET, Findings, examine, finish_reset, repair
from roundelay.journal.retention import Holds, Reserve, removable
from roundelay.journal.segment import (
    Header,
    Segment,
    Walk,
    file_name,
    index_path,
    make_segment,
    opened_segment,
    write_index,
)
from roundelay.journal.snapshots import Snapshots


class Journal:
    """The journal of one node, which holds its lock."""

    def __init__(
        self,
        path: Path,
        group: str,
        node: str,
        policy: Policy,
        *,
        config: JournalConfig | None = None,
        files: Files | None = None,
        boot: str | None = None,
        locked: bool = False,
        ours: bool | None = None,
        wall_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the journal in `path`, the directory of the node in this group, and repair what a
        crash left; `kept` is what was found. `locked` says that the caller holds the lock of the
        directory, and `ours` whether it found this node to be its owner. JournalError if it is in
        use, another's, or cannot be read."""
        self.path = path
        self.policy = policy
        self.config = config or JournalConfig()
        self._files = files or OsFiles()
        self._wall_us = wall_us
        self._boot = boot_id() if boot is None else boot
        self._shape = threading.RLock()
        """Held while segments come or go, and by readers."""
        self._syncing = threading.RLock()
        """Held during a sync, and while what is being synced may not go."""
        self._noting = threading.Lock()
        """Held while the file `machine` is replaced: a reader that meets damage does so, too."""
        self._directory = path / "log"
        self._lock: Lock | None = None
        self._dead: DiskError | None = None
        self._holds = Holds(self.config.fetch_hold_s, monotonic_s)
        self._reserve = Reserve(path, self.config, self._files)
        self.full = False
        """Whether the disk had no room when it was last asked for some."""
        self.repaired = ""
        """What was repaired at the start, for people; empty if nothing."""
        try:
            self._open(group, node, locked, ours)
        except OSError as e:
            self._release()
            raise JournalError(
                f"the journal {path} cannot be used ({e.strerror}); make it writable for this "
                "user, check the disk, or name another directory"
            ) from None
        except BaseException:
            self._release()
            raise

    def _open(self, group: str, node: str, locked: bool, ours: bool | None) -> None:
        files = self._files
        self._directory.mkdir(parents=True, exist_ok=True)
        if not locked:
            self._lock = Lock(self.path)
        if ours is None:
            ours = check_owner(files, self.path, group, node)
        finish_reset(self._files, self._directory)
        for path in self._directory.glob("*.new"):
            files.unlink(path)
        life = read_life(self.path)
        found = examine(files, self._directory, life, self._boot, ours=ours)
        try:
            self._take(found, life)
        except BaseException:
            found.close()
            raise

    def _take(self, found: Findings, life: Life | None) -> None:
        files = self._files
        self.unable = found.unable
        """Why the node is not able; empty if it is."""
        self._segments = found.segments
        self._place = found.place
        self._committed = found.committed
        self._damaged: tuple[tuple[str, int], ...] = ()
        start = found.segments[0].start if found.segments else 0
        self._life = Life(
            boot=life.boot if life is not None else "",
            clean=False,
            policy=life.policy if life is not None else str(self.policy),
            start=max(start, life.start if life is not None else 0),
            end=0,
            committed=found.committed,
            unable=found.unable,
            damaged=life.damaged if life is not None else (),
        )
        if found.damage is not None:
            self.repaired = str(found.damage)
            self._write_life()
            repair(files, self._directory, found)
        if not found.kept.marks:
            for segment in self._segments:
                segment.close()
                files.unlink(segment.path)
            self._segments = []
            self._place = Place()
        self._marks = [*found.kept.marks]
        self._committed = min(self._committed, self._place.length)
        self._noted = (0, 0)
        self._synced = self._end
        self._allocated = files.size(self._segments[-1].fd()) if self._segments else 0
        if self._segments:
            # What a crash left may be in memory only, and is about to be called synced.
            files.fdatasync(self._segments[-1].fd())
        self._write_life(boot=self._boot, policy=str(self.policy), damaged=(), start=start)
        self.snapshots = Snapshots(self.path / "snapshots", files)
        self.kept = self._kept(found.kept)
        """What was found at the start, for the core."""
        self._reserve.take()

    def _kept(self, kept: KeptLog) -> KeptLog:
        for sentence in self.snapshots.set_unreadable_aside():
            self.repaired += f"; {sentence}" if self.repaired else sentence
        newest = self.snapshots.newest(kept.log, kept.generation) if kept.log else None
        return replace(kept, snapshot=newest)

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # What it holds.

    @property
    def place(self) -> Place:
        """Where the log ends."""
        return self._place

    @property
    def first(self) -> int:
        """Entries below this index were removed."""
        return self._segments[0].place.length if self._segments else 0

    @property
    def log(self) -> bytes:
        """The id of the log; empty if there is none yet."""
        return self._segments[0].header.log if self._segments else b""

    @property
    def generation(self) -> int:
        return self._marks[-1].generation if self._marks else 0

    @property
    def size_bytes(self) -> int:
        """Of all segments."""
        with self._shape:
            return sum(segment.end for segment in self._segments)

    @property
    def unsynced_bytes(self) -> int:
        """Written and not known to be on disk."""
        return self._end - self._synced

    @property
    def committed(self) -> int:
        """So many entries are known to be committed. Set it when that grows: frames tell readers in
        other processes, and the next start."""
        return self._committed

    @committed.setter
    def committed(self, length: int) -> None:
        self._committed = max(self._committed, length)

    @property
    def _end(self) -> int:
        return self._segments[-1].start + self._segments[-1].end if self._segments else 0

    # Writing.

    def append(self, records: Sequence[LogRecord]) -> None:
        """Write records behind the last one. `FullError`: there was no room, and none of them is in
        the journal. ValueError if one does not continue the log: then too."""
        self._check_alive()
        records = self._continuing(records)
        if not records:
            return
        before = self._end, self._place, len(self._marks)
        written = len(self._segments)
        try:
            if not self._segments:
                self._begin(records)
            self._write(records)
        except OSError as e:
            if e.errno not in NO_ROOM:
                raise self._die("write to", e) from None
            self._undo(written, *before)
            self._run_full()
            raise FullError(
                f"the disk that {self.path} is on is full; make room, and the node goes on"
            ) from None

    def has_room(self, size: int) -> bool:
        """Whether records of about so many bytes can be appended with one call of the system, as no
        file has to be made or to grow for them."""
        if self._dead is not None or self.full or not self._segments:
            return False
        segment, config = self._segments[-1], self.config
        end = segment.end + 2 * size + 4096
        soft = segment.carry_end + config.segment_bytes - config.segment_bytes // 4
        return end < soft and end + config.preallocate_bytes // 2 <= self._allocated

    def _continuing(self, records: Sequence[LogRecord]) -> Sequence[LogRecord]:
        """The records, without checkpoints of an empty log; ValueError if one does not fit."""
        place = self._place
        if not self._segments:
            records = [r for r in records if not isinstance(r, Checkpoint) or r.place != Place()]
            if records and not isinstance(records[0], Mark):
                raise ValueError("a log begins with a mark")
        for record in records:
            after = place_after(place, record)
            if after is None:
                raise ValueError(f"a record does not continue the log, which ends at {place}")
            place = after
        return records

    def _begin(self, records: Sequence[LogRecord]) -> None:
        mark = records[0]
        assert isinstance(mark, Mark)
        self._new_segment(mark.log, mark.generation, 0, Carry(Place(), ()))

    def _write(self, records: Sequence[LogRecord]) -> None:
        segment = self._segments[-1]
        parts: list[bytes] = []
        start = offset = segment.end
        limit = segment.carry_end + self.config.segment_bytes
        soft = limit - self.config.segment_bytes // 4
        place = self._place
        ending = b""
        for record in records:
            is_checkpoint = type(record) is Checkpoint
            if (offset >= limit or (is_checkpoint and offset >= soft)) and (
                place.length > segment.place.length
            ):
                self._put(segment, parts, ending, start, offset, place)
                segment = self._roll()
                parts, ending = [], b""
                start = offset = segment.end
                limit = segment.carry_end + self.config.segment_bytes
                soft = limit - self.config.segment_bytes // 4
            head, body = record_parts(record)
            size = len(head) + len(body)
            before = frame(
                *(head, size, segment.start + offset, segment.header.nonce),
                *(self._synced, self._committed),
            )
            parts.append(b"".join((ending, before, head)))
            if body:
                parts.append(body)
            ending = END
            segment.sample(place, offset)
            if is_checkpoint and offset == segment.carry_end:
                segment.checkpoint = True
            offset += OVERHEAD_BYTES + size
            place = place.past(record)
            if type(record) is Mark:
                self._marks.append(record)
        self._put(segment, parts, ending, start, offset, place)
        del self._marks[:-MARKS_KEPT]

    def _put(
        self,
        segment: Segment,
        parts: list[bytes],
        ending: bytes,
        start: int,
        end: int,
        place: Place,
    ) -> None:
        """Write frames that reach from `start` to `end` of a segment."""
        if not parts:
            return
        parts.append(ending)
        self._allocate(segment, end)
        self._files.pwritev(segment.fd(), parts, start)
        segment.end = end
        self._place = place

    def _allocate(self, segment: Segment, end: int) -> None:
        """Take room on the disk ahead of what is written. If there is none ahead, what is there is
        used up first."""
        ahead = self.config.preallocate_bytes
        if end + ahead // 2 <= self._allocated:
            return
        size = max(end + ahead - self._allocated, 0)
        try:
            self._files.fallocate(segment.fd(), self._allocated, size)
        except OSError as e:
            if e.errno not in NO_ROOM or end > self._allocated:
                raise
            self._run_full()
            return
        self._allocated += size
        if self.full:
            self.full = False
            self._reserve.take()

    def _new_segment(self, log: bytes, generation: int, start: int, carry: Carry) -> Segment:
        """Begin a segment; it is on disk when this returns."""
        first = carry.place.length
        path = self._directory / file_name(first)
        segment = self._make_segment(path, log, generation, start, carry)
        with self._shape:
            self._segments.append(segment)
        self._allocated = segment.end
        return segment

    def _roll(self) -> Segment:
        """Finish the last segment and begin the next one."""
        last = self._segments[-1]
        self._finish(last)
        self._synced = self._end
        carry = Carry(self._place, tuple(self._marks))
        return self._new_segment(last.header.log, self.generation, self._end, carry)

    def _finish(self, segment: Segment) -> None:
        """Give back the room behind the last record of a segment, and sync it."""
        with self._syncing:
            self._check_alive()  # A sync in another thread may have failed.
            self._files.ftruncate(segment.fd(), segment.end)
            self._fdatasync(segment)
        self._allocated = segment.end
        write_index(self._files, segment)

    def _undo(self, segments: int, end: int, place: Place, marks: int) -> None:
        """Take back what `append` wrote before the disk was full."""
        try:
            with self._syncing, self._shape:
                for segment in self._segments[max(segments, 0) :]:
                    segment.close()
                    self._files.unlink(segment.path)
                del self._segments[segments:]
                if self._segments:
                    last = self._segments[-1]
                    offset = end - last.start
                    self._files.ftruncate(last.fd(), offset)
                    last.forget_behind(offset)
                    self._allocated = offset
                    self._remove_index(last)
                self._files.sync_directory(self._directory)
        except OSError as e:
            raise self._die("write to", e) from None
        self._place = place
        self._synced = min(self._synced, end)
        del self._marks[marks:]

    def sync(self) -> None:
        """All that was appended is on disk when this returns. DiskError: the disk failed, and the
        node must stop. For one thread, which may be another than the one that appends: then it
        is what was appended before this was called."""
        with self._syncing:
            self._check_alive()
            segments = self._segments
            if not segments:
                return
            segment = segments[-1]
            end = segment.start + segment.end
            if self._synced >= end:
                return
            try:
                self._fdatasync(segment)
            except OSError as e:
                raise self._die("sync", e) from None
            self._synced = max(self._synced, end)

    def note(self) -> None:
        """Write down how much is synced and committed, if no frame has told yet. Call it when
        nothing was appended for a second. On a full disk it does nothing."""
        self._check_alive()
        if not self._segments or self._noted == (self._end, self._committed):
            return
        segment = self._segments[-1]
        content = note_bytes()
        end = segment.end + OVERHEAD_BYTES + len(content)
        before = frame(
            *(content, len(content), self._end, segment.header.nonce),
            *(self._synced, self._committed),
        )
        try:
            self._put(segment, [before + content], END, segment.end, end, self._place)
        except OSError as e:
            if e.errno not in NO_ROOM:
                raise self._die("write to", e) from None
            self._run_full()
            return
        self._noted = (self._end, self._committed)

    def cut(self, place: Place) -> None:
        """Take away all records behind `place`; on disk when this returns."""
        self._check_alive()
        if not self._segments or place >= self._place:
            return
        try:
            with self._syncing, self._shape:
                self._cut(place)
        except OSError as e:
            raise self._die("cut", e) from None

    def _cut(self, place: Place) -> None:
        place = max(place, self._segments[0].place)
        at = bisect_right(self._segments, place, key=lambda s: s.place) - 1
        segment = self._segments[at]
        with self._telling():
            offset, here, marks = end_of(segment, place)
        for later in reversed(self._segments[at + 1 :]):
            later.close()
            self._remove_index(later)
            self._files.unlink(later.path)
            self._segments.pop()
        self._files.sync_directory(self._directory)
        self._files.ftruncate(segment.fd(), offset)
        self._fdatasync(segment)
        self._remove_index(segment)
        segment.forget_behind(offset)
        self._allocated = offset
        self._place = here
        self._marks = [*segment.carry.marks, *marks][-MARKS_KEPT:]
        self._synced = self._end
        if not self._marks:
            segment.close()
            self._files.unlink(segment.path)
            self._segments.clear()
            self._place = Place()
            self._files.sync_directory(self._directory)
            self._synced = self._allocated = 0

    def reset(self, checkpoint: Checkpoint, mark: Mark) -> None:
        """Drop the whole log and begin it with these: what comes before was in a snapshot, or is
        not wanted. On disk when this returns; a crash leaves the old log or the new one."""
        self._check_alive()
        if mark.term != checkpoint.place.term or mark.base > checkpoint.place.length:
            raise ValueError("the checkpoint of a reset is not of the mark's term")
        start = self._end
        self._committed = max(self._committed, checkpoint.place.length)
        try:
            self._write_life(start=start)
            segment = self._make_segment(
                self._directory / RESET,
                *(mark.log, mark.generation, start),
                Carry(checkpoint.place, (mark,)),
                checkpoint,
            )
            segment.close()
            with self._syncing, self._shape:
                for old in self._segments:
                    old.close()
                finish_reset(self._files, self._directory)
                path = self._directory / file_name(checkpoint.place.length)
                found = opened_segment(self._files, path)
                self._segments = [found]
        except OSError as e:
            if e.errno in NO_ROOM:
                self._run_full()
                raise FullError(
                    f"the disk that {self.path} is on is full; make room, and the node goes on"
                ) from None
            raise self._die("write to", e) from None
        self._marks = [mark]
        self._place = checkpoint.place
        found.sample(checkpoint.place, found.carry_end)
        self._allocated = found.end
        self._synced = self._end

    def set_able(self) -> bool:
        """The node is able again, and its core has stored that: from the next start on the journal
        is trusted as it is found. On a full disk it is not, and False is returned: call it
        again."""
        self.unable = ""
        try:
            return not self._life.unable or self._write_life_if_room()
        except OSError as e:
            raise self._die("write to", e) from None

    def close(self) -> bool:
        """Write what is known, sync, and let others have the directory. False if there was no room
        to say that it was closed in order: then the next start treats it as after a crash."""
        try:
            if self._dead is None:
                self.note()
                self.sync()
                return self._write_life_if_room(
                    clean=True, end=self._end, committed=self._committed
                )
            return True
        except OSError as e:
            raise self._die("close", e) from None
        finally:
            with self._syncing, self._shape:
                for segment in self._segments:
                    segment.close()
            self._release()

    # Reading.

    def read(self, place: Place, bytes_max: int) -> list[bytes]:
        """Records as `wire.log_record` encodes them, the first one the one that follows `place`: at
        most so many bytes but at least one record, none if the log ends there. If that place was
        removed they begin with the checkpoint and the mark that the log begins with. Other
        checkpoints are left out: they are this node's own.

        DamageError if a record is damaged; the next start will set it aside. DiskError if the disk
        does not answer. For any thread."""
        with self._shape:
            if not self._segments:
                return []
            self._holds.add(max(place.length, self.first))
            with self._telling():
                return load(self._segments, place, bytes_max)

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Damage that is met here is remembered for the next start; a disk that does not answer
        ends the journal."""
        try:
            yield
        except OSError as e:
            raise self._die("read", e) from None
        except DamageError as e:
            known = (e.path.name, e.offset)
            if known not in self._life.damaged:
                with contextlib.suppress(OSError):
                    self._write_life(damaged=(*self._life.damaged, known))
            raise

    def scrub(self, segment_number: int) -> int:
        """Read a segment and compare its checksums; DamageError if one is wrong. The number of the
        segment to read next. For any thread."""
        with self._shape, self._telling():
            if not self._segments:
                return 0
            at = segment_number % len(self._segments)
            segment = self._segments[at]
            fd = self._files.open(segment.path)
            walk = Walk(self._files, fd, segment.header, segment.carry_end, segment.end)
        try:
            with self._telling():
                for _ in walk:
                    pass
        finally:
            self._files.close(fd)
        with self._shape, self._telling():
            if segment in self._segments and segment.end >= walk.end:
                check_whole(segment, walk)
        return at + 1

    # Room.

    def retire(self) -> bool:
        """Remove the oldest segments as the limits want it, never what is not committed, what an
        application needs above its older snapshot, or what was just read by a learner. Whether any
        was removed; then `first` has moved. A disk that has no room at all keeps them: where the
        log begins is written first."""
        self._check_alive()
        below = self._committed
        indexes = self.snapshots.indexes()
        if indexes:
            below = min(below, indexes[0] if len(indexes) > 1 else 0)
        below = min([below, *self._holds.indexes()])
        removed = removable(
            self._segments,
            self.config,
            below=below,
            committed=self._committed,
            now_us=self._wall_us(),
            replaced=bool(indexes),
        )
        if not removed:
            return False
        try:
            if not self._write_life_if_room(start=self._segments[removed].start):
                return False
            with self._syncing, self._shape:
                for segment in self._segments[:removed]:
                    segment.close()
                    self._remove_index(segment)
                    self._files.unlink(segment.path)
                del self._segments[:removed]
            self._files.sync_directory(self._directory)
        except OSError as e:
            raise self._die("remove files of", e) from None
        return True

    # Helpers.

    def _run_full(self) -> None:
        self.full = True
        self._reserve.give_up()

    def _make_segment(
        self,
        path: Path,
        log: bytes,
        generation: int,
        start: int,
        carry: Carry,
        checkpoint: Checkpoint | None = None,
    ) -> Segment:
        header = Header(log, generation, carry.place.length, self._wall_us(), start)
        return make_segment(self._files, path, header, carry, self._committed, checkpoint)

    def _fdatasync(self, segment: Segment) -> None:
        self._files.fdatasync(segment.fd())

    def _remove_index(self, segment: Segment) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._files.unlink(index_path(segment.path))

    def _write_life(self, **changes: object) -> None:
        """Replace the file `machine`; on a full disk with the room that is kept for need."""
        with self._noting:
            life = replace(self._life, unable=self.unable, **changes)  # type: ignore[arg-type]
            try:
                write_life(self._files, self.path, life)
            except OSError as e:
                if e.errno not in NO_ROOM:
                    raise
                self._run_full()
                write_life(self._files, self.path, life)
            self._life = life

    def _write_life_if_room(self, **changes: object) -> bool:
        """The same; False, and nothing was changed, if there is no room even then."""
        try:
            self._write_life(**changes)
        except OSError as e:
            if e.errno not in NO_ROOM:
                raise
            return False
        return True

    def _check_alive(self) -> None:
        if self._dead is not None:
            raise self._dead

    def _die(self, doing: str, error: OSError) -> DiskError:
        self._dead = DiskError(
            f"cannot {doing} the journal {self.path} ({error.strerror or error}); what was written "
            "last may be lost, so the node stops; check the disk, then start the node again"
        )
        return self._dead


__all__ = ["Journal", "JournalConfig"]
