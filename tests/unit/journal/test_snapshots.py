"""Snapshots are whole or not there."""

import errno
import random
import threading

import pytest
from tests.unit.journal.logs import LOG, checkpoint, mark, open_journal, some

from roundelay.journal.errors import ForeignLogError, JournalError
from roundelay.journal.files import OsFiles
from roundelay.journal.inspect import overview
from roundelay.journal.snapshots import PART_BYTES_MAX, Snapshots

STATE = [b"", b"one", b"x" * (PART_BYTES_MAX + 5), b"end"]


def taken(directory, *indexes: int) -> Snapshots:
    snapshots = Snapshots(directory)
    for index in indexes:
        snapshots.take(LOG, 0, checkpoint(index), STATE)
    return snapshots


def test_a_snapshot_comes_back(tmp_path):
    snapshots = taken(tmp_path, 7)
    found, parts = snapshots.restore(7, LOG)
    assert found == checkpoint(7)
    assert b"".join(parts) == b"".join(STATE)
    assert snapshots.head(7).log == LOG


def test_two_are_kept(tmp_path):
    assert taken(tmp_path, 3, 5, 9).indexes() == [5, 9]


def test_two_threads_that_keep_snapshots_take_turns(tmp_path):
    """Else both look for the oldest, and the second does not find it any more."""
    snapshots = taken(tmp_path, 3, 5)
    found: list[list[int]] = []
    entered, other = threading.Event(), threading.Thread(target=snapshots.was_added)

    def looks() -> list[int]:
        if not entered.is_set():
            entered.set()
            other.start()
            other.join(0.05)  # It has the time to come in between, if it may.
        found.append(Snapshots.indexes_in(tmp_path))
        return found[-1]

    snapshots.indexes = looks  # type: ignore[method-assign]
    for index in (7, 9):
        (tmp_path / f"{index:020}.snap").write_bytes(b"")
    snapshots.was_added()
    other.join()
    assert found == [[3, 5, 7, 9], [7, 9]]


def test_one_that_was_not_finished_is_not_there(tmp_path):
    snapshots = taken(tmp_path, 3)

    def failing():
        yield b"beginning"
        raise RuntimeError("the application")

    with pytest.raises(RuntimeError):
        snapshots.take(LOG, 0, checkpoint(5), failing())
    writer = snapshots.begin(LOG, 0, checkpoint(6))
    writer.add(b"beginning")
    again = Snapshots(tmp_path)
    assert again.indexes() == [3]
    assert len(list(tmp_path.iterdir())) == 1


def test_one_without_room_for_its_head_leaves_neither_file_nor_descriptor(tmp_path):
    class Full(OsFiles):
        open_now = 0

        def open(self, path, *, create=False):
            self.open_now += 1
            return super().open(path, create=create)

        def close(self, fd):
            self.open_now -= 1
            super().close(fd)

        def pwritev(self, fd, parts, offset):
            raise OSError(errno.ENOSPC, "no space left on device")

    files = Full()
    with pytest.raises(OSError, match="no space left"):
        Snapshots(tmp_path, files).take(LOG, 0, checkpoint(5), STATE)
    assert not files.open_now
    assert not list(tmp_path.iterdir())


def test_a_peers_snapshot_arrives_in_parts(tmp_path):
    donor, learner = taken(tmp_path / "a", 7), Snapshots(tmp_path / "b")
    offset, size = 0, 1
    while offset < size:
        part = donor.read_part(7, offset, 100_000)
        assert part is not None
        data, size = part
        assert learner.write_part(7, offset, data, last=offset + len(data) == size)
        offset += len(data)
    assert learner.indexes() == [7]
    assert b"".join(learner.restore(7, LOG)[1]) == b"".join(STATE)
    assert donor.read_part(8, 0, 10) is None
    assert donor.read_part(7, size + 5, 10) == (b"", size)


def test_a_part_out_of_place_and_a_damaged_whole_are_dropped(tmp_path):
    donor, learner = taken(tmp_path / "a", 7), Snapshots(tmp_path / "b")
    data, _ = donor.read_part(7, 0, 1 << 30) or (b"", 0)
    assert learner.write_part(7, 0, data[:50], last=False)
    assert not learner.write_part(7, 60, data[60:], last=True)
    assert not learner.write_part(7, 50, data[50:], last=True)
    rng = random.Random(1)
    for at in [0, 5, 20, 60, len(data) - 1, len(data) - 20, *rng.sample(range(len(data)), 20)]:
        broken = bytearray(data)
        broken[at] ^= 1 << rng.randrange(8)
        assert not learner.write_part(7, 0, bytes(broken), last=True)
    for size in (0, 3, 10, 100, len(data) - 1):
        assert not learner.write_part(7, 0, data[:size], last=True)
    assert not learner.write_part(8, 0, data, last=True)  # It was taken at 7.
    assert learner.indexes() == []
    assert list((tmp_path / "b").iterdir()) == []
    assert learner.write_part(7, 0, data, last=True)


def test_a_damaged_one_is_a_sentence_and_another_logs_too(tmp_path):
    snapshots = taken(tmp_path, 7)
    with pytest.raises(ForeignLogError, match="another log"):
        snapshots.restore(7, b"O" * 16)
    path = snapshots.path_of(7)
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(data)
    with pytest.raises(JournalError, match="damaged"):
        snapshots.restore(7, LOG)
    with pytest.raises(JournalError, match="cannot be read"):
        snapshots.restore(8, LOG)


def test_a_start_names_the_newest_of_its_own_log(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), *some(9)])
    journal.snapshots.take(LOG, 0, checkpoint(3), STATE)
    journal.snapshots.take(b"O" * 16, 0, checkpoint(5), STATE)
    journal.close()
    journal = open_journal(tmp_path)
    assert journal.kept.snapshot == 3
    path = journal.snapshots.path_of(3)
    path.write_bytes(b"RDS1")
    journal.close()
    journal = open_journal(tmp_path)
    assert journal.kept.snapshot is None
    assert f"{path} is damaged" in journal.repaired
    assert journal.snapshots.indexes() == [5]
    assert overview(tmp_path).aside == (path.with_suffix(".damaged"),)
    journal.close()
    assert not open_journal(tmp_path).repaired


def test_only_the_last_one_that_was_set_aside_is_kept(tmp_path):
    snapshots = taken(tmp_path, 3, 5)
    snapshots.set_aside(5)
    snapshots.set_aside(3)
    assert snapshots.indexes() == []
    assert [path.suffix for path in tmp_path.iterdir()] == [".damaged"]
    with pytest.raises(FileNotFoundError):
        snapshots.set_aside(3)
