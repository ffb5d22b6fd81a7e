"""Streams of records: chunks put in order, records taken out, places told without reading all."""

import random
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.group.log.hosts import mark

from roundelay.core.ids import ViewId
from roundelay.core.log import Checkpoint, Entries, Head, LogRecord, Place
from roundelay.group.log.chunks import (
    Intake,
    Outflow,
    RecordReader,
    place_behind,
)
from roundelay.wire.log_record import decode_record, encode_record
from roundelay.wire.primitives import WireError

TERMS = [ViewId(1, "node"), ViewId(3, "b"), ViewId(70_000, "another node")]


@st.composite
def logs(draw: st.DrawFn) -> list[LogRecord]:
    """Any log; the first record is a mark."""
    place = Place()
    records: list[LogRecord] = []
    for seq in sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=3))):
        records.append(mark(seq, place))
        place = place.past(records[-1])
        for count in draw(st.lists(st.integers(0, 3), max_size=6)):
            head = Head(place.length, place.term, "a", 0, 5, 0, count, 0, 0)
            records.append(Entries(head, b""))
            place = place.past(head)
            if draw(st.integers(0, 4)) == 0:
                records.append(Checkpoint(place, 1, 2, ()))
    return records


@given(logs(), st.integers(0, 30))
def test_the_place_behind_records_is_that_of_reading_them_one_by_one(
    log: list[LogRecord], begin: int
) -> None:
    places = [Place()]
    for record in log:
        places.append(places[-1].past(record))
    begin = min(begin, len(log))
    data = [encode_record(record) for record in log[begin:]]
    assert place_behind(places[begin], data) == places[-1]


@given(logs(), st.data())
def test_records_come_out_of_a_stream_however_it_is_cut(
    log: list[LogRecord], data: st.DataObject
) -> None:
    encoded = [encode_record(record) for record in log]
    stream = stream_of(encoded)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    reader = RecordReader(1000)
    out: list[bytes] = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        out += reader.feed(stream[begin:end])
        whole = sum(4 + len(record) for record in out)
        assert reader.held == end - whole
    assert [decode_record(r) for r in out] == [r for r in log if not isinstance(r, Checkpoint)]


def stream_of(records: list[bytes], *, begins: bool = False) -> bytes:
    outflow = Outflow()
    outflow.add_records(records, begins=begins)
    return outflow.take(1 << 40)


def test_only_the_checkpoint_at_the_beginning_is_in_a_stream() -> None:
    checkpoint = Checkpoint(Place(TERMS[0], 5), 1, 2, ())
    one, two = mark(1, Place(length=5)), Checkpoint(Place(TERMS[0], 5, 1), 1, 2, ())
    records = [encode_record(r) for r in (checkpoint, one, two)]
    for begins, expected in ((True, [checkpoint, one]), (False, [one])):
        found = RecordReader(1000).feed(stream_of(records, begins=begins))
        assert [decode_record(r) for r in found] == expected


@given(
    st.lists(st.binary(max_size=20)),
    st.lists(st.tuples(st.booleans(), st.integers(0, 30))),
)
def test_what_flows_out_is_the_stream(pieces: list[bytes], steps: list[tuple[bool, int]]) -> None:
    stream, outflow, at = b"".join(pieces), Outflow(), 0
    for piece in pieces:
        outflow.add(piece)
    for skips, size in steps:
        if skips:
            assert outflow.skip(size) == min(size, len(stream) - at)
        else:
            assert outflow.take(size) == stream[at : at + size]
        at = min(len(stream), at + size)
        assert outflow.bytes == len(stream) - at


@pytest.mark.parametrize("size", [0, 101, 2**32 - 1])
def test_a_size_that_no_record_has_is_refused_before_anything_is_kept(size: int) -> None:
    with pytest.raises(WireError):
        RecordReader(100).feed(struct.pack(">I", size))


def test_a_large_record_in_many_small_parts_takes_no_more_than_its_size() -> None:
    """Joining the parts again for every chunk would take hours."""
    record = random.Random(1).randbytes(4_000_000)
    stream = stream_of([record])
    reader = RecordReader(len(record))
    out: list[bytes] = []
    for at in range(0, len(stream), 100):
        out += reader.feed(stream[at : at + 100])
    assert out == [record]
    assert reader.held == 0


@given(st.data())
def test_chunks_are_put_in_order_whatever_happens_to_them(data: st.DataObject) -> None:
    stream = bytes(range(200))
    start = data.draw(st.integers(0, 20))
    bounds = data.draw(st.lists(st.integers(start, 200), max_size=12).map(sorted))
    bounds = [start, *bounds, 200]
    chunks = [(a, stream[a:b]) for a, b in pairwise(bounds)]
    arriving = data.draw(st.permutations(chunks + data.draw(st.lists(st.sampled_from(chunks)))))
    intake = Intake(start, 1000)
    out = b""
    for offset, part in arriving:
        out += intake.take(offset, part)
        assert out == stream[start : intake.received]
    assert out == stream[start:]
    assert intake.early_bytes == 0


def test_a_chunk_is_lost_when_four_overtook_it() -> None:
    intake = Intake(0, 1000)
    for at in (10, 20, 30):
        intake.take(at, b"x" * 10)
        assert not intake.lost
    intake.take(40, b"x" * 10)
    assert intake.lost
    assert intake.take(0, b"x" * 10) == b"x" * 50
    assert not intake.lost
