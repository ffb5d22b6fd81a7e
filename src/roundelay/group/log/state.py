"""What this node's log holds, and what of it is stored.

Every change of the log goes through here: `append`, `cut` and `reset` change what the node knows
and ask the journal for the same. The journal works in the background and in order, so a change is
*stored* only when the driver says so; until then the change itself is kept, to be asked for again
if there was no room.
"""

import struct
from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, assert_never

from roundelay.core.checksum import crc32
from roundelay.core.contract import Boot
from roundelay.core.effects import (
    Committed,
    Cut,
    Effect,
    Kind,
    Record,
    Reset,
    SetTimer,
    Store,
    StoreSnapshot,
)
from roundelay.core.ids import ViewId
from roundelay.core.log import (
    EMPTY_LOG,
    MARKS_KEPT,
    NAMED,
    NO_TERM,
    Checkpoint,
    Entries,
    Head,
    LogRecord,
    Mark,
    Place,
)
from roundelay.core.value import value
from roundelay.group.log.arrival import Arrival, without_first
from roundelay.group.log.config import STORE_TIMER, LogConfig
from roundelay.group.log.sessions import SessionTable, Undo

_ENTRIES = struct.Struct(">BQQQQIQIQ")
_MARK = struct.Struct(">BQQQ")
_RECORD_BYTES = 128
"""What a record takes besides its body, about."""


@value
class _Step:
    """What undoes one record."""

    place: Place
    digest: int
    time_us: int
    changes: tuple[Undo, ...]


@value
class _Asked:
    """Something the journal was asked for, in the order of `number`."""

    effect: Store | Cut | Reset | StoreSnapshot
    place: Place
    """The end of the log behind it."""
    size: int


