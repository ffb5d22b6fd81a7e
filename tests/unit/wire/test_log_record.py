"""Records of a log as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.checksum import crc32
from roundelay.core.ids import ViewId
from roundelay.core.log import (
    LOG_ID_BYTES,
    NO_TERM,
    Checkpoint,
    Entries,
    Head,
    LogRecord,
    Mark,
    Place,
    Session,
)
from roundelay.wire.log_record import (
    checkpoint_place,
    decode_record,
    encode_record,
    entries_end,
    is_checkpoint,
    is_mark,
)
from roundelay.wire.primitives import WireError

small = st.integers(0, 2**62)
u64 = st.integers(0, 2**64 - 1)
names = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8)
views = st.builds(ViewId, small, names) | st.just(NO_TERM)
places = st.builds(Place, views, small, st.integers(0, 2**32 - 1))


@st.composite
def entries(draw: st.DrawFn) -> Entries:
    body = draw(st.binary(max_size=50))
    count = draw(st.integers(0, 5))
    head = Head(
        draw(small),
        draw(views),
        draw(names),
        draw(small),
        draw(u64),
        draw(small),
        count,
        draw(small),
        crc32(body),
    )
    return Entries(head, body)


@st.composite
def marks(draw: st.DrawFn) -> Mark:
    members = tuple(draw(st.lists(names, max_size=4)))
    return Mark(
        draw(views),
        draw(small),
        tuple(draw(st.lists(names, max_size=4))),
        members,
        tuple([draw(u64) for _ in members]),
        draw(st.integers(0, 2**32 - 1)),
        draw(st.binary(min_size=LOG_ID_BYTES, max_size=LOG_ID_BYTES)),
        draw(st.booleans()),
        draw(st.integers(0, 2**32 - 1)),
    )


sessions = st.lists(st.builds(Session, u64, st.integers(-1, 2**62), small), max_size=4).map(tuple)
checkpoints = st.builds(Checkpoint, places, u64, small, sessions)
records = st.one_of(entries(), marks(), checkpoints)


@given(records)
def test_what_is_written_is_read(record: LogRecord) -> None:
    data = encode_record(record)
    assert decode_record(data) == record
    assert is_mark(data) == isinstance(record, Mark)
    assert is_checkpoint(data) == isinstance(record, Checkpoint)


@given(entries())
def test_where_entries_end_is_told_without_reading_them(record: Entries) -> None:
    end = entries_end(encode_record(record))
    assert end == (record.head.index + record.head.count if record.head.count else None)


@given(checkpoints)
def test_the_place_of_a_checkpoint_is_told_without_its_sessions(record: Checkpoint) -> None:
    data = encode_record(record)
    assert checkpoint_place(data) == record.place
    assert checkpoint_place(data[:128]) == record.place
    with pytest.raises(WireError):
        checkpoint_place(data[:5])


@given(records, st.data())
def test_a_record_that_is_cut_or_lengthened_is_refused(
    record: LogRecord, data: st.DataObject
) -> None:
    whole = encode_record(record)
    for wrong in (whole[: data.draw(st.integers(0, len(whole) - 1))], whole + b"x"):
        with pytest.raises(WireError):
            decode_record(wrong)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_record_or_refused(data: bytes) -> None:
    for kind in range(5):
        try:
            decode_record(bytes((kind,)) + data)
        except WireError:
            continue
