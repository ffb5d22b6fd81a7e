"""Readers in other processes: what is committed, while the node writes."""

import random
import subprocess
import sys
from dataclasses import replace

import pytest
from tests.patience import LIMIT_S
from tests.unit.journal.logs import (
    BEGIN,
    LOG,
    T1,
    T2,
    QuickFiles,
    checkpoint,
    entries,
    held,
    log_files,
    mark,
    open_journal,
    opening,
    some,
    with_checkpoints,
)

from roundelay.core.log import Place
from roundelay.journal.errors import DamageError, ForeignLogError, JournalError, TruncatedError
from roundelay.journal.journal import JournalConfig
from roundelay.journal.reader import Batch, Item, Lossy, Reader


def texts(items) -> list[tuple[int, bytes]]:
    """Index and the first six bytes of each entry."""
    return [
        (batch.index + n, payload[:6])
        for batch in items
        if isinstance(batch, Batch)
        for n, payload in enumerate(batch.payloads)
    ]


def expected(start: int, end: int) -> list[tuple[int, bytes]]:
    return [(n, b"%06d" % n) for n in range(start, end)]


def test_only_what_is_committed_is_read(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), entries(0, 3), opening(3), entries(3, 4)])
    reader = Reader(tmp_path)
    assert (reader.refresh(), list(reader.read(0))) == (0, [])
    journal.committed = 5
    journal.append([entries(7)])
    assert texts(reader.read(0)) == expected(0, 5)
    assert texts(reader.read(2)) == expected(2, 5)
    assert texts(reader.read(2, 4)) == expected(2, 4)
    assert list(reader.read(5)) == []
    journal.committed = 8
    journal.note()
    assert texts(reader.read(5)) == expected(5, 8)
    assert (reader.log, reader.generation, reader.first, reader.committed) == (LOG, 0, 0, 8)


def test_all_that_is_on_a_disk_can_be_read_by_who_knows_that_it_may_not_be_committed(tmp_path):
    journal = open_journal(tmp_path)
    journal.committed = 1
    journal.append([mark(), entries(0, 3), entries(3, 4)])
    reader = Reader(tmp_path, uncommitted=True)
    assert (reader.refresh(), texts(reader.read(0))) == (7, expected(0, 7))


def test_a_batch_tells_where_its_entries_come_from(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), entries(0, 3)])
    journal.committed = 3
    journal.note()
    (batch,) = Reader(tmp_path).read(1)
    assert isinstance(batch, Batch)
    assert (batch.term, batch.sender, batch.incarnation) == (T1, "a", 7)
    assert (batch.session, batch.number, batch.stamp_us) == (5, 1, 1000)


def test_a_reader_and_a_writer_with_cuts_above_what_is_committed(tmp_path):
    """The writer appends, cuts and goes on in another term; the reader polls all the time."""
    rng = random.Random(7)
    journal = open_journal(tmp_path)
    journal.append([mark()])
    reader, term, seen = Reader(tmp_path), T1, 0
    for step in range(400):
        choice = rng.random()
        if choice < 0.7:
            count = rng.randint(1, 9)
            journal.append([entries(journal.place.length, count, term, rng.choice([6, 90, 300]))])
            if rng.random() < 0.2:
                journal.append([replace(checkpoint(1), place=journal.place)])
        elif choice < 0.85:
            journal.committed = rng.randint(journal.committed, journal.place.length)
        elif journal.place.length > journal.committed:
            try_cut(journal)
            term = term._replace(seq=term.seq + 1)
            journal.append([mark(term, journal.place.length)])
        if rng.random() < 0.5:
            got = texts(reader.read(seen))
            assert got == expected(seen, seen + len(got))
            seen += len(got)
        assert reader.committed <= journal.committed, step
    journal.note()
    got = texts(reader.read(seen))
    assert seen + len(got) == journal.committed
    assert texts(Reader(tmp_path).read(0)) == expected(0, journal.committed)


FOLLOW = """
import sys
from pathlib import Path
from roundelay.journal.reader import Reader

reader, at, end = Reader(Path(sys.argv[1])), 0, int(sys.argv[2])
print("ready", flush=True)
while at < end:
    for batch in reader.read(at):
        assert batch.index == at, (batch.index, at)
        for payload in batch.payloads:
            assert int(payload[:6]) == at
            at += 1
print(at)
"""


