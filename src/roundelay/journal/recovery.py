"""What a start finds in the files of a log, and what it does about those that are torn or damaged.

`examine` only reads: all headers, and the records of the last two segments, or of more if no
checkpoint is found there that is below what is committed. `repair` changes the files.

A log on disk has no holes: what is found is always a beginning of what was written. A *torn tail*
is what a crash left of the last records, none of which anybody was told is stored: it is cut off.
Whatever else cannot be read is *damage*: then the log ends there, what follows is set aside, and
the node is not able until it has fetched all that it lacks.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from roundelay.core.kept import EMPTY_WHY, kept_log, place_after
from roundelay.core.log import EMPTY_LOG, Checkpoint, Head, KeptLog, LogRecord, Mark, Place
from roundelay.core.value import value
from roundelay.journal.directory import Life
from roundelay.journal.errors import JournalError
from roundelay.journal.files import Files
from roundelay.journal.frame import ENTRIES, MARK, Bad, decode, whole_behind
from roundelay.journal.policy import parse_policy
from roundelay.journal.segment import (
    CHUNK_BYTES,
    Segment,
    file_name,
    first_of,
    index_path,
    open_segment,
    segment_files,
)
from roundelay.wire.primitives import WireError

SEGMENTS_READ = 2
"""Segments whose records are read at every start, at least."""
RESET = "reset"
"""The file that a reset prepares; once it has its name, the reset counts."""
ASIDE_FILES_MAX = 16
"""Damaged files that are kept for people; older ones are removed."""


@value
class Damage:
    """Where a file cannot be read."""

    path: Path
    offset: int
    why: str
    torn: bool = False
    """Whether it is what a crash left of the last write."""

    def __str__(self) -> str:
        what = "torn" if self.torn else "damaged"
        return f"{self.path} is {what} at byte {self.offset} ({self.why})"


class Scanned:
    """The records of one segment."""

    def __init__(self) -> None:
        self.records: list[Head | Mark | Checkpoint] = []
        self.place = Place()
        """Where they end in the log."""
        self.offset = 0
        """Where they end in the file."""
        self.synced = 0
        self.committed = 0
        self.bad: Bad | None = None
        """Why they end there, unless the frames do."""


class Findings:
    """What `examine` found."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        """Those of the log that is left, the last one up to where the log ends."""
        self.place = Place()
        """Where the log ends."""
        self.committed = 0
        """So many entries are known to be committed; more than the log has, if it was damaged."""
        self.damage: Damage | None = None
        """The first, if there is any."""
        self.aside: list[Path] = []
        """Segment files behind the damage."""
        self.unable = ""
        """Why the node is not able; empty if it is."""
        self.kept = EMPTY_LOG

    @property
    def end(self) -> int:
        """The place of the log's end among all its bytes."""
        return self.segments[-1].start + self.segments[-1].end if self.segments else 0

    def close(self) -> None:
        for segment in self.segments:
            segment.close()


def examine(
    files: Files, directory: Path, life: Life | None, boot: str, *, ours: bool = True
) -> Findings:
    """Read the log in `directory`. `life` is what is known of the last life of the journal, `boot`
    the boot id of the machine now; `ours` says whether the files are known to be this node's.
    JournalError if they belong to several logs."""
    found = Findings()
    _read_headers(files, directory, found)
    if life is not None:
        _mind_known_damage(found, life)
    marks, records, first = _read_records(files, found, life, boot)
    _judge(found, life, boot, ours)
    if found.segments:
        found.kept = kept_log(
            records,
            committed=found.committed,
            marks=marks,
            first=found.segments[0].place.length if first else None,
            able=not found.unable,
            why=found.unable,
        )
    if not found.kept.marks:
        found.unable = found.unable or EMPTY_WHY
        found.kept = KeptLog(*(b"", 0, False, 0, 0, (), EMPTY_LOG.checkpoint, ()), why=found.unable)
    return found


def _read_headers(files: Files, directory: Path, found: Findings) -> None:
    paths = segment_files(directory)
    for at, path in enumerate(paths):
        segment = open_segment(files, path)
        damage = None
        if segment is None:
            damage = Damage(path, 0, "its header is damaged")
        elif found.segments:
            last = found.segments[-1]
            if segment.header.log != last.header.log:
                raise JournalError(
                    f"{path} belongs to another log than {last.path}; move the files of one of the "
                    "two to another directory"
                )
            if segment.start != last.start + last.end:
                damage = Damage(last.path, last.end, "what follows is missing")
        elif segment.place != Place() and not segment.checkpoint:
            damage = Damage(path, 0, "what comes before it is missing")
        if segment is not None and damage is None and segment.header.first != first_of(path):
            damage = Damage(path, 0, "it has another file's name")
        if damage is not None or segment is None:
            found.damage = damage
            found.aside = paths[at:]
            return
        found.segments.append(segment)


