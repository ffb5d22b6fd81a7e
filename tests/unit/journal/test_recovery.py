"""What a start makes of files that a crash tore, or that a disk damaged."""

import random
import tempfile
from pathlib import Path

import pytest
from tests.unit.journal.logs import (
    T1,
    T2,
    checkpoint,
    die,
    entries,
    held,
    log_files,
    mark,
    open_journal,
    plain,
    some,
    with_checkpoints,
)

from roundelay.core.log import Place
from roundelay.journal import segment
from roundelay.journal.errors import DamageError, JournalError
from roundelay.journal.frame import OVERHEAD_BYTES
from roundelay.journal.journal import Journal

RECORDS = [mark(), *some(4), mark(T2, 4), entries(4, 3, T2)]


def write(path: Path, records=RECORDS, policy: str = "always", *, clean: bool = False) -> Journal:
    """A journal with these records, each of them synced; then its node dies."""
    journal = open_journal(path, policy)
    journal.set_able()
    for record in records:
        journal.append([record])
        journal.sync()
        journal.committed = journal.place.length
    if clean:
        journal.close()
    else:
        die(journal)
    return journal


def reopened(path: Path, **options) -> Journal:
    journal = open_journal(path, **options)
    die(journal)
    return journal


def found(path: Path, **options) -> Journal:
    """The journal at its next start, whose records are a beginning of what was written."""
    journal = open_journal(path, **options)
    records = held(journal)
    assert records == RECORDS[: len(records)]
    assert journal.kept.committed <= journal.place.length
    die(journal)
    return journal