class LogState:
    """The log of one node. Effects go to `out`; those of the journal at `flush` at the latest."""

    def __init__(self, boot: Boot, config: LogConfig, out: list[Effect[Any]]) -> None:
        kept = boot.journal or EMPTY_LOG
        self.node = boot.node
        self.config = config
        self.log = kept.log
        self.generation = kept.generation
        self.able = kept.able
        """Whether the journal was found whole; membership keeps whether the node may vote."""
        self.why = kept.why
        self.first = kept.first
        self.snapshot = kept.snapshot
        self.marks: list[Mark] = list(kept.marks)
        """The newest ones, in order."""
        self.out = out
        start = kept.checkpoint
        self._undo: deque[_Step] = deque()
        self.place = start.place
        self.digest = start.digest
        self.time_us = start.time_us
        self.sessions = SessionTable(config.sessions_max, start.sessions)
        self.committed = 0
        """So many entries are committed; never more than there are."""
        self.settled = 0
        """No entry below this will ever be taken away: it was committed, also if that may not be
        shown yet."""
        self._spared: frozenset[int] = frozenset()
        """Sessions of the members of the present term."""
        self._batch: list[LogRecord] = []
        self._batch_bytes = 0
        self._number = 0
        self._asked: deque[_Asked] = deque()
        self._asked_bytes = 0
        self.lacks_room = False
        """There was no room: nothing is asked for until it is tried again."""
        self._since_checkpoint = 0
        self._traced = boot.traced
        self.on_entries: Callable[[Head, Place], None] = _nothing_to_do
        """Called with each record of entries that is added, and where the log continues."""
        self.on_cut: Callable[[Place], None] = _nothing_to_do
        """Called with the new end of the log when it was cut."""
        self.stored = self.place
        """The end of what is stored."""
        for mark in kept.marks:  # A checkpoint may stand within a term, whose mark is before it.
            if mark.term == start.place.term:
                self._spared = frozenset(mark.sessions)
        for record in kept.tail:
            if isinstance(record, Mark):
                self._apply_mark(record)
            else:
                self._apply_head(record)
        # The journal gives all marks that it remembers; those of the tail came a second time.
        self.marks = list(kept.marks)[-MARKS_KEPT:]
        if self.marks:
            self._spared = frozenset(self.marks[-1].sessions)
        self.stored = self.place
        for mark in self.marks:
            self._tell_loss(mark)
        self.committed = self.settled = min(kept.committed, self.place.length)
        if self.committed:  # The driver has read it where the node has.
            self.emit(Record(Kind.COMMIT, index=self.committed))

    # What there is

    @property
    def term(self) -> ViewId:
        """Of the last mark."""
        return self.place.term

    @property
    def length(self) -> int:
        return self.place.length

    @property
    def rank(self) -> tuple[int, Place]:
        """How good this log is."""
        return self.generation, self.place

    @property
    def checkpoint(self) -> Checkpoint:
        """What the log amounts to at its end."""
        return Checkpoint(self.place, self.digest, self.time_us, self.sessions.sessions)

    @property
    def waiting_bytes(self) -> int:
        """Of records that are not stored."""
        return self._batch_bytes + self._asked_bytes

    @property
    def idle(self) -> bool:
        """Whether all that the journal was asked for is done."""
        return not self._asked and not self._batch

    def last_mark(self) -> Mark | None:
        return self.marks[-1] if self.marks else None

    def end_of(self, term: ViewId) -> Place | None:
        """The greatest mark not above `term`, and where that term ends in this log. The beginning
        of all logs if there is none; None if that is older than the marks kept here."""
        _, length, opened = self.place
        for mark in reversed(self.marks):
            if mark.term <= term:
                return Place(mark.term, length, opened)
            length, opened = mark.base, mark.opened
        if self.marks and (len(self.marks) >= MARKS_KEPT or self.first):
            return None
        return Place(NO_TERM, 0)

    def holds(self, place: Place) -> bool:
        """Whether that place is in this log, as far as its marks tell."""
        end = self.end_of(place.term)
        if end is None or end.term != place.term:
            return False
        begins = next((m.base for m in self.marks if m.term == place.term), 0)
        return begins <= place.length and place <= end

    # Changes

    def take(self, arrival: Arrival) -> Entries | None:
        """Give a log packet of the present term its indexes, as far as it brings anything new; None
        if it does not."""
        fresh = self._fresh(arrival)
        if fresh is None:
            return None
        head = Head(
            self.place.length,
            self.place.term,
            fresh.sender,
            fresh.incarnation,
            fresh.session,
            fresh.number,
            fresh.count,
            fresh.stamp_us,
            crc32(fresh.body),
        )
        entries = Entries(head, fresh.body)
        self.append(entries)
        return entries

    def _fresh(self, arrival: Arrival) -> Arrival | None:
        """The part of a log packet that is to get an index."""
        used = self.sessions.get(arrival.session)
        named = bool(arrival.session & NAMED)
        if not arrival.count:
            return arrival if used is None else None
        if named and used is None:
            return None  # Forgotten, or never opened.
        following = 0 if used is None else used.number + 1
        if arrival.number > following and not named:
            return None  # What is before it was lost with an old view: all of it comes again.
        skipped = max(0, following - arrival.number)
        if skipped >= arrival.count:
            return None
        return without_first(arrival, skipped) if skipped else arrival

    def append(self, record: Entries | Mark) -> None:
        """Add a record. The caller has made sure that it follows the last one."""
        if type(record) is Entries:
            head = record.head
            self._apply_head(head)
            if self._traced:
                self.emit(Record(Kind.ENTRY, head=head, index=head.index))
            self.on_entries(head, self.place)
            size = len(record.body) + _RECORD_BYTES
        else:
            assert type(record) is Mark
            self.generation, self.log = record.generation, record.log
            self._apply_mark(record)
            self._tell_loss(record)
            size = _RECORD_BYTES + 80 * (len(record.members) + len(record.voters))
        self._batch.append(record)
        self._batch_bytes += size
        self._since_checkpoint += size
        if type(record) is Mark or self._since_checkpoint >= self.config.checkpoint_bytes:
            self._since_checkpoint = 0
            self._batch.append(checkpoint := self.checkpoint)
            self._batch_bytes += _RECORD_BYTES + 24 * len(checkpoint.sessions)

    def cut(self, place: Place) -> None:
        """Take away all records behind this place, which is in the log and not below `settled`."""
        assert place.length >= self.committed, "what is committed is never cut"
        self.flush()
        self._roll_back(place)
        assert self.place == place, f"{place} is not in the log"
        self._since_checkpoint = 0
        self._ask(Cut(self._next(), place), 0)
        self.emit(Record(Kind.CUT, index=place.length))
        self.on_cut(place)

    def can_cut(self, place: Place) -> bool:
        """Whether `cut` to that place is possible."""
        if place.length < self.committed:
            return False
        return place == self.place or any(step.place == place for step in self._undo)

    def digest_at(self, place: Place) -> int | None:
        """The running digest at a place of this log; None if that was too long ago, or never."""
        if place == self.place:
            return self.digest
        return next((step.digest for step in reversed(self._undo) if step.place == place), None)

    def reset(self, checkpoint: Checkpoint, mark: Mark, snapshot: int | None = None) -> None:
        """Begin the journal anew with a checkpoint that a donor sent, and the mark of its term;
        `snapshot` is the index of the snapshot that the application's state comes from."""
        assert checkpoint.place.term == mark.term, "the mark is that of the checkpoint's term"
        self.flush()
        self.log, self.generation = mark.log, mark.generation
        self.place, self.digest = checkpoint.place, checkpoint.digest
        self.time_us = checkpoint.time_us
        self.sessions = SessionTable(self.config.sessions_max, checkpoint.sessions)
        self.marks = [mark]
        self._spared = frozenset(mark.sessions)
        self._undo.clear()
        self.first = checkpoint.place.length
        if snapshot is not None:
            self.snapshot = snapshot
        self._since_checkpoint = 0
        self._ask(Reset(self._next(), checkpoint, mark, snapshot), _RECORD_BYTES)
        self.emit(Record(Kind.RESTORE, index=checkpoint.place.length))
        self._tell_loss(mark)
        self.show_committed(checkpoint.place.length)

    def _tell_loss(self, mark: Mark) -> None:
        """A row of where an operator began a generation: what was committed behind that is gone."""
        if mark.lossy:
            view, base, voters = mark.term, mark.base, mark.voters
            self.emit(Record(Kind.OPEN, view=view, index=base, members=voters, tag="lossy"))

    def _roll_back(self, place: Place) -> None:
        changes: list[Undo] = []
        while self.place != place and self._undo:
            step = self._undo.pop()
            changes += step.changes
            if step.place.term != self.place.term:
                self.marks.pop()
            self.place, self.digest, self.time_us = step.place, step.digest, step.time_us
        self.sessions.undo(changes)
        last = self.last_mark()
        self._spared = frozenset() if last is None else frozenset(last.sessions)
        if last is not None:
            self.log, self.generation = last.log, last.generation
        elif self.place == Place():
            self.log, self.generation = b"", 0  # The log was founded in a view that never opened.

    def _apply_head(self, head: Head) -> None:
        number = head.number + head.count - 1 if head.count else -1
        at = head.index + max(0, head.count - 1)
        change = self.sessions.use(head.session, number, at, self._spared)
        self._note_step(change)
        self.digest = entries_digest(self.digest, head)
        self.time_us = max(self.time_us, head.stamp_us)
        self.place = self.place.past(head)

    def _apply_mark(self, mark: Mark) -> None:
        self._note_step()
        self.digest = mark_digest(self.digest, mark)
        self.place = self.place.past(mark)
        self._spared = frozenset(mark.sessions)
        self.marks.append(mark)
        if len(self.marks) > MARKS_KEPT:
            del self.marks[0]

    def _note_step(self, *changes: Undo) -> None:
        undo = self._undo
        undo.append(_Step(self.place, self.digest, self.time_us, changes))
        while (
            len(undo) > self.config.undo_records
            and undo[1].place.length < self.settled
            and undo[1].place <= self.stored
        ):
            undo.popleft()

    # What is committed

    def show_committed(self, length: int) -> None:
        """So many entries are committed; those that are here may be seen."""
        length = min(length, self.place.length)
        if length > self.committed:
            self.committed = length
            self.settled = max(self.settled, length)
            self.flush()  # The driver shows what it was given.
            self.emit(Record(Kind.COMMIT, index=length))
            self.emit(Committed(length))

    def settle(self, length: int) -> None:
        """So much of the log as it is here will never be taken away."""
        self.settled = max(self.settled, min(length, self.place.length))

    def at(self, index: int) -> Checkpoint:
        """What the log amounted to behind the record that ends at this index. ValueError if that
        is not committed, is within a record, or was too long ago."""
        if index > self.committed:
            raise ValueError(f"entries up to {index} are not committed, but up to {self.committed}")
        place, digest, time_us = self.place, self.digest, self.time_us
        changes: list[Undo] = []
        for step in reversed(self._undo):
            if place.length < index or (place.length == index and step.place.length < index):
                break
            changes += step.changes
            place, digest, time_us = step.place, step.digest, step.time_us
        if place.length != index:
            raise ValueError(f"index {index} is within a record, or too long ago")
        sessions = self.sessions.copy()
        sessions.undo(changes)
        return Checkpoint(place, digest, time_us, sessions.sessions)

    # The journal

    @property
    def full(self) -> bool:
        """Whether so much waits for the disk that nothing may be added."""
        return self.waiting_bytes > self.config.unsynced_bytes

    def flush(self) -> None:
        """Ask the journal to store what was added."""
        if self._batch:
            records, size = tuple(self._batch), self._batch_bytes
            self._batch.clear()
            self._batch_bytes = 0
            self._ask(Store(self._next(), records), size)

    def store_snapshot(self, index: int, offset: int, data: bytes, *, last: bool) -> int:
        """Write a part of a peer's snapshot; the number that `on_stored` will have."""
        self.flush()
        number = self._next()
        self._ask(StoreSnapshot(number, index, offset, data, last), len(data))
        return number

    def on_stored(self, number: int) -> None:
        """The journal has done everything up to this number."""
        stored = self.stored
        while self._asked and self._asked[0].effect.number <= number:
            asked = self._asked.popleft()
            self._asked_bytes -= asked.size
            if not isinstance(asked.effect, StoreSnapshot):
                stored = asked.place
        if stored != self.stored:
            self.stored = stored
            self.emit(Record(Kind.STORED, index=stored.length))

    def on_unstored(self, number: int) -> None:
        """There was no room for this one, and none of those behind it was done: ask again later.
        A part of a snapshot is not asked for again: who sent it begins anew."""
        if self.lacks_room or number > self._number:
            return  # Nothing is asked for until it is tried again.
        if not self._asked or number < self._asked[0].effect.number:
            return
        self.on_stored(number - 1)
        kept = [a for a in self._asked if not isinstance(a.effect, StoreSnapshot)]
        self._asked = deque(kept)
        self._asked_bytes = sum(asked.size for asked in kept)
        if kept:
            self.lacks_room = True
            self.emit(SetTimer(STORE_TIMER, self.config.store_retry_s))

    def retry(self) -> None:
        """Ask the journal again for what it had no room for."""
        if self.lacks_room:
            self.lacks_room = False
            waiting, self._asked = self._asked, deque()
            self._asked_bytes = 0
            for asked in waiting:
                self._ask(_renumbered(asked.effect, self._next()), asked.size, asked.place)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _ask(
        self,
        effect: Store | Cut | Reset | StoreSnapshot,
        size: int,
        place: Place | None = None,
    ) -> None:
        self._asked.append(_Asked(effect, self.place if place is None else place, size))
        self._asked_bytes += size
        if not self.lacks_room:
            self.emit(effect)

    def emit(self, effect: Effect[Any]) -> None:
        self.out.append(effect)


