"""Journals for the tests of the log in Spark, and what is in them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.journal.logs import LOG, T1, T2, QuickFiles, mark

from roundelay.core.checksum import crc32
from roundelay.core.ids import ViewId
from roundelay.core.log import NAMED, Entries, Head, LogRecord
from roundelay.group.body import pack, pack_piece
from roundelay.journal.journal import Journal, JournalConfig
from roundelay.journal.policy import parse_policy
from roundelay.journal.reader import Batch, Reader

SEGMENTS = JournalConfig(segment_bytes=16384, preallocate_bytes=4096, reserve_bytes=4096)


def record(index: int, payloads: Sequence[bytes], term: ViewId = T1, session: int = 5) -> Entries:
    body = pack(payloads)
    sender = "b" if session & NAMED else "a"
    count = len(payloads)
    head = Head(index, term, sender, 7, session, index, count, 1000 + index, crc32(body))
    return Entries(head, body)


def large(index: int, payload: bytes) -> Entries:
    """As the log keeps a message that travelled in pieces."""
    body = pack_piece(payload, 0, 1, len(payload), crc32(payload))
    return Entries(Head(index, T1, "a", 7, 5, index, 1, 1000 + index, crc32(body)), body)


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"entry %06d" % number for number in range(first, first + count)]


class Node:
    """The journal of a node, which is written to as if it ran."""

    def __init__(self, path: Path, log: bytes = LOG, *, begin: bool = True) -> None:
        self.path = path
        self.journal = Journal(
            path, "orders", "a", parse_policy("always"), config=SEGMENTS, files=QuickFiles()
        )
        self.length = self.journal.place.length
        if begin and not self.journal.log:
            self.add(replace(mark(), log=log))

    def add(self, *records: LogRecord) -> None:
        self.journal.append(records)
        self.journal.sync()
        self.length = self.journal.place.length

    def grow(self, count: int, each: int = 10) -> None:
        """So many more entries, all committed."""
        end = self.length + count
        for first in range(self.length, end, each):
            self.add(record(first, numbered(min(each, end - first), first)))
        self.commit()

    def commit(self, length: int | None = None) -> None:
        self.journal.committed = self.length if length is None else length
        self.journal.note()
        self.journal.sync()

    def close(self) -> None:
        self.journal.close()


def varied(node: Node) -> None:
    """Entries of all kinds, in two terms."""
    node.add(record(0, [b"one", b"two", b"six"]))
    node.add(record(3, [b"", b"longer", b"\x00\xff"], session=NAMED | 12))
    opening = Head(6, T1, "b", 7, NAMED | 3, 0, 0, 1000, crc32(b"name"))
    node.add(Entries(opening, b"name"))
    node.add(large(6, b"large" * 2000))
    node.add(record(7, [b"", b""]))
    node.add(mark(T2, 9))
    node.add(record(9, [b"last"], T2))
    node.commit()


def rows_of(path: Path) -> list[dict[str, Any]]:
    """What the journal's own reader says, as the source's rows."""
    reader = Reader(path)
    reader.refresh()
    rows = []
    for batch in reader.read(reader.first):
        assert isinstance(batch, Batch)
        for place, payload in enumerate(batch.payloads):
            rows.append(
                {
                    "index": batch.index + place,
                    "term": str(batch.term),
                    "sender": batch.sender,
                    "incarnation": batch.incarnation,
                    "session": f"{batch.session:016x}",
                    "number": batch.number + place,
                    "stamp_us": batch.stamp_us,
                    "payload": payload,
                }
            )
    reader.close()
    return rows
