"""The window: what is remembered of each packet, and of the messages that left the window."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from sys import maxsize
from typing import TYPE_CHECKING

from roundelay.trace.schema import Row

if TYPE_CHECKING:
    from roundelay.check.names import Span
    from roundelay.check.online.acyclic import Node
    from roundelay.check.online.views import Configuration

EVERYONE = -1
"""A mask in which every bit is set."""

ARCHIVE_RANGES_MAX = 256
"""Ranges kept for one incarnation of a sender, of messages that left the window. A healthy run
needs one or two; messages for changing destinations need one each. With too few, what became of
the oldest messages is forgotten and verdicts about them become inconclusive; more cost memory."""

INCARNATIONS_MAX = 16
"""Incarnations of one node whose messages are remembered. A message of an older incarnation counts
as forgotten: what is said of it makes verdicts inconclusive. More cost memory."""

WHOLE, FADED, FORGOTTEN = range(3)
"""What a record knows of its past. WHOLE: everything. FADED: who sent, holds and delivered its
messages. FORGOTTEN: nothing."""

MessageKey = tuple[int | None, int | None, int | None]
"""m_src, m_inc, m_seq, as rows have them."""

OrderKey = tuple[int, int, int, int]


class PacketRecord:
    """The messages of one packet, or a part of them, and all that happened to them."""

    __slots__ = (
        "count",
        "delivered",
        "digest",
        "dst",
        "earlier",
        "holders",
        "home",
        "key",
        "memory",
        "node",
        "origin",
        "sent_in",
        "span",
        "view",
        "whole",
        "withdrawn",
    )

    def __init__(self, span: "Span", home: "Configuration") -> None:
        self.span = span
        self.count = span[3]
        self.home = home
        """The configuration whose window it is in."""
        self.memory = WHOLE
        self.origin: int | None = None
        """Who sent it; None while nobody did."""
        self.sent_in: Configuration | None = None
        self.earlier: dict[Configuration, Configuration | None] | None = None
        """Views it was sent in before and taken back from, each with the view in which that
        sending was first delivered."""
        self.withdrawn = False
        self.dst = EVERYONE
        """Mask of its destinations; everyone, if it is for the whole view."""
        self.digest: int | None = None
        self.whole: dict[int, int] | None = None
        """Digests of longer spans that began here before they were cut, by their count."""
        self.holders = 0
        """Mask of those who sent or received it."""
        self.delivered = 0
        """Mask of those who delivered it; everyone, if that is forgotten."""
        self.view: Configuration | None = None
        """The regular view in which the latest sending was first delivered."""
        self.key: OrderKey | None = None
        self.node: Node | None = None
        """Its place in the graph of deliveries."""

    def send(self, proc: int, view: "Configuration") -> None:
        """It is sent, or sent again."""
        if self.sent_in is not None and self.sent_in is not view:
            self.earlier = {**(self.earlier or {}), self.sent_in: self.view}
            self.view = None
        self.origin, self.sent_in, self.withdrawn = proc, view, False

    def keep_digest(self, count: int, digest: int) -> None:
        """Remember what was sent as one span that begins here; what was sent first counts."""
        if count == self.count:
            self.digest = digest if self.digest is None else self.digest
        else:
            self.whole = {count: digest, **(self.whole or {})}

    def forgot(self) -> bool:
        """Whether it was delivered before, or may have been, and how is forgotten."""
        return self.memory != WHOLE and self.delivered != 0


Fate = tuple[int | None, int, int, int]
"""What is known of messages outside the window: a record's origin, dst, holders, delivered."""


@dataclass(slots=True)
class Range:
    """Messages of one sender, from `first` up to `end`, that left the window and fared alike."""

    first: int
    end: int
    fate: Fate


_FIRST = attrgetter("first")