def test_another_process_follows_the_writer(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark()])
    command = [sys.executable, "-c", FOLLOW, str(tmp_path), "6000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        index = 0
        while index < 6000:
            count = 1 + index % 7
            journal.append([entries(index, count, size=50 + index % 300)])
            journal.committed = min(index, 6000)
            index += count
        journal.committed = index
        journal.note()
        out, _ = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 0
    assert int(out) >= 6000


def try_cut(journal) -> None:
    """Cut at the first end of a record that is not below what is committed."""
    place = Place()
    for record in held(journal):
        place = place.past(record)
        if place.length >= journal.committed and place != BEGIN:
            break
    journal.cut(place)


def test_what_was_searched_and_cut_off_is_searched_again(tmp_path):
    journal = open_journal(tmp_path)
    journal.committed = 2
    journal.append([mark(), *some(5, size=40)])
    reader = Reader(tmp_path)
    assert reader.refresh() == 2
    journal.cut(Place(T1, 2))
    journal.append([mark(T2, 2), entries(2, 3, T2)])
    journal.committed = 4
    journal.note()
    assert texts(reader.read(0)) == expected(0, 4)


def test_removed_entries_are_an_error_that_names_the_first_there_is(tmp_path):
    config = JournalConfig(8192, 4096, 0, retain_bytes=1)
    journal = open_journal(tmp_path, config=config)
    journal.append(with_checkpoints(300, every=10))
    journal.committed = 300
    journal.note()
    reader = Reader(tmp_path)
    slow = reader.read(0)
    next(slow)
    assert journal.retire()
    with pytest.raises(TruncatedError) as caught:
        list(reader.read(0))
    assert caught.value.first == journal.first
    assert f"begin at {journal.first}" in str(caught.value)
    assert texts(reader.read(journal.first)) == expected(journal.first, 300)


def test_a_log_that_began_anew_is_read_from_there(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), *some(10)])
    journal.committed = 10
    journal.note()
    reader = Reader(tmp_path)
    assert len(texts(reader.read(0))) == 10
    journal.reset(checkpoint(20, T2), mark(T2, 15))
    journal.append([entries(20, 2, T2)])
    journal.committed = 22
    journal.note()
    with pytest.raises(TruncatedError):
        list(reader.read(10))
    assert texts(reader.read(20)) == expected(20, 22)


def test_offsets_of_another_log_are_refused(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(T1, 0, generation=1)])
    reader = Reader(tmp_path, log=b"O" * 16)
    with pytest.raises(ForeignLogError, match="holds the log 4c4c"):
        reader.refresh()
    with pytest.raises(ForeignLogError, match="generation 1, and 2 was"):
        Reader(tmp_path, LOG, 2).refresh()
    assert Reader(tmp_path, LOG, 1).refresh() == 0
    assert Reader(tmp_path, LOG, 0).refresh() == 0
    with pytest.raises(JournalError, match="no journal in"):
        Reader(tmp_path / "nowhere")


def test_a_generation_that_lost_entries_says_so_where_it_begins(tmp_path):
    journal = open_journal(tmp_path)
    lossy = mark(T2, 4, generation=1, lossy=True)
    journal.append([mark(), *some(4), lossy, entries(4, 1, T2)])
    journal.committed = 5
    journal.note()
    reader = Reader(tmp_path)
    items = list(reader.read(0))
    assert items[4] == Lossy(4, 1)
    assert reader.generation == 1
    assert Lossy(4, 1) in list(reader.read(4))
    assert Lossy(4, 1) in list(Reader(tmp_path).read(4))
    with pytest.raises(ForeignLogError, match="generation 1 of the log began at 4"):
        list(Reader(tmp_path, LOG, 0).read(5))
    assert texts(Reader(tmp_path, LOG, 0).read(4)) == expected(4, 5)
    assert Lossy(4, 1) not in list(reader.read(0, 4))
    assert not any(isinstance(item, Lossy) for item in list(reader.read(4))[1:])


def test_damage_is_never_skipped(tmp_path):
    journal = open_journal(tmp_path)
    journal.append(with_checkpoints(300, every=10))
    journal.committed = 300
    journal.note()
    file = log_files(tmp_path)[1]
    data = bytearray(file.read_bytes())
    data[4000] ^= 1
    file.write_bytes(data)
    got: list[Item] = []
    with pytest.raises(DamageError, match=file.name):
        got.extend(Reader(tmp_path).read(0))
    assert 0 < len(got) < 300
    assert texts(got) == expected(0, len(got))


def test_damage_in_the_file_that_is_written_ends_the_reading_with_an_error(tmp_path):
    """Also a block of zeros; and what is before it is read."""
    journal = open_journal(tmp_path, config=JournalConfig(1 << 20, 1 << 16, 0))
    journal.committed = 3
    journal.append([mark(), *some(10, size=900)])
    journal.committed = 9
    journal.append([entries(10)])
    (file,) = log_files(tmp_path)
    whole = file.read_bytes()
    at = whole.index(b"000006")
    frame = whole.rindex(b"RJ", 0, at) - 6
    for damaged in (
        whole[:at] + b"x" + whole[at + 1 :],
        whole[: at - 10] + bytes(20) + whole[at + 10 :],
        whole[:frame] + bytes(900) + whole[frame + 900 :],
        whole[:frame] + b"\x07" * 2048 + whole[frame + 2048 :],
    ):
        file.write_bytes(damaged)
        reader = Reader(tmp_path)
        with pytest.raises(DamageError, match=rf"{file.name} .*roundelay journal verify") as caught:
            reader.refresh()
        assert caught.value.index == 6
        assert "entries from 6 on" in str(caught.value)
        got: list[Item] = []
        with pytest.raises(DamageError):
            got.extend(reader.read(1))
        assert texts(got) == [(n, b"%06d" % n) for n in range(1, 3)]
        assert texts(reader.read(1, 3)) == expected(1, 3)
        file.write_bytes(whole)  # It was repaired.
        assert reader.refresh() == 9
        assert texts(reader.read(0)) == expected(0, 9)


