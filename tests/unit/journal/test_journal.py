"""The journal of a running node: what it writes is found again."""

from dataclasses import replace

import pytest
from tests.unit.journal.logs import (
    BEGIN,
    LOG,
    SMALL,
    T1,
    T2,
    T3,
    checkpoint,
    die,
    entries,
    held,
    log_files,
    mark,
    open_journal,
    opening,
    plain,
    some,
    with_checkpoints,
)

from roundelay.core.ids import ViewId
from roundelay.core.log import MARKS_KEPT, Checkpoint, LogRecord, Place
from roundelay.journal.errors import JournalError
from roundelay.journal.journal import Journal, JournalConfig
from roundelay.journal.policy import parse_policy


def test_an_empty_journal_is_not_able(tmp_path):
    journal = open_journal(tmp_path)
    assert not journal.kept.able
    assert "cannot be told from a disk that was lost" in journal.kept.why
    assert (journal.place, journal.first, journal.log) == (BEGIN, 0, b"")
    assert journal.read(BEGIN, 100) == []


def test_records_come_back_in_order_from_every_place(tmp_path):
    journal = open_journal(tmp_path)
    records: list[LogRecord] = [
        mark(),
        entries(0, 3),
        opening(3),
        entries(3),
        mark(T2, 4),
        entries(4, 2, T2),
    ]
    for record in records:
        journal.append([record])
    place = BEGIN
    for at, record in enumerate(records):
        assert held(journal, place) == records[at:]
        place = place.past(record)
    assert held(journal, place) == []
    assert journal.place == place


def test_a_batch_is_written_like_single_records_and_over_several_segments(tmp_path):
    records = with_checkpoints(400, every=10)
    journal = open_journal(tmp_path)
    journal.append(records)
    assert len(log_files(tmp_path)) > 3
    assert held(journal) == plain(records)
    for index in (0, 1, 57, 199, 200, 399):
        assert held(journal, Place(T1, index)) == plain(records)[1 + index :]


def test_at_most_so_many_bytes_but_at_least_one_record_are_read(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), *some(10)])
    one = len(journal.read(Place(T1, 0), 1)[0])
    assert len(journal.read(Place(T1, 0), 1)) == 1
    assert len(journal.read(Place(T1, 0), 3 * one)) == 3


def test_a_start_finds_what_was_written(tmp_path):
    records = [mark(), *some(5), checkpoint(5), entries(5), mark(T2, 6), entries(6, 1, T2)]
    journal = open_journal(tmp_path)
    journal.append(records[:7])
    journal.committed = 6
    journal.append(records[7:])
    journal.set_able()
    journal.close()
    kept = open_journal(tmp_path).kept
    assert (kept.log, kept.able, kept.why) == (LOG, True, "")
    assert (kept.first, kept.committed, kept.generation) == (0, 6, 0)
    assert kept.marks == (mark(), mark(T2, 6))
    assert kept.checkpoint == checkpoint(5)
    assert kept.tail == (entries(5).head, mark(T2, 6), entries(6, 1, T2).head)


def test_a_start_reads_the_last_segments_only_and_knows_all_marks(tmp_path, monkeypatch):
    journal = open_journal(tmp_path)
    index = 0
    for term in range(1, 60):
        view = ViewId(term, "a")
        records: list[LogRecord] = [mark(view, index)]
        records += [entries(index + n, 1, view, 200) for n in range(10)]
        index += 10
        records.append(checkpoint(index, view))
        journal.append(records)
        journal.committed = index
    journal.close()
    paths = log_files(tmp_path)
    assert len(paths) > 8
    data = bytearray(paths[2].read_bytes())
    data[-40] ^= 1  # A start that read this segment would not trust the log.
    paths[2].write_bytes(data)
    journal = open_journal(tmp_path)
    assert len(journal.kept.marks) == 59
    assert journal.place == Place(ViewId(59, "a"), 590)
    assert not journal.repaired