class Stream:
    """All messages of one incarnation of a sender."""

    __slots__ = ("end", "floor", "longest", "ranges")

    def __init__(self, floor: int = 0) -> None:
        self.end = 0
        """One more than the greatest message number in any row so far."""
        self.longest = 1
        """How many messages its longest span has."""
        self.floor = floor
        """Messages below, unless they are in a range or in the window, are forgotten."""
        self.ranges: list[Range] = []

    def keep(self, first: int, end: int, fate: Fate) -> None:
        """Remember what became of a span that leaves the window."""
        ranges = self.ranges
        if ranges and ranges[-1].end == first and ranges[-1].fate == fate:
            ranges[-1].end = end
            return
        at = bisect_right(ranges, first, key=_FIRST)
        if at and ranges[at - 1].end == first and ranges[at - 1].fate == fate:
            at -= 1
            first = ranges.pop(at).first
        if at < len(ranges) and ranges[at].first == end and ranges[at].fate == fate:
            end = ranges.pop(at).end
        ranges.insert(at, Range(first, end, fate))
        if len(ranges) > ARCHIVE_RANGES_MAX:
            self.floor = max(self.floor, ranges.pop(0).end)

    def pop_fate(self, first: int, end: int) -> tuple[Fate | None, int]:
        """Remove what is known of message `first` and return it, and the number up to which, below
        `end`, it holds of the messages behind as well."""
        at = bisect_right(self.ranges, first, key=_FIRST)
        if at and first < self.ranges[at - 1].end:
            range_ = self.ranges.pop(at - 1)
            end = min(end, range_.end)
            rest = (Range(range_.first, first, range_.fate), Range(end, range_.end, range_.fate))
            self.ranges[at - 1 : at - 1] = [part for part in rest if part.first < part.end]
            return range_.fate, end
        if at < len(self.ranges):
            end = min(end, self.ranges[at].first)
        if first < self.floor:
            end = min(end, self.floor)
        return None, end


