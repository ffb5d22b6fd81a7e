"""The window: what is remembered of each message, and how it is let go."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from sys import maxsize
from typing import TYPE_CHECKING

from roundelay.trace.schema import Row

if TYPE_CHECKING:
    from roundelay.check.online.acyclic import Node
    from roundelay.check.online.findings import Span
    from roundelay.check.online.views import Configuration

EVERYONE = -1
"""A mask in which every bit is set."""

ARCHIVE_RUNS_MAX = 256
"""Runs kept per sender. Messages for changing destinations make a run each, others very few."""

INCARNATIONS_MAX = 16
"""Lives of a node whose messages are remembered at all."""

WHOLE, FADED, FORGOTTEN = range(3)
"""What an entry knows of its past: all; who sent, holds and delivered it; nothing."""

MessageKey = tuple[int | None, int | None, int | None]
"""m_src, m_inc, m_seq, as rows have them."""

OrderKey = tuple[int, int, int, int]


class Entry:
    """A span of messages that travel together, and all that happened to them."""

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
"""What is known of messages outside the window: an entry's origin, dst, holders, delivered."""


@dataclass(slots=True)
class Run:
    """Messages of one sender, from `first` up to `end`, that left the window and fared alike."""

    first: int
    end: int
    fate: Fate


_FIRST = attrgetter("first")


class Stream:
    """All messages of one incarnation of a sender."""

    __slots__ = ("end", "floor", "longest", "runs")

    def __init__(self, floor: int = 0) -> None:
        self.end = 0
        """Past the greatest number that was ever mentioned."""
        self.longest = 1
        """Messages in its longest span."""
        self.floor = floor
        """Messages below, unless they are in a run or in the window, are forgotten."""
        self.runs: list[Run] = []

    def keep(self, first: int, end: int, fate: Fate) -> None:
        """Remember what became of a span that leaves the window."""
        runs = self.runs
        if runs and runs[-1].end == first and runs[-1].fate == fate:
            runs[-1].end = end
            return
        at = bisect_right(runs, first, key=_FIRST)
        if at and runs[at - 1].end == first and runs[at - 1].fate == fate:
            at -= 1
            first = runs.pop(at).first
        if at < len(runs) and runs[at].first == end and runs[at].fate == fate:
            end = runs.pop(at).end
        runs.insert(at, Run(first, end, fate))
        if len(runs) > ARCHIVE_RUNS_MAX:
            self.floor = max(self.floor, runs.pop(0).end)

    def take(self, first: int, end: int) -> tuple[Fate | None, int]:
        """Take out what is known of `first`, and how far, below `end`, the same is true."""
        at = bisect_right(self.runs, first, key=_FIRST)
        if at and first < self.runs[at - 1].end:
            run = self.runs.pop(at - 1)
            end = min(end, run.end)
            rest = (Run(run.first, first, run.fate), Run(end, run.end, run.fate))
            self.runs[at - 1 : at - 1] = [part for part in rest if part.first < part.end]
            return run.fate, end
        if at < len(self.runs):
            end = min(end, self.runs[at].first)
        if first < self.floor:
            end = min(end, self.floor)
        return None, end


