"""Entries of a journal for other processes, while its node writes: no lock, no node.

A reader stops at the greatest number of committed entries that it has seen in the files: what is
above may be cut off again, what is below never changes. It polls: ask again for more. Numbers of
committed entries come with later records, or within a second if none follow.

A record at the very end that is not whole yet is the end. A record that cannot be read although
others follow, or although the journal was closed behind it, is damage: what is before it is read,
and then there is an error until the node has repaired its journal.

    reader = Reader(Path("data/a/orders"))
    for batch in reader.read(from_index=0):    # up to what is committed now
        for index, payload in enumerate(batch.payloads, batch.index): ...

The work is done per packet, which holds many entries.
"""

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from roundelay.core.ids import NodeId, ViewId
from roundelay.core.log import Head, LogRecord, Mark, Place
from roundelay.core.value import value
from roundelay.group.body import Piece, unpack
from roundelay.journal.directory import read_life
from roundelay.journal.errors import DamageError, ForeignLogError, JournalError, TruncatedError
from roundelay.journal.files import Files, ReadOnlyFiles
from roundelay.journal.frame import MARK, whole_behind
from roundelay.journal.segment import (
    HEADER_BYTES,
    Header,
    Segment,
    Walk,
    decode_header,
    open_segment,
    read_index,
    segment_files,
)
from roundelay.wire.log_record import decode_record
from roundelay.wire.primitives import WireError

_LOOKS = 3
"""So often a reader looks before it believes that something is damaged: who reads while others
write may meet the middle of a record before its beginning."""


@value
class Batch:
    """Consecutive entries of one sender, which came in one packet or are a part of one."""

    index: int
    """Of the first entry."""
    payloads: tuple[bytes, ...]
    term: ViewId
    sender: NodeId
    incarnation: int
    session: int
    number: int
    """Of the first entry within its session."""
    stamp_us: int
    """What the sender's wall clock showed."""


@value
class Lossy:
    """Entries from this index on that had been confirmed may be gone: an operator began a new
    generation from what was left of a lost majority."""

    from_index: int
    generation: int


Item: TypeAlias = Batch | Lossy


@value
class Packet:
    """The bytes of one packet, and which of its entries are meant: never none."""

    head: Head
    body: memoryview
    """Its messages, in a form of `group.body`."""
    skip: int
    """So many entries at its beginning are not meant."""
    count: int
    """So many behind those are."""

    @property
    def index(self) -> int:
        """Of the first entry that is meant."""
        return self.head.index + self.skip


class _Position:
    """Where a reader is: the frame that it reads next."""

    def __init__(self, segment: Segment, offset: int, index: int) -> None:
        self.segment = segment
        self.offset = offset
        self.index = index
        """Of the first entry there."""