def _nothing_to_do(*_: object) -> None:
    pass


def _renumbered(
    effect: Store | Cut | Reset | StoreSnapshot, number: int
) -> Store | Cut | Reset | StoreSnapshot:
    match effect:
        case Store():
            return Store(number, effect.records)
        case Cut():
            return Cut(number, effect.place)
        case Reset():
            return Reset(number, effect.checkpoint, effect.mark, effect.snapshot)
        case StoreSnapshot():
            return effect
        case _:
            assert_never(effect)


def entries_digest(before: int, head: Head) -> int:
    """The running digest behind a record of entries."""
    seq, rep = head.term
    numbers = _ENTRIES.pack(
        1, before, head.index, head.session, head.number, head.count, head.stamp_us, head.crc, seq
    )
    return int.from_bytes(blake2b(numbers + rep.encode(), digest_size=8).digest())


def mark_digest(before: int, mark: Mark) -> int:
    """The running digest behind a mark. Lists of names are told apart by their lengths."""
    voters = b"".join(len(v.encode()).to_bytes() + v.encode() for v in mark.voters)
    numbers = _MARK.pack(2, before, mark.base, mark.term.seq)
    return int.from_bytes(
        blake2b(b"".join((numbers, voters, mark.term.rep.encode())), digest_size=8).digest()
    )
