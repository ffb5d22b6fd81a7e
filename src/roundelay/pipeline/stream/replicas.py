"""The journals of several nodes as alternatives for one log.

Every node of a group keeps the same log, so a query that may read several journals goes on when one
of them is gone, damaged, behind, or has removed what is wanted. What is read is checked by the
journal's own reader: the id of the log, its generation, and how much is known to be committed
*there*. A number of committed entries that another journal told is not enough, as this one may end
with entries that never were committed.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from roundelay.core.value import value
from roundelay.journal.errors import BaseJournalError, ForeignLogError, TruncatedError
from roundelay.journal.reader import Packet, Reader
from roundelay.pipeline.errors import PipelineError

POLL_S = 0.05
"""How often a journal that is behind is looked at again, in seconds. Shorter: a query that waits
keeps a core busy; longer: it goes on later than it could."""
KEPT_READERS = 16
"""Readers that a process keeps open for its next task: with fewer, a task searches the journal
again; with more, a process of many queries holds more files open."""

_readers: dict[tuple[Path, str, int], tuple[Reader, object]] = {}
"""Of this process, the one used last at the end, with what tells a directory from another that took
its place; Spark's Python workers serve many tasks."""


@value
class Offset:
    """A point in a log, as Spark keeps it in a checkpoint."""

    log: str
    """The id of the log in hex digits; empty as long as the journal was."""
    generation: int
    index: int

    def document(self) -> dict[str, object]:
        return {"log": self.log, "generation": self.generation, "index": self.index}


def offset_in(document: dict[str, object]) -> Offset:
    """PipelineError if a checkpoint holds the offset of something else."""
    try:
        log, generation, index = (document[key] for key in ("log", "generation", "index"))
    except KeyError:
        log = generation = index = None
    if not (isinstance(log, str) and isinstance(generation, int) and isinstance(index, int)):
        raise PipelineError(
            f"the checkpoint is of another source: {document!r} is no offset of a log; give the "
            "query a checkpoint of its own"
        )
    return Offset(log, generation, index)


class Replicas:
    """The journals at these paths, as far as they can be read."""

    def __init__(self, paths: Sequence[Path], at: Offset, first_choice: int = 0) -> None:
        """They must hold the log of `at`, in its generation at least. `first_choice` says which
        path is tried first, so that tasks share the disks."""
        turn = first_choice % len(paths)
        self._paths = (*paths[turn:], *paths[:turn])
        self.at = at
        """Up to here something was read."""
        self.why: dict[Path, str] = {}
        """Why these cannot be read."""
        self.committed = 0
        """The greatest number of committed entries that any of them knows."""
        self.first: int | None = None
        """The least index that any of them still has."""
        self.generation = 0
        """The greatest that any of them knows."""
        self.log = at.log

    def refresh(self) -> bool:
        """Look at all of them; whether any can be read."""
        self.why.clear()
        self.first = None
        foreign: BaseJournalError | None = None
        for path in self._paths:
            try:
                reader = self._reader(path)
                reader.refresh()
                reader.check_generation(self.at.index)
            except (BaseJournalError, OSError) as e:
                self._lose(path, e)
                if isinstance(e, ForeignLogError):
                    foreign = e
                continue
            if not reader.log:
                self.first = 0 if self.first is None else self.first
                continue
            if self.log and reader.log.hex() != self.log:
                self.why[path] = f"it holds the log {reader.log.hex()}, not {self.log}"
                continue
            self.log = reader.log.hex()
            self.committed = max(self.committed, reader.committed)
            self.generation = max(self.generation, reader.generation)
            self.first = reader.first if self.first is None else min(self.first, reader.first)
        if foreign is not None and len(self.why) == len(self._paths):
            raise PipelineError(
                f"{foreign}; to read the log as it is now, start the query with a new checkpoint"
            )
        return self.first is not None

    def reasons(self) -> str:
        return "; ".join(f"{path}: {why}" for path, why in self.why.items())

    def packets(self, start: int, end: int, patience_s: float, *, skip: bool) -> Iterator[Packet]:
        """The packets with the entries from `start` up to `end`, each entry once, from whichever
        journal has them. With `skip`, entries that no journal has any more are left out, otherwise
        that is a PipelineError."""
        at = start
        deadline: float | None = None
        while at < end:
            before, removed, behind = at, [], False
            self.why.clear()
            for path in self._paths:
                try:
                    reader = self._reader(path)
                    for packet in reader.packets(at, end):
                        if type(packet) is Packet:
                            yield packet
                            at = packet.index + packet.count
                except TruncatedError as e:
                    removed.append(e.first)
                    self.why[path] = str(e)
                except (BaseJournalError, OSError) as e:
                    self._lose(path, e)
                else:
                    if at < end:
                        behind = True
                        self.why[path] = f"it has {reader.committed} committed entries so far"
                if at >= end:
                    return
            if at > before:
                deadline = None
                continue
            if behind:
                now = time.monotonic()
                deadline = now + patience_s if deadline is None else deadline
                if now < deadline:
                    time.sleep(POLL_S)
                    continue
            if removed and skip:
                at, deadline = min(*removed, end), None
                continue
            if removed:
                raise removed_error(at, min(removed), self.reasons())
            raise PipelineError(
                f"no journal has entry {at} of the log ({self.reasons()}); see that a node of the "
                "group runs, and name more journals as alternatives"
            )

    def _reader(self, path: Path) -> Reader:
        key = (path, self.at.log, self.at.generation)
        there = journal_in(path)
        place = _place(there)
        reader, known = _readers.pop(key, (None, None))
        if reader is not None and known != place:  # A copy took its place: nothing is known of it.
            reader.close()
            reader = None
        if reader is None:
            log = bytes.fromhex(self.at.log) or None
            reader = Reader(there, log, self.at.generation if log else None)
            while len(_readers) >= KEPT_READERS:
                _readers.pop(next(iter(_readers)))[0].close()
        _readers[key] = reader, place
        return reader

    def _lose(self, path: Path, error: Exception) -> None:
        self.why[path] = str(error)
        reader, _ = _readers.pop((path, self.at.log, self.at.generation), (None, None))
        if reader is not None:
            reader.close()


def _place(path: Path) -> object:
    """A node writes the file `identity` once, when it makes the directory."""
    try:
        found = (path / "identity").stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def removed_error(index: int, first: int, reasons: str = "") -> PipelineError:
    """The error for entries that no journal has any more."""
    more = f" ({reasons})" if reasons else ""
    return PipelineError(
        f"entry {index} was removed from the journals, which begin at {first}{more}; keep more "
        "with retain_bytes, name a journal that has it, or go on without what is missing with "
        "failOnDataLoss=false"
    )


def journal_in(path: Path) -> Path:
    """The directory of the one group in a journal: `path` itself, or what is in it."""
    if (path / "log").is_dir():
        return path
    try:
        groups = sorted(child for child in path.iterdir() if (child / "log").is_dir())
    except OSError:
        return path
    if len(groups) > 1:
        names = ", ".join(child.name for child in groups)
        raise PipelineError(f"{path} has the journals of several groups; name one of {names}")
    return groups[0] if groups else path