class Window:
    """Entries by message, at most `size` in each configuration, the oldest leaving first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.table: dict[MessageKey, Entry] = {}
        self.on_split: list[Callable[[Entry, Entry], None]] = []
        """Told of a span cut in two: what is left of the entry, and the new one behind it."""
        self.on_leave: list[Callable[[Entry], None]] = []
        self._streams: dict[tuple[int, int], Stream] = {}
        self._lives: dict[int, list[int]] = {}
        """Incarnations of each sender that have a stream, the smallest first."""

    def open(self, row: Row, home: "Configuration") -> Entry | None:
        """The entry of messages never mentioned before; None if any of them was."""
        src, inc, first, count = row.m_src, row.m_inc, row.m_seq, row.count
        assert src is not None
        assert inc is not None
        assert first is not None
        stream = self._streams.get((src, inc)) or self._stream(src, inc)
        if first < stream.end or first < stream.floor:
            return None
        return self._admit(stream, Entry((src, inc, first, count), home))

    def pieces(self, row: Row, home: "Configuration") -> Iterator[tuple[Row, Entry]]:
        """The row, cut so that each piece is about exactly one entry.

        Entries are split, brought back from what is remembered of older messages, or made for
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
            entry = table.get((src, inc, at)) or self._split_before(stream, (src, inc, at))
            if entry is None:
                known = (n for n in range(at + 1, end) if (src, inc, n) in table)
                entry = self._recall(stream, (src, inc, at), next(known, end), home)
            elif at + entry.count > end:
                self._split(entry, end - at)
            if table.get((src, inc, at)) is not entry:
                continue  # The window is so small that the other half drove it out.
            at += entry.count
            yield row if entry.count == count else _piece(row, entry), entry

    def rehome(self, entry: Entry, home: "Configuration") -> None:
        """The entry was sent again, in this configuration."""
        if entry.home is not home:
            entry.home = home
            home.entries.append(entry)

    def forget(self, home: "Configuration") -> None:
        """Let a configuration's entries go."""
        while home.entries:
            self._leave(home)

    def _admit(self, stream: Stream, entry: Entry) -> Entry:
        src, inc, first, count = entry.span
        self.table[src, inc, first] = entry
        stream.end = max(stream.end, first + count)
        stream.longest = max(stream.longest, count)
        entries = entry.home.entries
        entries.append(entry)
        if len(entries) > self.size:
            self._leave(entry.home)
        return entry

    def _leave(self, home: "Configuration") -> None:
        entry = home.entries.popleft()
        src, inc, first, count = entry.span
        if entry.home is not home or self.table.get((src, inc, first)) is not entry:
            return  # It was sent again and belongs to a later view, or left with that one.
        del self.table[src, inc, first]
        if entry.memory != FORGOTTEN:
            stream = self._streams.get((src, inc))
            if stream is not None:
                fate = entry.origin, entry.dst, entry.holders, entry.delivered
                stream.keep(first, first + count, fate)
        for tell in self.on_leave:
            tell(entry)

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

    def _split_before(self, stream: Stream, message: tuple[int, int, int]) -> Entry | None:
        """The entry that begins with this message, cut off one that begins earlier."""
        src, inc, at = message
        for first in range(at - 1, at - stream.longest, -1):
            entry = self.table.get((src, inc, first))
            if entry is not None:
                return self._split(entry, at - first) if first + entry.count > at else None
        return None

    def _split(self, entry: Entry, keep: int) -> Entry:
        """Cut the entry behind its first `keep` messages; the new entry has the others."""
        src, inc, first, count = entry.span
        tail = Entry((src, inc, first + keep, count - keep), entry.home)
        digest, entry.digest = entry.digest, None
        entry.span = src, inc, first, keep
        entry.count = keep
        if digest is not None:
            entry.keep_digest(count, digest)
        for name in _COPIED:
            setattr(tail, name, getattr(entry, name))
        tail.earlier = None if entry.earlier is None else dict(entry.earlier)
        if entry.key is not None:
            k0, k1, k2, k3 = entry.key
            tail.key = k0, k1, k2, k3 + keep
        for tell in self.on_split:
            tell(entry, tail)
        return self._admit(self._stream(src, inc), tail)

    def _recall(
        self, stream: Stream, message: tuple[int, int, int], end: int, home: "Configuration"
    ) -> Entry:
        """An entry for messages that are not in the window, from this one up to `end` at most."""
        src, inc, first = message
        fate, end = stream.take(first, end)
        entry = Entry((src, inc, first, end - first), home)
        if fate is not None:
            entry.memory = FADED
            entry.origin, entry.dst, entry.holders, entry.delivered = fate
        elif first < stream.floor:
            entry.memory = FORGOTTEN
            entry.delivered = EVERYONE
        return self._admit(stream, entry)


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


def _piece(row: Row, entry: Entry) -> Row:
    """The part of a row that covers this entry. A digest or size of more is nobody's."""
    _, _, first, count = entry.span
    k3 = None if row.k3 is None else row.k3 + first - (row.m_seq or 0)
    return row._replace(m_seq=first, k3=k3, digest=None, size=None, count=count)
