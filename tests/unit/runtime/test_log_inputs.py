"""Inputs of a log in the record of a node: what is written is what is read."""

from struct import error as StructError  # noqa: N812

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.ids import ViewId
from roundelay.core.log import (
    EMPTY_LOG,
    LOG_ID_BYTES,
    NO_TERM,
    Checkpoint,
    Head,
    KeptLog,
    Mark,
    Place,
    Session,
)
from roundelay.runtime.log_inputs import (
    decode_append,
    decode_kept,
    decode_loaded,
    decode_numbers,
    decode_open_session,
    decode_snapshot_part,
    encode_append,
    encode_kept,
    encode_loaded,
    encode_numbers,
    encode_open_session,
    encode_snapshot_part,
)
from roundelay.wire.primitives import WireError

TERM = ViewId(4, "a")
MARK = Mark(TERM, 3, ("a", "b"), ("a",), (7,), 2, b"i" * LOG_ID_BYTES, True, 1)
KEPT = KeptLog(
    b"i" * LOG_ID_BYTES,
    2,
    True,
    1,
    5,
    (Mark(NO_TERM, 0, (), (), (), 0, b"i" * LOG_ID_BYTES), MARK),
    Checkpoint(Place(TERM, 3), 99, 5, (Session(7, 3, 2),)),
    (Head(3, TERM, "a", 1, 7, 3, 2, 11, 0xFFFFFFFF), MARK, Head(5, TERM, "b", 1, 8, 0, 0, 12, 0)),
    3,
    "it was away",
)


@pytest.mark.parametrize("kept", [KEPT, EMPTY_LOG])
def test_what_a_journal_holds(kept):
    assert decode_kept(encode_kept(kept)) == kept


@given(st.integers(0, len(encode_kept(KEPT)) - 1))
def test_what_is_cut_short_is_an_error_or_a_shorter_log(size):
    try:
        found = decode_kept(encode_kept(KEPT)[:size])
    except (ValueError, KeyError, WireError, StructError):
        return
    assert len(found.tail) < len(KEPT.tail)


@given(
    st.binary(max_size=50),
    st.integers(0, 2**62),
    st.none() | st.integers(0, 2**64 - 1),
    st.none() | st.integers(0, 2**62),
)
def test_appends(payload, stamp_us, session, number):
    told = (payload, stamp_us, session, number)
    assert decode_append(encode_append(*told)) == told


@given(st.integers(0, 2**62), st.none() | st.lists(st.binary(max_size=20)))
def test_records_that_were_loaded(request_number, records):
    raw = encode_loaded(request_number, records)
    assert decode_loaded(raw) == (request_number, records)


@given(st.integers(0, 2**62), st.none() | st.binary(max_size=20), st.integers(0, 2**62))
def test_parts_of_snapshots(request_number, data, size):
    raw = encode_snapshot_part(request_number, data, size)
    assert decode_snapshot_part(raw) == (request_number, data, size)


def test_sessions_and_numbers():
    assert decode_open_session(encode_open_session("billing", 3)) == ("billing", 3)
    assert decode_numbers(encode_numbers(5, -1), 2) == (5, -1)
