"""The log that a run left on the disks of its nodes, applied once more: what each operation should
have been answered, if the indexes that the answers carry are true."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundelay.check.histories import Operation
from roundelay.core.ids import NodeId
from roundelay.core.log import Mark
from roundelay.journal.files import ReadOnlyFiles
from roundelay.journal.frame import MARK
from roundelay.journal.inspect import journals
from roundelay.journal.reader import Batch, Reader
from roundelay.journal.segment import open_segment, segment_files
from roundelay.structures import Machine, Refused
from roundelay.structures.arguments import read_command
from roundelay.structures.methods import Method
from roundelay.structures.replica import LogEntry, Replica, command_head
from roundelay.wire.log_record import decode_record

_HEAD = command_head("")


@dataclass(frozen=True)
class KeptLog:
    """What is committed."""

    entries: Sequence[LogEntry]
    marks: Sequence[Mark] = ()
    """Of the terms of the entries, and of those between them."""


class LogReplay:
    """A log, and a machine to which it is applied entry by entry."""

    def __init__(self, log: KeptLog, make: Callable[[], Machine]) -> None:
        self._entries = log.entries
        self._marks = list(log.marks)
        self._machine = made = make()
        self._methods = made.write_arguments()
        self._replica = Replica({"": made})

    def reply(self, index: int) -> Any:
        """What the command at this index returned; None if there is none."""
        entry = self._entries[index]
        while self._marks and self._marks[0].term <= entry.term:
            mark = self._marks.pop(0)
            self._replica.begin_term(mark.term, dict(zip(mark.members, mark.sessions, strict=True)))
        reply = self._replica.apply(entry)
        if reply is None:
            return None
        name, *_ = read_command(entry.payload[len(_HEAD) :])
        try:
            return _as_noted(self._methods[name].decode_reply(reply))
        except Refused as e:
            return ("refused", str(e))

    def read(self, operation: Operation) -> Any:
        """What a read returns in the present state."""
        method = getattr(type(self._machine), operation.op)
        function = method.function if isinstance(method, Method) else method
        key = (operation.key,) if operation.key else ()  # Of a map it is an argument too.
        return _as_noted(function(self._machine, *key, *(operation.argument or ())))

    def ended(self) -> Mapping[str, object]:
        """What the machine tells of itself at the end of the log."""
        while self._replica.index < len(self._entries):
            self.reply(self._replica.index)
        return self._machine.status()


def _as_noted(reply: Any) -> Any:
    """As the notes of a client have it."""
    return tuple(reply) if isinstance(reply, list) else reply


def log_of(directory: Path, nodes: Sequence[NodeId]) -> KeptLog:
    """The log, once all nodes have ended: the entries that a node knows to be committed, and behind
    them those that are on the disks of a majority. A client may have been told of these by a node
    that was killed before anybody else knew."""
    paths = [path for node in nodes for path in journals(directory / node)]
    known = [_read(path) for path in paths]
    log = max(
        (entries for entries in known if entries and entries[0].index == 0), key=len, default=[]
    )
    kept = [_read(path, uncommitted=True) for path in paths]
    at = [{entry.index: entry for entry in entries[-TAIL_MAX:]} for entries in kept]
    while True:
        following = Counter(entries[len(log)] for entries in at if len(log) in entries)
        entry, count = next(iter(following.most_common(1)), (None, 0))
        if entry is None or count <= len(nodes) // 2:
            break
        log.append(entry)
    if not log:
        return KeptLog(())
    # Logs that have the same entry are the same up to there, marks included.
    last = log[-1]
    same = next(path for path, entries in zip(paths, at, strict=True)
                if entries.get(last.index) == last)  # fmt: skip
    return KeptLog(log, [mark for mark in _marks(same) if mark.term <= last.term])


TAIL_MAX = 100_000
"""Entries at the end of a journal that may not be known to be committed."""


def _read(path: Path, *, uncommitted: bool = False) -> list[LogEntry]:
    reader = Reader(path, uncommitted=uncommitted)
    try:
        reader.refresh()
        return [
            LogEntry(
                batch.index + n,
                payload,
                batch.term,
                batch.sender,
                batch.session,
                batch.number + n,
                batch.stamp_us,
            )
            for batch in reader.read(reader.first)
            if isinstance(batch, Batch)
            for n, payload in enumerate(batch.payloads)
        ]
    finally:
        reader.close()


def _marks(path: Path) -> list[Mark]:
    files = ReadOnlyFiles()
    found = []
    for file in segment_files(path / "log"):
        segment = open_segment(files, file)
        if segment is None:
            continue
        walk = segment.walk()
        found += [
            decode_record(walk.data[record.start : record.end])
            for record in walk
            if record.kind == MARK
        ]
        segment.close()
    return [mark for mark in found if isinstance(mark, Mark)]