def test_a_start_reads_further_back_if_nothing_newer_is_committed(tmp_path):
    records = with_checkpoints(400, every=10)
    journal = open_journal(tmp_path)
    journal.append(records)
    journal.committed = 100
    journal.close()
    kept = open_journal(tmp_path).kept
    assert kept.checkpoint.place == Place(T1, 90)
    assert len(kept.tail) == 310


def test_no_more_marks_than_a_core_keeps(tmp_path):
    journal = open_journal(tmp_path)
    marks = [mark(ViewId(n, "a"), 0) for n in range(1, MARKS_KEPT + 100)]
    journal.append(marks)
    journal.append([entries(0, 1, marks[-1].term), checkpoint(1, marks[-1].term)])
    journal.close()
    assert open_journal(tmp_path).kept.marks == tuple(marks[-MARKS_KEPT:])


@pytest.mark.parametrize(
    "record",
    [entries(4), entries(6), entries(5, 1, T2), mark(T1, 5), mark(T2, 4), checkpoint(4)],
)
def test_what_does_not_continue_the_log_is_refused_as_a_whole(tmp_path, record):
    journal = open_journal(tmp_path)
    journal.append([mark(), *some(5)])
    with pytest.raises(ValueError, match="does not continue"):
        journal.append([record])
    assert held(journal) == [mark(), *some(5)]
    with pytest.raises(ValueError, match="begins with a mark"):
        open_journal(tmp_path / "other").append([entries(0)])


def test_a_checkpoint_before_the_first_mark_says_nothing(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([Checkpoint(BEGIN, 0, 0, ())])
    assert not log_files(tmp_path)
    journal.append([Checkpoint(BEGIN, 0, 0, ()), mark()])
    assert held(journal) == [mark()]


@pytest.mark.parametrize("many", [False, True])
def test_a_cut_leaves_a_beginning_and_the_log_goes_on_from_there(tmp_path, many):
    records = plain(with_checkpoints(400 if many else 9, every=5))
    for length in (0, 1, 5, len(records) - 2):
        path = tmp_path / str(length)
        journal = open_journal(path)
        journal.append(records)
        journal.cut(Place(T1, length))
        assert held(journal) == records[: 1 + length]
        assert journal.place == Place(T1, length)
        # Shorter records of a greater term: nothing of the old ones may be found behind them.
        more = [mark(T2, length), *some(3, length, T2, size=6)]
        journal.append(more)
        assert held(journal) == [*records[: 1 + length], *more]
        die(journal)
        journal = open_journal(path)
        assert held(journal) == [*records[: 1 + length], *more]
        assert not journal.repaired
        assert journal.kept.marks == (mark(), mark(T2, length))
        journal.close()


def test_a_cut_below_the_first_mark_leaves_nothing_and_another_log_may_begin(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), *some(5)])
    journal.cut(BEGIN)
    assert held(journal) == []
    other = replace(mark(T3), log=b"O" * 16)
    journal.append([other])
    journal.close()
    assert open_journal(tmp_path).kept.log == b"O" * 16


def test_a_cut_behind_the_end_does_nothing(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), *some(5)])
    journal.cut(Place(T1, 5))
    journal.cut(Place(T2, 5))
    assert held(journal) == [mark(), *some(5)]


def test_opened_sessions_before_a_cut_stay(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), entries(0), opening(1), opening(1), entries(1)])
    journal.cut(Place(T1, 1, 1))
    assert held(journal) == [mark(), entries(0), opening(1)]
    assert journal.place == Place(T1, 1, 1)


def test_a_reset_begins_the_log_anew(tmp_path):
    journal = open_journal(tmp_path)
    journal.append(with_checkpoints(400, every=10))
    start = checkpoint(1000, T2)
    journal.reset(start, mark(T2, 900))
    assert held(journal) == [start, mark(T2, 900)]
    assert (journal.first, journal.place, journal.committed) == (1000, Place(T2, 1000), 1000)
    assert len(log_files(tmp_path)) == 1
    journal.append([entries(1000, 1, T2)])
    journal.cut(BEGIN)
    assert held(journal) == [start, mark(T2, 900)]
    journal.append([entries(1000, 1, T2)])
    die(journal)
    kept = open_journal(tmp_path).kept
    assert (kept.first, kept.committed, kept.checkpoint) == (1000, 1000, start)
    assert (kept.marks, kept.tail) == ((mark(T2, 900),), (entries(1000, 1, T2).head,))
    assert journal.repaired == ""


