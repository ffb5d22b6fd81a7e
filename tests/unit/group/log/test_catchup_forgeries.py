"""What a donor or a learner sends and cannot be true."""

from dataclasses import replace

import pytest
from tests.unit.group.log.hosts import (
    CONFIG,
    Host,
    Wires,
    enter,
    entries_of,
    grown,
    mark,
    same,
    store,
)

from roundelay.core.ids import ViewId
from roundelay.core.log import Checkpoint, Entries, Mark, Place
from roundelay.group.log.messages import Chunk, CutTo, Fetch
from roundelay.wire.log_record import encode_record


def _filling() -> tuple[Wires, Host, Host]:
    """A learner that has 60 entries and waits for the rest."""
    wires = Wires()
    a, b = wires.add("a", "b")
    grown(a)
    grown(b, terms=1)
    enter([a, b], 9)
    wires.arrive()
    return wires, a, b


def _forged(b: Host, *records: Entries | Mark | Checkpoint) -> bytes:
    parts = [encode_record(record) for record in records]
    return b"".join(len(part).to_bytes(4) + part for part in parts)


FORGERIES = {
    "entries of another term": lambda e: [replace(e, head=replace(e.head, term=ViewId(2, "a")))],
    "entries behind a gap": lambda e: [replace(e, head=replace(e.head, index=e.head.index + 1))],
    "entries again": lambda e: [replace(e, head=replace(e.head, index=e.head.index - 1))],
    "more than the adopted log": lambda e: [replace(e, head=replace(e.head, count=500))],
    "a mark of a later view": lambda e: [mark(10, Place(length=60, opened=1))],
    "a mark behind a gap": lambda e: [mark(2, Place(length=61))],
    "a mark that forgets a session": lambda e: [mark(2, Place(length=60))],
    "a mark of another log": lambda e: [
        replace(mark(2, Place(length=60, opened=1)), log=b"x" * 16)
    ],
    "a mark of another generation": lambda e: [
        replace(mark(2, Place(length=60, opened=1)), generation=1)
    ],
    "a checkpoint without a mark": lambda e: [
        Checkpoint(Place(ViewId(2, "a"), 100), 0, 0, ()),
        e,
    ],
    "a checkpoint of another term than its mark": lambda e: [
        Checkpoint(Place(ViewId(2, "a"), 100), 0, 0, ()),
        mark(3, Place(length=100)),
    ],
    "a checkpoint before its mark": lambda e: [
        Checkpoint(Place(ViewId(2, "a"), 100), 0, 0, ()),
        mark(2, Place(length=101)),
    ],
    "a checkpoint behind the adopted log": lambda e: [
        Checkpoint(Place(ViewId(3, "a"), 1000), 0, 0, ()),
        mark(3, Place(length=120)),
    ],
    "a checkpoint before what is here": lambda e: [
        Checkpoint(Place(ViewId(1, "a"), 10), 0, 0, ()),
        mark(1, Place(length=0)),
    ],
}


@pytest.mark.parametrize("what", FORGERIES)
def test_what_does_not_follow_is_refused_and_never_stored(what: str) -> None:
    _, _, b = _filling()
    before, records = b.state.checkpoint, list(b.disk.records)
    following = Entries(
        replace(entries_of(b)[-1].head, index=60, number=60, count=1), entries_of(b)[-1].body
    )
    data = _forged(b, *FORGERIES[what](following))
    b.receive("a", Chunk(1, 0, data))
    store(b)
    assert len(b.refused) == 1
    assert b.state.checkpoint == before
    assert b.disk.records == records


@pytest.mark.parametrize("size", [0, CONFIG.record_bytes_max + 1, 0xFFFF_FFFF])
def test_records_of_impossible_sizes_are_refused(size: int) -> None:
    _, _, b = _filling()
    b.receive("a", Chunk(1, 0, size.to_bytes(4) + b"x" * 100))
    assert b.refused == [f"malformed: a record of {size} bytes"]


def test_a_chunk_that_nobody_asked_for_is_refused() -> None:
    _, _, b = _filling()
    b.receive("a", Chunk(1, CONFIG.fetch_window_bytes, b"x"))
    assert b.refused == ["a chunk that was not asked for"]


def test_chunks_of_another_stream_or_another_sender_mean_nothing() -> None:
    wires, _, b = _filling()
    wires.add("c")
    for origin, number in (("c", 1), ("a", 0), ("a", 2)):
        b.receive(origin, Chunk(number, 0, b"rubbish that nobody reads"))
    assert not b.refused
    wires.settle()
    assert b.learner.joined


def test_early_chunks_are_kept_up_to_the_window_and_no_further() -> None:
    _, _, b = _filling()
    b.learner._config = replace(CONFIG, fetch_window_bytes=1 << 20)
    intake = b.learner._intake
    assert intake is not None
    for offset in range(1, 4001):
        intake.take(offset, b"x" * 90)
    assert 4000 < intake.early_bytes <= 4096


@pytest.mark.parametrize(
    "place",
    [
        Place(ViewId(3, "a"), 500),  # Behind the adopted log.
        Place(ViewId(1, "a"), 60, 1),  # All of this log, so it cuts nothing.
        Place(ViewId(2, "a"), 90),
    ],
)
def test_a_cut_that_cannot_be_true_is_refused(place: Place) -> None:
    _, _, b = _filling()
    before = b.state.place
    b.receive("a", CutTo(1, place))
    assert len(b.refused) == 1
    assert b.state.place == before


def test_a_log_that_ends_in_the_last_adopted_term_is_never_cut() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    grown(a, terms=1)
    grown(b, terms=1, packets=5)
    enter([a, b], 9)
    b.receive("a", CutTo(1, Place(ViewId(1, "a"), 3)))
    assert b.refused == ["a cut of the adopted log"]
    assert b.state.length == 15


def test_a_record_with_a_damaged_body_is_asked_for_again() -> None:
    wires, a, b = _filling()
    store(a)
    origin, to, frame = wires.frames[0]
    wires.frames[0] = origin, to, frame[:-1] + bytes((frame[-1] ^ 1,))
    before = b.state.place
    wires.settle()
    assert len(b.refused) == 1
    assert b.state.place > before
    assert same(a, b)


def test_a_fetch_of_a_place_before_its_term_is_refused() -> None:
    _, a, _ = _filling()
    a.receive("b", Fetch(7, Place(ViewId(2, "a"), 10), 0, 1000))
    assert a.refused == ["a term that ends at 10, before it began"]


def test_who_has_more_of_a_record_than_there_is_gets_nothing() -> None:
    _, a, _ = _filling()
    a.sent.clear()
    a.receive("b", Fetch(7, a.state.place, 10_000, 20_000))
    store(a)
    assert not a.sent