@pytest.fixture
def written():
    """The directory of a journal, its only segment file, and what is in that up to its end. In
    memory, if the machine has such a disk: it is opened thousands of times."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        path = Path(directory)
        write(path)
        file = log_files(path)[0]
        yield path, file, file.read_bytes().rstrip(b"\0")


@pytest.mark.parametrize("boot", ["boot 1", "boot 2"])
def test_a_file_cut_at_every_byte_is_a_beginning(written, boot):
    path, file, data = written
    life = (path / "machine").read_bytes()
    for size in range(len(data) + 1):
        for zeros in (0, 100):
            file.write_bytes(data[:size] + bytes(zeros))
            (path / "machine").write_bytes(life)
            journal = found(path, boot=boot)
            assert (size == len(data)) == (len(held(journal)) == len(RECORDS))
            again = found(path, boot=boot)
            assert not again.repaired
            assert again.place == journal.place


def frames(data: bytes) -> list[int]:
    """Where the frames in a segment file begin."""
    found, at = [], 64
    while at < len(data):
        found.append(at)
        at += int.from_bytes(data[at : at + 4]) + OVERHEAD_BYTES
    return found


@pytest.mark.parametrize("boot", ["boot 1", "boot 2"])
def test_no_flipped_bit_goes_unnoticed(written, boot):
    path, file, data = written
    life = (path / "machine").read_bytes()
    last = frames(data)[-1]
    for at in range(len(data)):
        for bit in random.Random(at).sample(range(8), 2):
            broken = bytearray(data)
            broken[at] ^= 1 << bit
            file.write_bytes(bytes(broken) + bytes(50))
            (path / "machine").write_bytes(life)
            journal = found(path, boot=boot)
            assert len(held(journal)) < len(RECORDS)
            torn = at >= last and boot == "boot 2"
            assert journal.kept.able == torn, (at, bit, journal.repaired)
            assert ("torn" in journal.repaired) == torn


def test_a_byte_of_the_end_is_not_taken_for_a_whole_record(written):
    """What `kill -9` leaves of a record is its beginning, and zeros."""
    path, file, data = written
    life = (path / "machine").read_bytes()
    last = frames(data)[-1]
    for size in range(last + 4, len(data)):  # The size begins with zeros.
        file.write_bytes(data[:size] + bytes(200))
        (path / "machine").write_bytes(life)
        journal = found(path)
        assert journal.kept.able
        assert "torn" in journal.repaired
        assert len(held(journal)) == len(RECORDS) - 1


def test_after_a_power_cut_a_garbled_block_of_the_last_record_is_torn(tmp_path):
    write(tmp_path, [mark(), *some(3), entries(3, 10, size=200)])
    file = log_files(tmp_path)[0]
    data = bytearray(file.read_bytes())
    data[1024:1536] = random.Random(1).randbytes(512)
    file.write_bytes(data)
    journal = reopened(tmp_path, boot="boot 2")
    assert journal.kept.able
    assert journal.place == Place(T1, 3)


def test_below_what_was_synced_nothing_is_torn(tmp_path):
    """A note tells that the last record was synced: it cannot have been torn."""
    journal = open_journal(tmp_path)
    journal.set_able()
    journal.append([mark(), *some(3)])
    journal.sync()
    journal.committed = 1
    journal.note()
    die(journal)
    file = log_files(tmp_path)[0]
    data = bytearray(file.read_bytes())
    note = frames(bytes(data).rstrip(b"\0"))[-1]
    data[note - 5] ^= 1
    data[note + 3] ^= 1  # Nothing whole is behind it.
    file.write_bytes(data)
    assert reopened(tmp_path, boot="boot 2").kept.able  # The note that told is gone, too.
    write(tmp_path / "other", clean=True)
    file = log_files(tmp_path / "other")[0]
    file.write_bytes(file.read_bytes().rstrip(b"\0")[:-60])
    kept = reopened(tmp_path / "other", boot="boot 2").kept
    assert not kept.able
    assert "damaged" in kept.why


def test_what_a_record_says_of_the_one_before_convicts_it(tmp_path):
    """The last two records are bad: the first of them is older than what a third one saw synced."""
    journal = open_journal(tmp_path)
    journal.set_able()
    journal.append([mark(), *some(3)])
    for index in (3, 4):
        journal.append([entries(index)])
        journal.sync()
    die(journal)
    file = log_files(tmp_path)[0]
    data = bytearray(file.read_bytes())
    starts = frames(bytes(data).rstrip(b"\0"))
    data[starts[-2] + 60] ^= 1
    file.write_bytes(data)
    kept = reopened(tmp_path, boot="boot 2").kept
    assert not kept.able  # A whole record is behind it.
    assert kept.committed <= 3


def test_damage_is_set_aside_and_stays_until_the_node_is_able_again(tmp_path):
    records = with_checkpoints(300, every=10)
    write(tmp_path, records)
    files = log_files(tmp_path)
    data = bytearray(files[-2].read_bytes())
    starts = frames(bytes(data))
    data[starts[5] + 70] ^= 1
    files[-2].write_bytes(data)
    journal = open_journal(tmp_path)
    assert not journal.kept.able
    assert files[-2].name in journal.kept.why
    assert held(journal) == plain(records)[: len(held(journal))]
    assert len(log_files(tmp_path)) == len(files) - 1
    aside = sorted(p.name for p in (tmp_path / "log" / "aside").iterdir())
    assert aside == sorted([f"{files[-2].name}.from-{starts[5]}", files[-1].name])
    left = journal.place.length
    journal.append(some(5, left, size=100))
    die(journal)
    journal = open_journal(tmp_path)
    assert not journal.kept.able
    assert not journal.repaired
    journal.set_able()
    die(journal)
    assert reopened(tmp_path).kept.able


@pytest.mark.parametrize("which", [0, 1, -2, -1])
@pytest.mark.parametrize("what", ["missing", "header", "short", "carry"])
def test_a_segment_that_is_missing_or_has_a_bad_header(tmp_path, which, what):
    records = with_checkpoints(300, every=10)
    write(tmp_path, records)
    files = log_files(tmp_path)
    file, data = files[which], bytearray(files[which].read_bytes())
    if what == "missing":
        file.unlink()
    elif what == "short":
        file.write_bytes(data[:-1] if which != -1 else bytes(data).rstrip(b"\0")[:2000])
    else:
        data[20 if what == "header" else 90] ^= 1
        file.write_bytes(data)
    journal = open_journal(tmp_path)
    if what == "missing" and which == 0:
        # The next segment begins with a checkpoint, as if the first had been removed on purpose.
        assert held(journal)[2:] == plain(records)[1 + journal.first :]
    else:
        assert held(journal) == plain(records)[: len(held(journal))]
    if (what, which) == ("missing", -1):
        return  # Looks as if it had never been begun: only what was synced elsewhere could tell.
    if (what, which) == ("short", -1):
        assert journal.kept.able  # As after a kill in the middle of a record.
        return
    assert not journal.kept.able
    assert journal.kept.why


def test_a_journal_of_another_format_is_refused_and_left_as_it_is(tmp_path, monkeypatch):
    write(tmp_path)
    before = [file.read_bytes() for file in log_files(tmp_path)]
    monkeypatch.setattr(segment, "VERSION", segment.VERSION + 1)
    with pytest.raises(JournalError, match=r"has format 1, .* format 2: run the release that"):
        open_journal(tmp_path)
    monkeypatch.undo()
    assert [file.read_bytes() for file in log_files(tmp_path)] == before
    assert found(tmp_path).kept.able


def test_after_a_clean_close_a_missing_last_segment_is_noticed(tmp_path):
    write(tmp_path, with_checkpoints(300, every=10), clean=True)
    log_files(tmp_path)[-1].unlink()
    kept = reopened(tmp_path).kept
    assert not kept.able
    assert "shorter than when it was closed" in kept.why


@pytest.mark.parametrize(
    ("policy", "clean", "boot", "able"),
    [
        ("always", False, "boot 1", True),
        ("always", False, "boot 2", True),
        ("interval", False, "boot 1", True),
        ("interval", False, "boot 2", False),
        ("interval:20ms", True, "boot 2", True),
        ("off", False, "boot 1", False),
        ("off", False, "boot 2", False),
        ("off", True, "boot 1", True),
        ("off", True, "boot 2", True),
        ("interval", False, "", False),
    ],
)
def test_who_is_able_after_which_end(tmp_path, policy, clean, boot, able):
    write(tmp_path, policy=policy, clean=clean)
    journal = reopened(tmp_path, policy="always", boot=boot)
    assert journal.kept.able == able
    assert bool(journal.kept.why) != able
    assert journal.place == Place(T2, 7)
    # Another start does not forgive.
    assert reopened(tmp_path, policy="always", boot=boot).kept.able == able


@pytest.mark.parametrize("name", ["machine", "identity"])
@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_who_does_not_know_what_was_is_not_able(tmp_path, name, how):
    write(tmp_path, clean=True)
    if how == "missing":
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(b'{"boot": 1')
    journal = reopened(tmp_path)
    assert not journal.kept.able
    assert name in journal.kept.why
    assert journal.place == Place(T2, 7)


def test_damage_that_a_reader_meets_is_cut_off_at_the_next_start(tmp_path):
    records = with_checkpoints(300, every=10)
    write(tmp_path, records)
    file = log_files(tmp_path)[1]
    data = bytearray(file.read_bytes())
    starts = frames(bytes(data))
    data[starts[7] + 70] ^= 1
    file.write_bytes(data)
    journal = open_journal(tmp_path)
    assert journal.kept.able  # A start reads the last two segments only.
    with pytest.raises(DamageError, match=file.name):
        held(journal)
    assert journal.scrub(0) == 1
    with pytest.raises(DamageError, match=f"at byte {starts[7]}"):
        journal.scrub(1)
    die(journal)
    journal = open_journal(tmp_path)
    assert not journal.kept.able
    assert held(journal) == plain(records)[: len(held(journal))]
    assert log_files(tmp_path)[-1] == file


def test_what_a_reader_took_for_damage_is_looked_at_again(tmp_path):
    records = with_checkpoints(300, every=10)
    write(tmp_path, records)
    file = log_files(tmp_path)[1]
    whole = file.read_bytes()
    file.write_bytes(whole[:3000] + bytes(10) + whole[3010:])
    journal = open_journal(tmp_path)
    with pytest.raises(DamageError):
        held(journal)
    die(journal)
    file.write_bytes(whole)
    journal = open_journal(tmp_path)
    assert journal.kept.able
    assert held(journal) == plain(records)


def test_a_record_that_does_not_continue_the_log_is_damage(tmp_path):
    """Whole, and in its place, but of a smaller term than the one before it."""
    journal = open_journal(tmp_path)
    journal.set_able()
    journal.append([mark(), *some(3), mark(T2, 3)])
    journal._place = Place(T1, 3)
    journal.append([entries(3)])
    die(journal)
    journal = reopened(tmp_path, boot="boot 2")
    assert not journal.kept.able
    assert journal.place == Place(T2, 3)


def test_the_files_of_a_start_that_died_are_removed(tmp_path):
    write(tmp_path)
    (tmp_path / "log" / "00000000000000000009.log.new").write_bytes(b"beginning")
    reopened(tmp_path)
    assert [p.name for p in (tmp_path / "log").iterdir()] == [log_files(tmp_path)[0].name]


def test_random_bytes_are_no_journal(tmp_path):
    for seed in range(30):
        path = tmp_path / str(seed)
        (path / "log").mkdir(parents=True)
        data = random.Random(seed).randbytes(random.Random(seed).choice([0, 10, 64, 5000]))
        (path / "log" / f"{0:020}.log").write_bytes(data)
        journal = open_journal(path)
        assert not journal.kept.able
        journal.append(RECORDS)
        assert held(journal) == RECORDS
        journal.close()


def test_checkpoints_of_another_place_are_damage(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), *some(3)])
    journal._place = Place(T1, 2)
    journal.append([checkpoint(2)])
    die(journal)
    assert not reopened(tmp_path).kept.able


def test_nothing_is_changed_if_the_journal_is_refused(tmp_path):
    write(tmp_path)
    file = log_files(tmp_path)[0]
    file.write_bytes(file.read_bytes().rstrip(b"\0")[:-3])
    before = file.read_bytes()
    running = open_journal(tmp_path / "x")
    with pytest.raises(JournalError):
        open_journal(tmp_path / "x")
    running.close()
    with pytest.raises(JournalError):
        Journal(tmp_path, "orders", "z", running.policy)
    assert file.read_bytes() == before