def test_a_prepared_reset_is_finished_at_the_next_start_and_a_torn_one_is_not(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), *some(5)])
    journal.reset(checkpoint(1000, T2), mark(T2, 900))
    die(journal)
    prepared = log_files(tmp_path)[0].read_bytes()
    for size in (len(prepared), len(prepared) - 1):
        path = tmp_path / f"{size}"
        journal = open_journal(path)
        journal.append([mark(), *some(5)])
        die(journal)
        (path / "log" / "reset").write_bytes(prepared[:size])
        journal = open_journal(path)
        whole = size == len(prepared)
        assert journal.first == (1000 if whole else 0)
        assert len(log_files(path)) == 1
        assert not (path / "log" / "reset").exists()
        journal.close()


def test_a_reset_to_a_checkpoint_of_another_term_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not of the mark's term"):
        open_journal(tmp_path).reset(checkpoint(10, T1), mark(T2, 5))


def test_a_second_process_is_refused(tmp_path):
    journal = open_journal(tmp_path)
    with pytest.raises(JournalError, match="in use by a running node"):
        open_journal(tmp_path)
    journal.close()
    open_journal(tmp_path).close()


def test_the_directory_of_another_node_is_refused_and_not_touched(tmp_path):
    open_journal(tmp_path).close()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(JournalError, match="belongs to node 'a' of group 'orders'"):
        Journal(tmp_path, "orders", "b", parse_policy("always"), config=SMALL)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_segments_of_two_logs_are_refused(tmp_path):
    for name in ("a", "b"):
        journal = open_journal(tmp_path / name)
        first = replace(mark(), log=name.encode() * 16)
        journal.append([first, *plain(with_checkpoints(200, every=500))[1:]])
        journal.close()
    stray = log_files(tmp_path / "b")[1]
    (tmp_path / "a" / "log" / stray.name).write_bytes(stray.read_bytes())
    with pytest.raises(JournalError, match="belongs to another log than"):
        open_journal(tmp_path / "a")


def test_a_directory_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "log").write_text("a file")
    with pytest.raises(JournalError, match="cannot be used"):
        open_journal(tmp_path)


def test_a_note_tells_what_no_record_told(tmp_path):
    journal = open_journal(tmp_path)
    journal.append([mark(), *some(5)])
    journal.committed = 5
    journal.note()
    size = log_files(tmp_path)[0].read_bytes().rstrip(b"\0")
    journal.note()
    assert log_files(tmp_path)[0].read_bytes().rstrip(b"\0") == size
    die(journal)
    assert open_journal(tmp_path).kept.committed == 5


def test_limits_that_make_no_sense():
    with pytest.raises(ValueError, match="segment_bytes"):
        JournalConfig(segment_bytes=100)
    with pytest.raises(ValueError, match="preallocate_bytes"):
        JournalConfig(preallocate_bytes=100)


@pytest.mark.parametrize(
    ("text", "name", "interval_s", "shown"),
    [
        ("always", "always", 0.05, "always"),
        ("off", "off", 0.05, "off"),
        ("interval", "interval", 0.05, "interval"),
        ("interval:20ms", "interval", 0.02, "interval:20ms"),
        ("interval:1.5s", "interval", 1.5, "interval:1500ms"),
    ],
)
def test_policies(text, name, interval_s, shown):
    policy = parse_policy(text)
    assert (policy.name, policy.interval_s, str(policy)) == (name, interval_s, shown)
    assert parse_policy(str(policy)) == policy


@pytest.mark.parametrize("text", ["", "Always", "interval:", "interval:0ms", "interval:61s"])
def test_policies_that_are_none(text):
    with pytest.raises(ValueError, match="fsync="):
        parse_policy(text)