def _mind_known_damage(found: Findings, life: Life) -> None:
    """Look again where a reader met damage in the life before: it may have read while a record was
    cut off. The last segments are read in any case."""
    known = dict(life.damaged)
    for at, segment in enumerate(found.segments[:-SEGMENTS_READ]):
        if segment.path.name not in known:
            continue
        walk = segment.walk()
        for _ in walk:
            pass
        if walk.offset < segment.end:
            why = walk.bad.why if walk.bad is not None else "a record is missing"
            found.damage = Damage(segment.path, walk.offset, why)
            _end_at(found, at, walk.offset)
            return


def _end_at(found: Findings, at: int, offset: int) -> None:
    """The log ends in its segment number `at`, at this byte; nothing of the segment is left if
    no record would be in it."""
    segments = found.segments
    left = at + (offset > segments[at].carry_end)
    found.aside = [segment.path for segment in segments[left:]] + found.aside
    for segment in segments[left:]:
        segment.close()
    del segments[left:]
    if left == at + 1:
        segments[at].forget_behind(offset)


def _read_records(
    files: Files, found: Findings, life: Life | None, boot: str
) -> tuple[list[Mark], list[Head | Mark | Checkpoint], int]:
    """The records of the end of the log, the marks before them, and the number of the segment that
    they begin in."""
    scans: dict[int, Scanned] = {}
    first = max(0, len(found.segments) - SEGMENTS_READ)
    found.committed = life.committed if life is not None else 0
    while found.segments:
        first = min(first, len(found.segments) - 1)
        for at in range(first, len(found.segments)):
            if at not in scans:
                scans[at] = _scan(found.segments[at])
            if not _accept(files, found, at, scans, life, boot):
                break
        count = len(found.segments)
        found.committed = max([found.committed] + [s.committed for s in scans.values()])
        known = min(found.committed, found.place.length)
        records = [r for at in range(first, count) for r in scans[at].records]
        if first == 0 or any(isinstance(r, Checkpoint) and r.place.length < known for r in records):
            begin = _first_checkpoint(records) if first else 0
            marks = [*found.segments[first].carry.marks] if found.segments else []
            marks += [r for r in records[:begin] if isinstance(r, Mark)]
            return marks, records[begin:], first
        first -= 1
    return [], [], 0


def _first_checkpoint(records: Iterable[LogRecord | Head]) -> int:
    """Where the records can begin: with a checkpoint, since what is before them was not read."""
    return next(at for at, record in enumerate(records) if isinstance(record, Checkpoint))


def _scan(segment: Segment) -> Scanned:
    scanned = Scanned()
    scanned.place = segment.place
    scanned.synced = segment.start + segment.carry_end
    walk = segment.walk()
    place = segment.place
    for frame in walk:
        scanned.synced = max(scanned.synced, frame.synced)
        scanned.committed = max(scanned.committed, frame.committed)
        if frame.kind > MARK + 1:
            continue
        try:
            record = decode(walk.data, frame)
        except WireError as e:
            scanned.bad = Bad(frame.at, f"it makes no sense: {e}", short=False)
            break
        assert not isinstance(record, bytes)
        after = place_after(place, record)
        if after is None:
            scanned.bad = Bad(frame.at, "it does not continue the one before it", short=False)
            break
        segment.sample(place, walk.offset)
        place = after
        scanned.records.append(record)  # type: ignore[arg-type]
    scanned.place = place
    scanned.offset = walk.offset
    scanned.bad = scanned.bad or walk.bad
    return scanned


def _accept(
    files: Files,
    found: Findings,
    at: int,
    scans: dict[int, Scanned],
    life: Life | None,
    boot: str,
) -> bool:
    """Take the records of segment `at`, and end the log if they end too early. Whether the next
    segment may follow."""
    segment, scanned = found.segments[at], scans[at]
    last = at == len(found.segments) - 1
    found.place = scanned.place
    if scanned.offset == segment.end and (last or found.segments[at + 1].place == scanned.place):
        return True
    if scanned.offset == segment.end:
        found.damage = Damage(found.segments[at + 1].path, 0, "it does not continue the log")
        _end_at(found, at + 1, 0)
        return False
    whole_file = last and not found.aside and found.damage is None
    if whole_file and scanned.bad is None and _all_zero(files, segment, scanned.offset):
        segment.end = scanned.offset
        return True
    synced = max(s.synced for s in scans.values())
    if life is not None and life.clean:
        synced = max(synced, life.end)
    why = scanned.bad.why if scanned.bad is not None else "a record is missing"
    torn = whole_file and _is_torn(files, segment, scanned, synced, same_boot(life, boot))
    if found.damage is None or found.damage.path != segment.path:
        found.damage = Damage(segment.path, scanned.offset, why, torn)
    _end_at(found, at, scanned.offset)
    return False


