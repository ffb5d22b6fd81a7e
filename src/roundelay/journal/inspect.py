"""A journal as an operator sees it: what it holds, and whether its checksums are right.

All of this only reads, except for `repair_tail`.
"""

from collections.abc import Callable
from pathlib import Path

from roundelay.core.kept import place_after
from roundelay.core.log import KeptLog, Place
from roundelay.core.value import value
from roundelay.journal.directory import Life, Lock, boot_id, owner, read_life
from roundelay.journal.errors import JournalError
from roundelay.journal.files import Files, OsFiles
from roundelay.journal.frame import MARK, decode
from roundelay.journal.recovery import Damage, Findings, examine, repair
from roundelay.journal.segment import Segment
from roundelay.journal.snapshots import ASIDE, Snapshots, check_snapshot
from roundelay.wire.primitives import WireError


@value
class SegmentView:
    """One segment file."""

    path: Path
    bytes: int
    first: int
    """The index of its first entry."""
    start: Place
    """Where in the log it begins."""
    wall_us: int
    """When it was begun."""


@value
class Overview:
    """What a journal holds."""

    path: Path
    group: str
    node: str
    running: bool
    """Whether a node uses it now."""
    segments: tuple[SegmentView, ...]
    kept: KeptLog
    place: Place
    """Where the log ends."""
    committed: int
    able: bool
    why: str
    """Why the node is not able, or would not be if it started now."""
    policy: str
    """Of the node's last life; empty if it is not known."""
    clean: bool
    """Whether it was closed in order."""
    snapshots: tuple[int, ...]
    aside: tuple[Path, ...]
    """What was damaged, and set aside."""
    damage: Damage | None


@value
class Verdict:
    """What `verify` found."""

    frames: int
    bytes: int
    damage: Damage | None
    """The first bad record."""
    snapshots: int
    bad_snapshots: tuple[str, ...]
    """A sentence each."""

    @property
    def whole(self) -> bool:
        return self.damage is None and not self.bad_snapshots


def journals(path: Path) -> list[Path]:
    """The directories of groups in `path`, or `path` itself if it is one; JournalError if there is
    none."""
    if (path / "log").is_dir():
        return [path]
    found = sorted(p.parent for p in path.glob("*/log") if p.is_dir()) if path.is_dir() else []
    if not found:
        raise JournalError(f"there is no journal in {path}; name what the node has as journal=PATH")
    return found


def is_running(path: Path) -> bool:
    """Whether a process holds the lock of a journal."""
    if not (path / "lock").exists():
        return False
    try:
        Lock(path).release()
    except JournalError:
        return True
    return False


def overview(path: Path, files: Files | None = None) -> Overview:
    """What the journal of one group holds."""
    files = files or OsFiles()
    running = is_running(path)
    life = read_life(path)
    found = _examined(path, files, life)
    try:
        why = (life.unable if life is not None else "") if running else found.unable
        aside = [*(path / "log" / "aside").glob("*"), *(path / "snapshots").glob(f"*{ASIDE}")]
        group, node = owner(path) or ("", "")
        return Overview(
            path=path,
            group=group,
            node=node,
            running=running,
            segments=tuple(_view(segment) for segment in found.segments),
            kept=found.kept,
            place=found.place,
            committed=found.kept.committed,
            able=not why,
            why=why,
            policy=life.policy if life is not None else "",
            clean=life is not None and life.clean,
            snapshots=tuple(Snapshots.indexes_in(path / "snapshots")),
            aside=tuple(sorted(aside)),
            damage=None if running else found.damage,
        )
    finally:
        found.close()


def _view(segment: Segment) -> SegmentView:
    header = segment.header
    return SegmentView(segment.path, segment.end, header.first, segment.place, header.wall_us)


def _examined(path: Path, files: Files, life: Life | None) -> Findings:
    try:
        return examine(files, path / "log", life, boot_id(), ours=owner(path) is not None)
    except OSError as e:
        raise JournalError(f"cannot read the journal {path} ({e.strerror}); check the disk") from e


def verify(
    path: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
    files: Files | None = None,
) -> Verdict:
    """Compare every checksum of a journal; `progress` is told the bytes done and those in all."""
    files = files or OsFiles()
    found = _examined(path, files, read_life(path))
    try:
        total = sum(segment.end for segment in found.segments)
        frames = done = 0
        damage = None
        for segment in found.segments:
            before = done
            place = segment.place
            walk = segment.walk()
            why = ""
            for frame in walk:
                frames += 1
                if not frames % 4096:
                    progress(before + walk.offset, total)
                if frame.kind <= MARK + 1:
                    try:
                        after = place_after(place, decode(walk.data, frame))
                    except WireError as e:
                        after, why = None, f"it makes no sense: {e}"
                    if after is None:
                        why = why or "it does not continue the one before it"
                        break
                    place = after
            done = before + segment.end
            if walk.bad is not None:
                why = walk.bad.why
            elif not why and walk.offset < segment.end:
                why = "a record is missing"
            if why:
                damage = Damage(segment.path, walk.offset, why)
                break
        bad = []
        indexes = Snapshots.indexes_in(path / "snapshots")
        for index in indexes:
            try:
                check_snapshot(Snapshots.path_in(path / "snapshots", index), index)
            except JournalError as e:
                bad.append(str(e))
        return Verdict(frames, total, damage or found.damage, len(indexes), tuple(bad))
    finally:
        found.close()


def repair_tail(path: Path, files: Files | None = None) -> Damage | None:
    """Cut off what a crash left of the last write, and nothing else; what was cut, or None if
    nothing is torn. JournalError if the node runs, or if the journal is damaged."""
    files = files or OsFiles()
    lock = Lock(path)
    try:
        found = _examined(path, files, read_life(path))
        try:
            if found.damage is None:
                return None
            if not found.damage.torn:
                raise JournalError(
                    f"{found.damage}, and that is no torn tail: nothing was changed; start the "
                    "node, which sets the damage aside and fetches it again from a peer"
                )
            repair(files, path / "log", found)
            return found.damage
        finally:
            found.close()
    finally:
        lock.release()
