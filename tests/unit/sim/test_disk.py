"""The simulator's disk: what a kill, a power cut, damage and removal leave of a journal."""

from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.checksum import crc32
from roundelay.core.ids import ViewId
from roundelay.core.log import EMPTY_LOG, Checkpoint, Entries, Head, LogRecord, Mark, Place
from roundelay.sim.disk import Disk, Ending, Mood, Policy, position

ONE, TWO = ViewId(4, "a"), ViewId(8, "a")
BODY = b"\1\0\0\0\1x"


def mark(term: ViewId, base: int) -> Mark:
    return Mark(term, base, ("a", "b"), ("a", "b"), (1, 2), 0, bytes(16))


def entry(term: ViewId, index: int, body: bytes = BODY, count: int = 1) -> Entries:
    return Entries(Head(index, term, "a", 0, 1, index, count, 0, crc32(body)), body)


def opening(term: ViewId, index: int) -> Entries:
    return entry(term, index, b"name", 0)


def checkpoint(term: ViewId, length: int, opened: int = 0) -> Checkpoint:
    return Checkpoint(Place(term, length, opened), 7, 0, ())


LOG: list[LogRecord] = [
    mark(ONE, 0),
    checkpoint(ONE, 0),
    entry(ONE, 0),
    opening(ONE, 1),
    entry(ONE, 1),
    mark(TWO, 2),
    checkpoint(TWO, 2),
    entry(TWO, 2),
    entry(TWO, 3),
]


def disk(policy: Policy = Policy.ALWAYS, synced: int = len(LOG)) -> Disk:
    made = Disk(policy=policy)
    made.write(LOG[:synced], 0)
    made.sync(synced)
    made.write(LOG[synced:], 0)
    made.ending = Ending.KILL
    return made


def length(found: Disk) -> int:
    return sum(isinstance(r, Entries) and r.head.count for r in found.records())


def test_a_kill_keeps_what_was_written() -> None:
    found = disk(synced=3)
    kept = found.open()
    assert kept.able
    assert length(found) == 4


def test_an_empty_disk_is_not_able() -> None:
    assert Disk().open() == EMPTY_LOG


@given(
    synced=st.integers(2, len(LOG)),
    keep=st.integers(0, len(LOG)),
    torn=st.none() | st.integers(0, 4096),
    garbled=st.booleans(),
)
def test_a_power_cut_leaves_a_beginning_that_has_what_was_synced(synced, keep, torn, garbled):
    found = disk(synced=synced)
    found.power_cut(keep, torn, garbled)
    kept = found.open()
    records = found.records()
    assert records == LOG[: len(records)]
    assert synced <= len(records) <= synced + keep
    assert kept.able


@given(synced=st.integers(2, len(LOG)), keep=st.integers(0, len(LOG)))
def test_after_a_power_cut_interval_and_off_are_not_able(synced, keep):
    for policy in (Policy.INTERVAL, Policy.OFF):
        found = disk(policy, synced)
        found.power_cut(keep, None, False)
        kept = found.open()
        assert not kept.able
        assert kept.why


def test_after_a_kill_interval_is_able_and_off_is_not() -> None:
    assert disk(Policy.INTERVAL).open().able
    assert not disk(Policy.OFF).open().able


def test_after_a_clean_close_off_is_able() -> None:
    found = disk(Policy.OFF)
    found.ending = Ending.CLOSED
    assert found.open().able


@given(index=st.integers(0, 3), power=st.booleans())
def test_damage_is_not_taken_for_a_torn_end(index, power):
    """The journal ends before the damaged record, and says that it is not whole. Of the very last
    record that can be known, after a power cut, only if a note tells that it was synced."""
    found = disk()
    found.note(0)
    assert found.rot(index)
    if power:
        found.power_cut(0, None, False)
    kept = found.open()
    assert not kept.able
    assert "damaged" in kept.why
    assert length(found) == index


def test_a_failed_sync_is_found_out_at_the_next_start() -> None:
    found = disk(synced=6)
    found.lose(len(LOG))
    assert not found.open().able
    assert found.records() == LOG[:6]


def test_a_cut_takes_away_what_is_behind_its_place() -> None:
    for place, left in (
        (Place(ONE, 0), 2),
        (Place(ONE, 1), 3),
        (Place(ONE, 1, 1), 4),
        (Place(ONE, 2), 5),
        (Place(TWO, 2), 7),
        (Place(TWO, 4), 9),
        (Place(), 0),
    ):
        found = disk(synced=4)
        found.cut(place)
        assert found.records() == LOG[:left]
        assert found.synced == left


def test_removal_leaves_a_checkpoint_its_mark_and_what_follows() -> None:
    found = disk()
    assert found.remove(1) == 0, "there is no checkpoint between the first one and 1"
    assert found.remove(3) == 2
    assert found.records() == [LOG[6], LOG[5], *LOG[7:]]
    assert found.synced == len(found.written)
    kept = found.open()
    assert (kept.first, kept.able) == (2, True)
    assert kept.marks == (LOG[5],)


def test_a_place_that_was_removed_is_before_the_checkpoint() -> None:
    found = disk()
    found.remove(3)
    assert position(found.records(), Place(ONE, 1)) == 0
    assert position(found.records(), Place(TWO, 2)) == 2
    assert position(found.records(), Place(TWO, 3)) == 3


def test_two_snapshots_are_kept() -> None:
    found = Disk()
    for index in (3, 5, 9):
        found.keep_snapshot(index, b"")
    assert sorted(found.snapshots) == [5, 9]


def test_a_lost_disk_is_empty_and_as_it_was_set_up() -> None:
    found = disk(Policy.INTERVAL)
    found.mood = Mood.SLOW
    found.keep_snapshot(3, b"")
    found.wipe()
    assert (found.written, found.snapshots) == ([], {})
    assert (found.policy, found.mood) == (Policy.INTERVAL, Mood.SLOW)