class Window:
    """Records by message, at most `size` in each configuration, the oldest leaving first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.table: dict[MessageKey, PacketRecord] = {}
        self.on_split: list[Callable[[PacketRecord, PacketRecord], None]] = []
        """Told of a span cut in two: what is left of the record, and the new one behind it."""
        self.on_leave: list[Callable[[PacketRecord], None]] = []
        self._streams: dict[tuple[int, int], Stream] = {}
        self._lives: dict[int, list[int]] = {}
        """Incarnations of each sender that have a stream, the smallest first."""

    def open(self, row: Row, home: "Configuration") -> PacketRecord | None:
        """The record of messages never mentioned before; None if any of them was."""
        src, inc, first, count = row.m_src, row.m_inc, row.m_seq, row.count
        assert src is not None
        assert inc is not None
        assert first is not None
        stream = self._streams.get((src, inc)) or self._stream(src, inc)
        if first < stream.end or first < stream.floor:
            return None
        return self._admit(stream, PacketRecord((src, inc, first, count), home))

    def pieces(self, row: Row, home: "Configuration") -> Iterator[tuple[Row, PacketRecord]]:
        """The row, cut so that each piece is about exactly one record.

        Records are split, brought back from what is remembered of older messages, or made for
        messages that were never mentioned, as needed. Each is in the window when it is given, and
        may be out of it when the next one is.
        """
        src, inc, first, count = row.m_src, row.m_inc, row.m_seq, row.count
        assert src is not None
        assert inc is not None
        assert first is not None
        table, stream = self.table, self._stream(src, inc)
        at, end = first, first + count
        while at < end:
            record = table.get((src, inc, at)) or self._split_before(stream, (src, inc, at))
            if record is None:
                known = (n for n in range(at + 1, end) if (src, inc, n) in table)
                record = self._recall(stream, (src, inc, at), next(known, end), home)
            elif at + record.count > end:
                self._split(record, end - at)
            if table.get((src, inc, at)) is not record:
                continue  # The window is so small that the other half drove it out.
            at += record.count
            yield row if record.count == count else _piece(row, record), record

    def rehome(self, record: PacketRecord, home: "Configuration") -> None:
        """The record was sent again, in this configuration."""
        if record.home is not home:
            record.home = home
            home.records.append(record)

    def forget(self, home: "Configuration") -> None:
        """Let a configuration's records go."""
        while home.records:
            self._leave(home)

    def _admit(self, stream: Stream, record: PacketRecord) -> PacketRecord:
        src, inc, first, count = record.span
        self.table[src, inc, first] = record
        stream.end = max(stream.end, first + count)
        stream.longest = max(stream.longest, count)
        records = record.home.records
        records.append(record)
        if len(records) > self.size:
            self._leave(record.home)
        return record

    def _leave(self, home: "Configuration") -> None:
        record = home.records.popleft()
        src, inc, first, count = record.span
        if record.home is not home or self.table.get((src, inc, first)) is not record:
            return  # It was sent again and belongs to a later view, or left with that one.
        del self.table[src, inc, first]
        if record.memory != FORGOTTEN:
            stream = self._streams.get((src, inc))
            if stream is not None:
                fate = record.origin, record.dst, record.holders, record.delivered
                stream.keep(first, first + count, fate)
        for tell in self.on_leave:
            tell(record)

    def _stream(self, src: int, inc: int) -> Stream:
        stream = self._streams.get((src, inc))
        if stream is None:
            lives = self._lives.setdefault(src, [])
            too_old = len(lives) >= INCARNATIONS_MAX and inc < lives[0]
            stream = self._streams[src, inc] = Stream(maxsize if too_old else 0)
            lives.append(inc)
            lives.sort()
            if len(lives) > INCARNATIONS_MAX:
                del self._streams[src, lives.pop(0)]
        return stream

    def _split_before(self, stream: Stream, message: tuple[int, int, int]) -> PacketRecord | None:
        """The record that begins with this message, cut off one that begins earlier."""
        src, inc, at = message
        for first in range(at - 1, at - stream.longest, -1):
            record = self.table.get((src, inc, first))
            if record is not None:
                return self._split(record, at - first) if first + record.count > at else None
        return None

    def _split(self, record: PacketRecord, keep: int) -> PacketRecord:
        """Cut the record behind its first `keep` messages; the new record has the others."""
        src, inc, first, count = record.span
        tail = PacketRecord((src, inc, first + keep, count - keep), record.home)
        digest, record.digest = record.digest, None
        record.span = src, inc, first, keep
        record.count = keep
        if digest is not None:
            record.keep_digest(count, digest)
        for name in _COPIED:
            setattr(tail, name, getattr(record, name))
        tail.earlier = None if record.earlier is None else dict(record.earlier)
        if record.key is not None:
            k0, k1, k2, k3 = record.key
            tail.key = k0, k1, k2, k3 + keep
        for tell in self.on_split:
            tell(record, tail)
        return self._admit(self._stream(src, inc), tail)

    def _recall(
        self, stream: Stream, message: tuple[int, int, int], end: int, home: "Configuration"
    ) -> PacketRecord:
        """A record for messages that are not in the window, from this one up to `end` at most."""
        src, inc, first = message
        fate, end = stream.pop_fate(first, end)
        record = PacketRecord((src, inc, first, end - first), home)
        if fate is not None:
            record.memory = FADED
            record.origin, record.dst, record.holders, record.delivered = fate
        elif first < stream.floor:
            record.memory = FORGOTTEN
            record.delivered = EVERYONE
        return self._admit(stream, record)


_COPIED = (
    "memory",
    "origin",
    "sent_in",
    "withdrawn",
    "dst",
    "holders",
    "delivered",
    "view",
)


def _piece(row: Row, record: PacketRecord) -> Row:
    """The part of a row that covers this record. A digest or size of more is nobody's."""
    _, _, first, count = record.span
    k3 = None if row.k3 is None else row.k3 + first - (row.m_seq or 0)
    return row._replace(m_seq=first, k3=k3, digest=None, size=None, count=count)