def _is_torn(files: Files, segment: Segment, scanned: Scanned, synced: int, same: bool) -> bool:
    """Whether a crash explains that the records end where they do. One that did not stop the
    machine can only have left the beginning of a record."""
    place = segment.start + scanned.offset
    if place < synced or (same and not (scanned.bad is not None and scanned.bad.short)):
        return False
    rest = files.pread(segment.fd(), segment.end - scanned.offset, scanned.offset).rstrip(b"\0")
    return not whole_behind(rest, place, segment.header.nonce)


def _all_zero(files: Files, segment: Segment, offset: int) -> bool:
    while offset < segment.end:
        data = files.pread(segment.fd(), min(CHUNK_BYTES, segment.end - offset), offset)
        if not data:
            break
        if data.count(0) != len(data):
            return False
        offset += len(data)
    return True


def same_boot(life: Life | None, boot: str) -> bool:
    """Whether the machine has been running since that life."""
    return life is not None and bool(boot) and life.boot == boot


def _judge(found: Findings, life: Life | None, boot: str, ours: bool) -> None:
    if not found.segments and life is None:
        return
    if found.damage is not None and not found.damage.torn:
        found.unable = f"{found.damage}; what follows is fetched again from a peer"
    elif life is None or not ours:
        missing = "machine" if life is None else "identity"
        found.unable = f"the file {missing!r} of the journal is missing or damaged"
    elif life.unable:
        found.unable = life.unable
    elif found.segments and found.segments[0].start > life.start:
        found.unable = "the first segments of the journal are missing"
    elif life.clean:
        if found.end < life.end:
            found.unable = "the journal is shorter than when it was closed"
    else:
        with suppress(ValueError):
            policy = parse_policy(life.policy)
            if not policy.survives_kill:
                found.unable = "it was not closed in order, and ran with fsync='off'"
            elif not policy.survives_power and not same_boot(life, boot):
                found.unable = (
                    f"the machine stopped while the journal ran with fsync={life.policy!r}"
                )
            return
        found.unable = f"its last policy {life.policy!r} is not known"


def finish_reset(files: Files, directory: Path) -> None:
    """If a reset was prepared, remove the old segments and begin with the new one."""
    prepared = directory / RESET
    if not prepared.exists():
        return
    segment = open_segment(files, prepared)
    if segment is None or not segment.checkpoint:
        files.unlink(prepared)
        return
    for path in reversed(segment_files(directory)):
        files.unlink(path)
        _unlink_quietly(files, index_path(path))
    files.sync_directory(directory)  # A directory need not keep changes in their order.
    files.rename(prepared, directory / file_name(segment.header.first))
    files.sync_directory(directory)


def repair(files: Files, directory: Path, found: Findings) -> None:
    """Make the files hold what was found, and nothing else. The reason why the node is not able is
    on disk before this is called."""
    damage = found.damage
    if damage is None:
        return
    aside = directory / "aside"
    if found.aside:
        aside.mkdir(exist_ok=True)
    for path in reversed(found.aside):
        _unlink_quietly(files, index_path(path))
        files.rename(path, aside / path.name)
    if found.segments:
        last = found.segments[-1]
        size = files.size(last.fd())
        if last.end < size:
            if not damage.torn:
                _copy_aside(files, last, size, aside)
            files.ftruncate(last.fd(), last.end)
            files.fdatasync(last.fd())
            _unlink_quietly(files, index_path(last.path))
    files.sync_directory(directory)
    if aside.exists():
        kept = sorted(aside.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in kept[:-ASIDE_FILES_MAX]:
            files.unlink(path)


def _copy_aside(files: Files, segment: Segment, size: int, aside: Path) -> None:
    """Keep what is cut off a damaged segment, for people, if there is room."""
    with suppress(OSError):
        aside.mkdir(exist_ok=True)
        fd = files.open(aside / f"{segment.path.name}.from-{segment.end}", create=True)
        try:
            for offset in range(segment.end, size, CHUNK_BYTES):
                data = files.pread(segment.fd(), CHUNK_BYTES, offset)
                files.pwritev(fd, [data], offset - segment.end)
        finally:
            files.close(fd)


def _unlink_quietly(files: Files, path: Path) -> None:
    with suppress(FileNotFoundError):
        files.unlink(path)


__all__ = ["ENTRIES", "Damage", "Findings", "examine", "repair", "same_boot"]
