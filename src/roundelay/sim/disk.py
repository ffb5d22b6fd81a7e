"""The disk of a simulated machine, with the journal of its node on it.

What is written goes into memory of the machine, and reaches the platter when a sync ends. So three
things can happen to a node, and each leaves something else:

- it is killed: what was written is there;
- its machine loses power: what was synced is there; of the rest any beginning, the last record of
  which may be cut at any byte or be garbled in one block;
- its disk is lost: nothing is there.

Records lie there as bytes with their length and checksum, and with what was known to be on the
platter when they were written. By that a journal tells a torn end, which is cut off, from damage,
after which the node has no vote until it has fetched what it lacks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from roundelay.core.checksum import crc32
from roundelay.core.ids import NodeId, ViewId
from roundelay.core.kept import kept_log
from roundelay.core.log import EMPTY_LOG, Checkpoint, Entries, KeptLog, LogRecord, Mark, Place
from roundelay.group.log.generation import beginning, later_view
from roundelay.wire.log_record import decode_record, encode_record

BLOCK_BYTES = 512
"""What a disk writes whole or not at all; a torn record may be garbled in one of them."""


class Policy(StrEnum):
    """When records count as stored."""

    ALWAYS = "always"
    """Once they are on the platter."""
    INTERVAL = "interval"
    """Once they are written; they are synced every now and then."""
    OFF = "off"
    """At once; they are written later and never synced."""


class Mood(StrEnum):
    """What a disk does at present."""

    OK = "ok"
    SLOW = "slow"
    """A sync takes a hundred times as long."""
    FULL = "full"
    """Nothing more can be written."""
    FAILS = "fails"
    """The next sync fails, and what it was to bring to the platter is lost."""


class Ending(StrEnum):
    """How the last life of a node ended."""

    NEVER = "never"
    """It had none."""
    CLOSED = "closed"
    KILL = "kill"
    POWER = "power"


@dataclass(slots=True)
class Kept:
    """A record as it lies on the disk."""

    data: bytes
    length: int
    """Of the data, as it was written."""
    checksum: int
    synced: int
    """How many records were known to be on the platter when this one was written."""
    committed: int
    """How many entries were known to be committed then."""

    @property
    def short(self) -> bool:
        return len(self.data) < self.length

    @property
    def whole(self) -> bool:
        return not self.short and crc32(self.data) == self.checksum

    def record(self) -> LogRecord:
        return decode_record(self.data)


@dataclass(slots=True)
class Disk:
    """One node's journal and snapshots. It acts at once: how long writes and syncs take is up to
    whoever drives it."""

    written: list[Kept] = field(default_factory=list)
    synced: int = 0
    """So many of these are on the platter."""
    noted: int = 0
    """So many are known to be, by a note on the platter."""
    committed: int = 0
    """As noted."""
    first: int = 0
    """Entries below this index were removed."""
    snapshots: dict[int, bytes] = field(default_factory=dict)
    """By index; at most two."""
    mood: Mood = Mood.OK
    policy: Policy = Policy.ALWAYS
    ending: Ending = Ending.NEVER
    found: str = ""
    """What the last start found: "torn", "damaged", or nothing of the kind."""

    # While the node lives

    def write(self, records: Iterable[LogRecord], committed: int) -> None:
        """Write records behind the others."""
        for record in records:
            data = encode_record(record)
            kept = Kept(data, len(data), crc32(data), self.synced, committed)
            self.written.append(kept)

    def sync(self, count: int) -> None:
        """So many records have reached the platter."""
        self.synced = max(self.synced, min(count, len(self.written)))

    def lose(self, count: int) -> None:
        """A sync of so many records has failed: those that it was for are no more what was
        written, though nobody sees that before the node starts again."""
        for kept in self.written[self.synced : count]:
            kept.data = bytes(len(kept.data))

    def note(self, committed: int) -> None:
        """Write down what is on the platter and what is committed."""
        self.noted = self.synced
        self.committed = max(self.committed, committed)

    def cut(self, place: Place) -> None:
        """Take away what is behind this place; at once on the platter."""
        del self.written[position(self.records(), place) :]
        self.synced = self.noted = len(self.written)

    def reset(self, checkpoint: Checkpoint, mark: Mark, committed: int) -> None:
        """Begin the journal anew with these; at once on the platter."""
        self.written.clear()
        self.synced = 0
        self.write((checkpoint, mark), committed)
        self.first = checkpoint.place.length
        self.synced = self.noted = len(self.written)

    def remove(self, first: int, snapshot: Place | None = None) -> int:
        """Remove entries below an index, as far as whole terms or checkpoints allow; the index of
        the first that is left. The journal then begins with a checkpoint and a mark, and not behind
        the place of `snapshot`: whoever gets that needs what follows it, marks too."""
        records = self.records()
        start, begin = 0, 0
        mark: Mark | None = None
        before: Mark | None = None
        for i, record in enumerate(records):
            if isinstance(record, Mark):
                mark = record
            elif isinstance(record, Checkpoint) and mark:
                place = record.place
                if place.length <= first and (snapshot is None or place <= snapshot):
                    start, begin, before = i, place.length, mark
        if before is None or begin <= self.first:
            return self.first
        data = encode_record(before)
        kept = Kept(data, len(data), crc32(data), 0, self.written[start].committed)
        gone = start - 1
        rest = self.written[start + 1 :]
        self.synced = max(2, self.synced - gone)
        self.noted = max(0, self.noted - gone)
        for other in rest:
            other.synced = max(0, other.synced - gone)
        self.written = [self.written[start], kept, *rest]
        self.first = begin
        return begin

    def keep_snapshot(self, index: int, data: bytes) -> None:
        """Keep this and the newest one of the others."""
        self.snapshots[index] = data
        for old in sorted(self.snapshots)[:-2]:
            del self.snapshots[old]

    # What befalls it

    def unsynced(self) -> int:
        return len(self.written) - self.synced

    def power_cut(self, keep: int, torn: int | None, garbled: bool) -> None:
        """Of the records that are not on the platter the first `keep` stay, and of the next one so
        many bytes, or all with one block garbled at that byte."""
        end = min(self.synced + keep, len(self.written))
        broken = self.written[end : end + 1] if torn is not None else []
        del self.written[end:]
        for kept in broken:
            assert torn is not None
            if garbled:
                block = torn % max(1, len(kept.data)) // BLOCK_BYTES * BLOCK_BYTES
                data = bytearray(kept.data)
                for i in range(block, min(block + BLOCK_BYTES, len(data))):
                    data[i] ^= 0x5A
                kept.data = bytes(data)
            else:
                kept.data = kept.data[: torn % max(1, len(kept.data))]
            self.written.append(kept)
        self.ending = Ending.POWER

    def wipe(self) -> None:
        """Another, empty disk takes its place."""
        mood, policy = self.mood, self.policy
        self.__init__(mood=mood, policy=policy)  # type: ignore[misc]  # All fields anew.

    def rot(self, index: int) -> bool:
        """Flip one bit of the record that holds this index; False if none does."""
        for kept in self.written:
            if not kept.whole:
                continue
            record = kept.record()
            if isinstance(record, Entries):
                head = record.head
                if head.index <= index < head.index + head.count:
                    data = bytearray(kept.data)
                    data[-1] ^= 1
                    kept.data = bytes(data)
                    return True
        return False

    # At a start

    def open(self) -> KeptLog:
        """What a node finds here when it starts; what cannot be used is taken away."""
        able, why = self._recover()
        ending, self.ending = self.ending, Ending.KILL
        if not self.written:
            return replace(EMPTY_LOG, why=why)
        if self._may_lack(ending):
            able, why = False, f"fsync={self.policy} may have lost something as the node stopped"
        known = [kept.committed for kept in self.written]
        committed = max([*known, *self.snapshots])  # Only of what is committed there are any.
        self.synced = self.noted = len(self.written)
        return kept_log(
            self.records(),
            committed=max(committed, self.committed),
            able=able,
            first=self.first,
            snapshot=max(self.snapshots, default=None),
            why=why,
        )

    def rank(self) -> tuple[int, Place]:
        """How good the log on it is, of a node that has stopped."""
        kept = self._look()
        return kept.generation, end_of(kept)

    def log_id(self) -> bytes:
        return self._look().log

    def recover(
        self, node: NodeId, stored: bytes | None, wall_us: int, survivors: tuple[NodeId, ...]
    ) -> ViewId:
        """An operator begins a generation with this log; the view that others are to follow."""
        kept = self._look()
        place = end_of(kept)
        view = later_view(node, place, stored, wall_us)
        self.write([beginning(kept, place, view, survivors)], kept.committed)
        self.follow()
        return view

    def follow(self) -> None:
        """An operator says that what is here will do, without what is known of more."""
        length = end_of(self._look()).length
        self.snapshots = {at: data for at, data in self.snapshots.items() if at <= length}
        self.synced = self.noted = len(self.written)
        self.ending = Ending.CLOSED

    def _look(self) -> KeptLog:
        ending = self.ending
        kept = self.open()
        self.ending = ending
        return kept

    def _may_lack(self, ending: Ending) -> bool:
        """Whether something that counted as stored may be gone, by how the last life ended."""
        if self.policy is Policy.INTERVAL:
            return ending is Ending.POWER
        return self.policy is Policy.OFF and ending is not Ending.CLOSED

    def _recover(self) -> tuple[bool, str]:
        """Take away what is torn or damaged, and say whether the rest is all that was synced."""
        good = next((i for i, k in enumerate(self.written) if not k.whole), len(self.written))
        self.found = ""
        if good == len(self.written):
            return True, ""
        bad = self.written[good]
        known = max([self.noted, *(k.synced for k in self.written if k.whole)])
        behind = any(kept.whole for kept in self.written[good + 1 :])
        end = good >= known and not behind
        torn = self._is_torn(end, bad)
        del self.written[good:]
        self.synced = min(self.synced, good)
        self.found = "torn" if torn else "damaged"
        if torn:
            return True, ""
        return False, f"record {good} of the journal is damaged"

    def _is_torn(self, end: bool, bad: Kept) -> bool:
        """Whether a bad record is what a write left that was not finished; `end` says that it is at
        the end, and was not known to be on the platter."""
        return end and (bad.short or self.ending is Ending.POWER)

    def records(self) -> list[LogRecord]:
        """All records that were written."""
        return [kept.record() for kept in self.written]


def end_of(kept: KeptLog) -> Place:
    """Where a log ends."""
    place = kept.checkpoint.place
    for record in kept.tail:
        place = place.past(record)
    return place


def position(records: Sequence[LogRecord], place: Place) -> int:
    """How many of the records are before a place, checkpoints that stand there among them."""
    at = Place()
    for i, record in enumerate(records):
        if isinstance(record, Checkpoint):
            at = record.place if i == 0 else at
            if record.place > place:
                return i
            continue
        if isinstance(record, Mark) and record.term == at.term:
            continue  # Repeated behind the checkpoint that the journal begins with.
        after = at.past(record)
        if after > place:
            return i
        at = after
    return len(records)