class Reader:
    """Reads the log of one node in one group; for one thread."""

    def __init__(
        self,
        path: Path,
        log: bytes | None = None,
        generation: int | None = None,
        *,
        files: Files | None = None,
        uncommitted: bool = False,
    ) -> None:
        """`path` is the directory of the node in its group. With `uncommitted` all that is on this
        disk counts as committed, which other nodes may hold otherwise: for those who compare what
        nodes left that have ended. If `log` and `generation` are given, as
        where an offset comes from, ForeignLogError is raised if the journal holds another log, or
        only generations before that one, or if a later one began before the index asked for."""
        self.path = path
        self.log = log or b""
        """The id of the log; empty while the journal is empty."""
        self.generation = 0
        """The greatest that was seen."""
        self.first = 0
        """The first index there is."""
        self.committed = 0
        """So many entries are known to be committed."""
        self._files = files or ReadOnlyFiles()
        self._uncommitted = uncommitted
        self._wanted = generation
        self._bases: dict[int, int] = {}
        """Where each generation began, of those that were seen to begin."""
        self._directory = path / "log"
        self._segments: dict[str, Segment] = {}
        self._order: list[Segment] = []
        self._problem = DamageError(self._directory, 0, "nothing was read")
        """Why the last attempt to read did not go further."""
        self._resume: tuple[int, Segment, int] | None = None
        """An index that was read, and the segment and the offset of its frame."""
        self._seen: _Position | None = None
        """Up to where the files were searched for numbers of committed entries."""
        self._damage: DamageError | None = None
        """Why the search did not come to the end of the files."""
        self._ended = "", 0
        """The file and the offset at which the records ended when that was last looked at."""
        self._checked = False
        """Whether it is known that no record follows there."""
        if not self._directory.is_dir():
            raise JournalError(
                f"there is no journal in {path}; name the directory of a group in it"
            )

    def close(self) -> None:
        for segment in self._segments.values():
            segment.close()
        self._segments.clear()
        self._order = []

    def refresh(self) -> int:
        """Look for more; how many entries are known to be committed. DamageError if a record
        cannot be read behind which there may be more of them."""
        self._look()
        if self._damage is not None:
            raise self._damage
        return self.committed

    def _look(self, enough: int | None = None) -> None:
        """Look for more. If it is known at once that there are `enough`, the last segment is not
        searched for them."""
        self._list()
        self._damage = None
        if self._order:
            if enough is None or self.committed < enough:
                self._search()
            if self._wanted is not None and self.generation < self._wanted:
                raise ForeignLogError(
                    f"the journal {self.path} is of generation {self.generation}, and "
                    f"{self._wanted} was asked for; it missed what an operator recovered: let its "
                    "node fetch that, or read another node's journal"
                )

    def read(self, from_index: int, to: int | None = None) -> Iterator[Item]:
        """Committed entries from this index on and below `to`, if it is given, else below what is
        committed when this is called. TruncatedError if the first was removed, also if that happens
        while the reader waits; DamageError if a record cannot be read: none is skipped."""
        for item in self.packets(from_index, to):
            yield item if isinstance(item, Lossy) else _batch(item)

    def packets(self, from_index: int, to: int | None = None) -> Iterator[Packet | Lossy]:
        """The same entries, in the packets in which they came."""
        self._look(to)
        end = self.committed if to is None else min(to, self.committed)
        if from_index < self.first:
            raise TruncatedError(from_index, self.first)
        self.check_generation(from_index)
        damage = self._damage if to is None or to > end else None
        at, tried = from_index, ""
        while at < end:
            for item in self._from(at, end):
                if type(item) is Packet:
                    at = item.index + item.count
                yield item
            if at >= end:
                break
            # The files changed under the reader, or they are damaged.
            self._list()
            if at < self.first:
                raise TruncatedError(at, self.first)
            if str(self._problem) == tried:
                raise self._problem
            tried = str(self._problem)
        if damage is not None:
            raise damage

    def check_generation(self, index: int) -> None:
        """ForeignLogError if a generation after the wanted one began before this index."""
        if self._wanted is None:
            return
        for generation, base in self._bases.items():
            if generation > self._wanted and base < index:
                raise ForeignLogError(
                    f"generation {generation} of the log began at {base}, and {index} of "
                    f"generation {self._wanted} was asked for; what was confirmed from {base} on "
                    "may be gone: begin there"
                )

    def _list(self) -> None:
        """Take notice of the segment files there are."""
        order: list[Segment] = []
        for path in segment_files(self._directory):
            segment = self._segments.get(path.name)
            if segment is None or not self._is_same(segment):
                if segment is not None:
                    segment.close()
                    del self._segments[path.name]
                try:
                    segment = open_segment(self._files, path)
                except FileNotFoundError:
                    continue
                if segment is None:
                    raise JournalError(
                        f"the header of {path} is damaged; `roundelay journal verify` tells more"
                    )
                self._segments[path.name] = segment
            order.append(segment)
        for name in self._segments.keys() - {segment.path.name for segment in order}:
            self._segments.pop(name).close()
        self._order = order
        if order:
            self._check_log(order)
            self.first = order[0].place.length
            self.committed = max(self.committed, self.first, order[-1].committed)

    def _is_same(self, segment: Segment) -> bool:
        try:
            fd = self._files.open(segment.path)
        except OSError:
            return False
        try:
            header = decode_header(self._files.pread(fd, HEADER_BYTES, 0), segment.path)
            segment.end = self._files.size(fd)
        finally:
            self._files.close(fd)
        return header == segment.header

    def _check_log(self, order: list[Segment]) -> None:
        newest: Header = order[-1].header
        if self.log and newest.log != self.log:
            raise ForeignLogError(
                f"the journal {self.path} holds the log {newest.log.hex()}, not {self.log.hex()}; "
                "begin anew, from its first index"
            )
        self.log = newest.log
        self.generation = max(self.generation, newest.generation)
        for mark in order[-1].carry.marks:
            self._meet(mark)

    def _search(self) -> None:
        """Look for the greatest number of committed entries, from where the last search ended."""
        before: DamageError | None = None
        for _ in range(_LOOKS):
            found = self._search_once()
            if found is None:
                return
            if before is not None and (found.path, found.offset) == (before.path, before.offset):
                self._damage = found
                return
            before = found
            self._list()
            if not self._order:
                return

    def _search_once(self) -> DamageError | None:
        """Search once; what was damaged, or only being written, when that was read."""
        last = self._order[-1]
        seen = self._seen
        if seen is None or seen.segment not in self._order:
            seen = _Position(last, last.carry_end, last.place.length)
        for segment in self._order[self._order.index(seen.segment) :]:
            kept = seen
            if segment is not seen.segment:
                kept = _Position(segment, segment.carry_end, segment.place.length)
            end = kept.index
            walk = segment.walk(kept.offset)
            for found in walk:
                if found.committed > self.committed:
                    self.committed = found.committed
                if found.kind == MARK:
                    self._meet(decode_record(walk.data[found.start : found.end]))
                head = found.head
                if head is None:
                    continue
                end = head.index + head.count
                # Only what is committed stays in its place: search the rest again.
                if end <= self.committed:
                    kept = _Position(segment, walk.offset, head.index)
                    segment.sample(Place(head.term, head.index), kept.offset)
            self._seen = kept
            if self._uncommitted:
                self.committed = max(self.committed, end)
            why = self._why_damaged(segment, walk)
            if why:
                return DamageError(segment.path, walk.offset, why, end)
        return None

    def _why_damaged(self, segment: Segment, walk: Walk) -> str:
        """Why the records should not end where a walk ended; empty if they may."""
        if walk.bad is None and walk.offset == walk.end:
            return ""
        why = walk.bad.why if walk.bad is not None else "a record is missing"
        if segment is not self._order[-1]:
            return why
        ended = segment.path.name, walk.offset
        if self._ended != ended:
            first = not self._ended[0]
            self._ended, self._checked = ended, False
            if walk.bad is None and not first:
                return ""  # The log grows: look at the zeros behind it once it does not.
        if walk.bad is None and self._checked:
            return ""
        place = segment.start + walk.offset
        rest = self._files.pread(segment.fd(), walk.end - walk.offset, walk.offset).rstrip(b"\0")
        if whole_behind(rest, place, segment.header.nonce):
            return why
        life = read_life(self.path)
        if life is not None and life.clean and place < life.end:
            return why
        self._checked = True
        return ""

    def _meet(self, mark: LogRecord) -> None:
        if isinstance(mark, Mark):
            self.generation = max(self.generation, mark.generation)
            self._bases.setdefault(mark.generation, mark.base)

    def _from(self, index: int, end: int) -> Iterator[Packet | Lossy]:
        """Entries from `index` on, as far as the files go; `_problem` tells why not further."""
        order = self._order
        begin = bisect_left(order, index, key=lambda s: s.place.length) - 1
        at = index
        for segment in order[max(begin, 0) :]:
            walk = segment.walk(self._near(segment, at))
            for found in walk:
                head = found.head
                if head is not None:
                    last = head.index + head.count
                    if last <= at:
                        continue
                    if head.index > at:
                        break
                    self._resume = at, segment, walk.offset
                    at = min(last, end)
                    body = memoryview(walk.data)[found.body : found.end]
                    skip = max(0, self._resume[0] - head.index)
                    yield Packet(head, body, skip, at - head.index - skip)
                    if at >= end:
                        return
                elif found.kind == MARK:
                    mark = decode_record(walk.data[found.start : found.end])
                    if isinstance(mark, Mark) and mark.lossy and mark.base >= index:
                        yield Lossy(mark.base, mark.generation)
            why = walk.bad.why if walk.bad is not None else f"entry {at} is not behind it"
            self._problem = DamageError(segment.path, walk.offset, why, at)
            if walk.bad is not None:
                return

    def _near(self, segment: Segment, index: int) -> int:
        """An offset in the segment where a frame begins, before the mark at entry `index` if there
        is one."""
        if self._resume is not None:
            known, where, offset = self._resume
            if where is segment and known < index:
                return offset
        if not segment.samples and segment is not self._order[-1]:
            segment.samples = read_index(segment.path, segment.header, segment.end) or []
        at = bisect_left(segment.samples, index, key=lambda sample: sample.place.length)
        return segment.samples[at - 1].offset if at else segment.carry_end


def _batch(packet: Packet) -> Batch:
    head, skip = packet.head, packet.skip
    try:
        payloads = unpack(bytes(packet.body), head.count)
    except WireError as e:
        raise JournalError(f"entries from {head.index} on make no sense: {e}") from None
    if isinstance(payloads, Piece):
        payloads = (payloads.data,)
    if packet.count < len(payloads):
        payloads = payloads[skip : skip + packet.count]
    return Batch(
        packet.index,
        payloads,
        head.term,
        head.sender,
        head.incarnation,
        head.session,
        head.number + skip,
        head.stamp_us,
    )