def test_a_file_in_the_middle_that_is_damaged_while_a_reader_follows_is_an_error(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), *some(20, size=100)])
    reader = Reader(tmp_path)
    assert reader.refresh() == 0
    journal.append(some(300, 20, size=100))
    journal.committed = 300
    journal.note()
    file = log_files(tmp_path)[0]
    data = bytearray(file.read_bytes())
    data[data.index(b"000040")] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamageError, match=file.name) as caught:
        reader.refresh()
    assert caught.value.index == 40


@pytest.mark.parametrize("lost", [1, 30, 500, 901])
def test_a_record_that_is_not_whole_at_the_very_end_is_the_end(tmp_path, lost):
    journal = open_journal(tmp_path, config=JournalConfig(1 << 20, 1 << 16, 0))
    journal.committed = 5
    journal.append([mark(), *some(9, size=900)])
    end = journal._segments[-1].end
    (file,) = log_files(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[: end - lost] + bytes(len(whole) - end + lost))
    reader = Reader(tmp_path)
    assert reader.refresh() == 5
    assert texts(reader.read(0)) == expected(0, 5)
    assert reader.refresh() == 5
    file.write_bytes(whole)
    journal.committed = 9
    journal.append([entries(9)])
    assert texts(reader.read(5)) == expected(5, 9)


def test_a_journal_that_was_closed_behind_its_last_record_is_damaged(tmp_path):
    journal = open_journal(tmp_path, config=JournalConfig(1 << 20, 1 << 16, 0))
    journal.append([mark(), *some(9, size=900)])
    journal.committed = 9
    journal.close()
    assert Reader(tmp_path).refresh() == 9
    (file,) = log_files(tmp_path)
    data = file.read_bytes()
    at = data.index(b"000008")
    file.write_bytes(data[:at] + bytes(len(data) - at))
    with pytest.raises(DamageError) as caught:
        Reader(tmp_path).refresh()
    assert caught.value.index == 8


def test_zeros_behind_a_log_that_stands_still_are_looked_at_once(tmp_path):
    """A block that was lost may come to light while a reader waits."""
    journal = open_journal(tmp_path, config=JournalConfig(1 << 20, 1 << 16, 0))
    journal.committed = 2
    journal.append([mark(), *some(5, size=900)])
    reads: list[int] = []

    class Counting(QuickFiles):
        def pread(self, fd: int, size: int, offset: int) -> bytes:
            reads.append(size)
            return super().pread(fd, size, offset)

    reader = Reader(tmp_path, files=Counting())
    for _ in range(3):
        reader.refresh()
    reads.clear()
    reader.refresh()
    once = len(reads)
    journal.append([entries(5)])
    reader.refresh()
    assert len(reads) == 2 * once
    reader.refresh()
    assert len(reads) == 3 * once + 1
    reader.refresh()
    assert len(reads) == 4 * once + 1


def test_index_files_are_only_a_shortcut(tmp_path):
    journal = open_journal(tmp_path, config=JournalConfig(1 << 20, 1 << 20, 0))
    journal.append([mark(), *some(9000, size=300)])
    journal.append([checkpoint(9000), *some(10, 9000)])
    journal.committed = 9010
    journal.note()
    indexes = sorted((tmp_path / "log").glob("*.idx"))
    assert indexes
    for index in (0, 700, 4001, 8999):
        assert texts(Reader(tmp_path).read(index, index + 2)) == expected(index, index + 2)
    first, second = indexes[0].read_bytes(), indexes[1].read_bytes()
    indexes[0].write_bytes(second)
    indexes[1].write_bytes(first)
    for index in (700, 4001):
        assert texts(Reader(tmp_path).read(index, index + 2)) == expected(index, index + 2)
    for at, path in enumerate(indexes):
        data = bytearray(path.read_bytes())
        data[at % len(data)] ^= 1
        path.write_bytes(data)
    for index in (700, 4001):
        assert texts(Reader(tmp_path).read(index, index + 2)) == expected(index, index + 2)
        assert journal.read(Place(T1, index), 1)
