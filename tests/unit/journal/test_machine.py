"""A journal and a plain list of records do the same, whatever comes: also kills and power cuts."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.journal.logs import checkpoint, die, entries, held, mark, opening

from roundelay.core.ids import ViewId
from roundelay.core.kept import kept_log, split
from roundelay.core.log import Checkpoint, LogRecord, Mark, Place
from roundelay.journal.files import HeldFiles
from roundelay.journal.journal import Journal, JournalConfig
from roundelay.journal.policy import parse_policy
from roundelay.journal.reader import Batch, Reader

CONFIG = JournalConfig(4096, 4096, 0, retain_bytes=12_000)


class Files(HeldFiles):
    """Nothing reaches a file before it is synced, and nobody waits for a disk."""

    def sync_directory(self, path: Path) -> None:
        self.release(path)


class JournalMachine(RuleBasedStateMachine):
    """`records` is the log, of which the first `synced` were synced; `committed` of its entries may
    be shown."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.path = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.boots = 0
        self.records: list[LogRecord] = []
        self.synced = 0
        self.committed = 0
        self.term = 0
        self.shown: list[bytes] = []

    @initialize()
    def begin(self) -> None:
        self.journal = self.opened()

    def opened(self) -> Journal:
        policy = parse_policy("always")
        boot = f"boot {self.boots}"
        return Journal(self.path, "orders", "a", policy, config=CONFIG, files=Files(), boot=boot)

    @property
    def place(self) -> Place:
        return places(self.records)[-1]

    @property
    def view(self) -> ViewId:
        return self.place.term

    @rule(sizes=st.lists(st.tuples(st.integers(0, 5), st.integers(6, 900)), max_size=8))
    def append(self, sizes: list[tuple[int, int]]) -> None:
        batch: list[LogRecord] = []
        if not self.records:
            self.term += 1
            batch.append(mark(ViewId(self.term, "a"), 0))
        place = self.place.past(batch[0]) if batch else self.place
        for count, size in sizes:
            if count:
                record = entries(place.length, count, place.term, size)
            else:
                record = opening(place.length, place.term)
            batch.append(record)
            place = place.past(record)
        if sizes and sum(size for _, size in sizes) % 3 == 0:
            batch.append(Checkpoint(place, 5, 6, checkpoint(1).sessions))
        self.journal.append(batch)
        self.records += batch

    @rule()
    def next_term(self) -> None:
        if self.records:
            self.term = max(self.term, self.view.seq) + 1
            record = mark(ViewId(self.term, "b"), self.place.length)
            self.journal.append([record])
            self.records.append(record)

    @rule()
    def sync(self) -> None:
        self.journal.sync()
        self.synced = len(self.records)

    @rule(share=st.floats(0, 1))
    def commit(self, share: float) -> None:
        """Only what is synced is committed."""
        length = int(places(self.records[: self.synced])[-1].length * share)
        self.committed = max(self.committed, length)
        self.journal.committed = self.committed

    @rule()
    def note(self) -> None:
        self.journal.note()

    @rule(share=st.floats(0, 1))
    def cut(self, share: float) -> None:
        allowed = [p for p in places(self.records) if p.length >= self.committed]
        if not allowed or not self.records:
            return
        place = allowed[int(share * (len(allowed) - 1))]
        if place.length == 0 and not self.committed and share < 0.1:
            place = Place()
        self.journal.cut(place)
        left = split(self.records, place)
        if left == len(self.records):
            return
        self.records = self.records[:left]
        self.synced = len(self.records)
        if not any(not isinstance(record, Checkpoint) for record in self.records):
            self.records, self.synced = [], 0

    @rule(gap=st.integers(1, 50))
    def reset(self, gap: int) -> None:
        self.term = max(self.term, self.view.seq) + 1
        index = self.place.length + gap
        term = ViewId(self.term, "c")
        start, begin = checkpoint(index, term), mark(term, index - 1)
        self.journal.reset(start, begin)
        self.records = [start, begin]
        self.synced = 2
        self.committed = index
        self.shown = []

    @rule()
    def retire(self) -> None:
        """The segments that go are those that the limits let go; the model follows."""
        self.journal._holds._since.clear()
        if self.journal.retire():
            beginning = held(self.journal)[:2]
            first = beginning[0]
            assert isinstance(first, Checkpoint)
            assert first.place.length < self.committed
            left = split(self.records, first.place)
            assert self.records[left - 1] == first or first in self.records
            assert left <= self.synced
            self.records = [*beginning, *self.records[left:]]
            self.synced += 2 - left

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        if clean:
            self.journal.close()
            self.boots += 1
            self.synced = len(self.records)
        else:
            # `kill -9`: the kernel has all that was written.
            for segment in self.journal._segments:
                self.journal._files.fdatasync(segment.fd())
            die(self.journal)
        self.reopen(len(self.records))

    @rule()
    def power_cut(self) -> None:
        die(self.journal)
        self.boots += 1
        self.reopen(self.synced)

    def reopen(self, least: int) -> None:
        """At least so many records are found, and nothing but a beginning of what was written."""
        self.journal = journal = self.opened()
        found = held(journal)
        assert found == plain(self.records)[: len(found)]
        assert len(found) >= len(plain(self.records[:least]))
        self.records = self.records[: split(self.records, journal.place)]
        while len(self.records) > least and isinstance(self.records[-1], Checkpoint):
            self.records.pop()  # It may be gone, and its place does not tell.
        if not found:
            self.records = []
        self.synced = len(self.records)
        assert journal.kept.committed <= self.committed
        assert journal.kept.able == (not journal.unable)
        if self.records and not journal.kept.able:
            assert "empty" in journal.kept.why
        if self.records:
            expected = kept_log(self.records, committed=journal.kept.committed)
            assert journal.kept.marks == expected.marks
            assert journal.kept.first == expected.first
            assert tail(journal.kept.tail) == tail(expected.tail)[-len(journal.kept.tail) :]
        journal.set_able()
        journal.committed = self.committed

    @rule()
    def read(self) -> None:
        reader = Reader(self.path)
        reader.refresh()
        assert reader.committed <= self.committed
        payloads = [
            payload
            for batch in reader.read(reader.first)
            if isinstance(batch, Batch)
            for payload in batch.payloads
        ]
        assert len(payloads) == max(0, reader.committed - reader.first)
        assert [int(payload[:6]) for payload in payloads] == [
            *range(reader.first, reader.first + len(payloads))
        ]
        reader.close()

    @invariant()
    def holds_the_records(self) -> None:
        if hasattr(self, "journal"):
            assert self.journal.place == self.place
            assert held(self.journal) == plain(self.records)

    def teardown(self) -> None:
        if hasattr(self, "journal"):
            die(self.journal)
        shutil.rmtree(self.path)


def places(records: list[LogRecord]) -> list[Place]:
    """The places before, between and behind the records of a log."""
    found = [Place()]
    for record in records:
        if isinstance(record, Checkpoint):
            found.append(record.place)
        elif isinstance(record, Mark) and record.term == found[-1].term:
            found.append(found[-1])  # It repeats the mark of a removed beginning.
        else:
            found.append(found[-1].past(record))
    return found


def plain(records: list[LogRecord]) -> list[LogRecord]:
    """Without checkpoints, but for the one that the log begins with."""
    return records[:1] + [r for r in records[1:] if not isinstance(r, Checkpoint)]


def tail(records) -> list[object]:
    return list(records) or [None]


JournalMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestJournal = JournalMachine.TestCase
