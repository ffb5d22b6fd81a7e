"""The log that a run left on the disks of its nodes, applied once more: what each operation should
have been answered, if the indexes that the answers carry are true."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from roundelay.check.histories import Operation
from roundelay.core.ids import NodeId
from roundelay.journal.inspect import journals
from roundelay.journal.reader import Batch, Reader
from roundelay.structures import Machine, Refused
from roundelay.structures.arguments import read_command
from roundelay.structures.methods import Method
from roundelay.structures.replica import LogEntry, Replica, command_head

_HEAD = command_head("")


class LogReplay:
    """The entries of a log, and a machine to which they are applied one by one."""

    def __init__(self, entries: Sequence[LogEntry], make: Callable[[], Machine]) -> None:
        self._entries = entries
        made = make()
        self._methods = made.write_arguments()
        self._replica = Replica({"": made})

    def reply(self, index: int) -> Any:
        """What the command at this index returned; None if there is none."""
        entry = self._entries[index]
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
        machine = self._replica.machines[""]
        method = getattr(type(machine), operation.op)
        assert isinstance(method, Method), "a read of the machine"
        key = (operation.key,) if operation.key else ()  # Of a map it is an argument too.
        return _as_noted(method.function(machine, *key))


def _as_noted(reply: Any) -> Any:
    """As the notes of a client have it."""
    return tuple(reply) if isinstance(reply, list) else reply


def entries_of(directory: Path, nodes: Sequence[NodeId]) -> list[LogEntry]:
    """The entries of the log, once all nodes have ended: those that a node knows to be committed,
    and behind them those that are on the disks of a majority. A client may have been told of these
    by a node that was killed before anybody else knew."""
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
            return log
        log.append(entry)


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
