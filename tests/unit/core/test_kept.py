"""What a log amounts to at a start, and what a cut leaves of it."""

import pytest

from roundelay.core.ids import ViewId
from roundelay.core.kept import kept_log, place_after, split
from roundelay.core.log import (
    EMPTY_LOG,
    MARKS_KEPT,
    Checkpoint,
    Entries,
    Head,
    LogRecord,
    Mark,
    Place,
    Session,
)

T1, T2 = ViewId(1, "a"), ViewId(2, "b")
LOG = b"L" * 16


def mark(term: ViewId, base: int, generation: int = 0) -> Mark:
    return Mark(term, base, ("a", "b"), ("a", "b"), (5, 6), generation, LOG)


def entries(index: int, count: int = 1, term: ViewId = T1) -> Entries:
    return Entries(Head(index, term, "a", 0, 5, index, count, 9, 0), b"")


def checkpoint(term: ViewId, length: int, opened: int = 0) -> Checkpoint:
    return Checkpoint(Place(term, length, opened), 77, 9, (Session(5, length - 1, length - 1),))


WHOLE: list[LogRecord] = [
    mark(T1, 0),
    entries(0, 2),
    entries(2, 0),
    checkpoint(T1, 2, 1),
    entries(2, 3),
    mark(T2, 5),
    checkpoint(T2, 5),
    entries(5, 1, T2),
]


def test_an_empty_log():
    assert kept_log([], committed=0) == EMPTY_LOG


def test_a_whole_log_with_nothing_committed_keeps_all_records_as_its_tail():
    kept = kept_log(WHOLE, committed=0)
    assert (kept.log, kept.first, kept.committed) == (LOG, 0, 0)
    assert kept.marks == (mark(T1, 0), mark(T2, 5))
    assert kept.checkpoint.place == Place()
    heads = [r.head if isinstance(r, Entries) else r for r in WHOLE]
    assert list(kept.tail) == [h for h in heads if not isinstance(h, Checkpoint)]


@pytest.mark.parametrize(
    ("committed", "place", "behind"),
    [(1, Place(), 6), (3, Place(T1, 2, 1), 3), (5, Place(T1, 2, 1), 3), (6, Place(T2, 5), 1)],
)
def test_behind_the_chosen_checkpoint_something_is_committed(committed, place, behind):
    kept = kept_log(WHOLE, committed=committed)
    assert kept.checkpoint.place == place
    assert len(kept.tail) == behind


def test_no_more_is_committed_than_the_log_holds():
    assert kept_log(WHOLE[:2], committed=99).committed == 2


def test_a_log_without_its_beginning():
    records: list[LogRecord] = [checkpoint(T1, 4), mark(T1, 0), entries(4), mark(T2, 5, 1)]
    kept = kept_log(records, committed=0)
    assert (kept.first, kept.committed, kept.generation) == (4, 4, 1)
    assert kept.checkpoint == records[0]
    assert kept.marks == (mark(T1, 0), mark(T2, 5, 1))
    assert kept.tail == (entries(4).head, mark(T2, 5, 1))


def test_the_newest_marks_are_kept():
    marks = [mark(ViewId(n, "a"), 0) for n in range(1, MARKS_KEPT + 3)]
    assert kept_log(marks, committed=0).marks == tuple(marks[2:])


def test_the_end_of_a_log_takes_the_older_marks_as_given():
    kept = kept_log(
        [checkpoint(T2, 5), entries(5, 1, T2)], committed=5, marks=[mark(T2, 5)], first=2
    )
    assert (kept.marks, kept.first, len(kept.tail)) == ((mark(T2, 5),), 2, 1)


def test_a_packet_of_which_a_snapshot_has_the_beginning():
    kept = kept_log([checkpoint(T1, 4), mark(T1, 0), entries(2, 3)], committed=4)
    assert kept.tail == (entries(2, 3).head,)


@pytest.mark.parametrize(
    "record",
    [entries(4), entries(6), entries(3, 2), entries(5, 1, T2), mark(T2, 4)],
)
def test_what_does_not_continue_a_log(record):
    assert place_after(Place(T1, 5), record) is None
    with pytest.raises(AssertionError, match="does not continue"):
        kept_log([*WHOLE[:5], record], committed=5)


@pytest.mark.parametrize(
    ("place", "left"),
    [
        (Place(), 0),
        (Place(T1, 0), 1),
        (Place(T1, 1), 1),
        (Place(T1, 2), 2),
        (Place(T1, 2, 1), 4),
        (Place(T1, 5), 5),
        (Place(T2, 5), 7),
        (Place(T2, 6), 8),
    ],
)
def test_a_cut_leaves_what_is_not_behind_its_place(place, left):
    assert split(WHOLE, place) == left


def test_a_cut_leaves_the_beginning_of_a_log_without_its_beginning():
    records: list[LogRecord] = [checkpoint(T1, 4), mark(T1, 0), entries(4)]
    assert split(records, Place()) == 2
    assert split(records, Place(T1, 4)) == 2
    assert split(records, Place(T1, 5)) == 3
