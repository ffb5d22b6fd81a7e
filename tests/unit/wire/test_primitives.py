"""Fields written are the fields read; everything else is a WireError."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.wire.primitives import U16_MAX, Reader, Reason, WireError, Writer


@given(
    st.integers(0, 255),
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.booleans(),
    st.text(max_size=60),
    st.binary(max_size=200),
    st.binary(max_size=50),
)
def test_what_is_written_is_read(a, b, c, d, flag, text, blob, rest):
    w = Writer()
    w.u8(a)
    w.u16(b)
    w.u32(c)
    w.u64(d)
    w.flag(flag)
    w.text(text)
    w.blob(blob)
    w.rest(rest)
    r = Reader(w.done())
    got = (r.u8(), r.u16(), r.u32(), r.u64(), r.flag(), r.text(), r.blob(200), r.rest(50))
    assert got == (a, b, c, d, flag, text, blob, rest)
    r.done()


def test_a_number_out_of_range_is_a_bug_of_the_writer():
    with pytest.raises(ValueError, match="256 does not fit 1 bytes"):
        Writer().u8(256)
    with pytest.raises(ValueError, match="does not fit"):
        Writer().u64(-1)


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"", lambda r: r.u8()),
        (b"\0", lambda r: r.u16()),
        (b"\x02", lambda r: r.flag()),
        (b"\x09", lambda r: r.u8(8)),
        (b"\x05ab", lambda r: r.text()),
        (b"\x02\xff\xff", lambda r: r.text()),
        (b"\xff\xff\xff\xff", lambda r: r.blob(100)),
        (b"\0\0\0\x09abc", lambda r: r.blob(100)),
        (b"abc", lambda r: r.rest(2)),
        (b"abc", lambda r: r.done()),
        (b"\xff\xff", lambda r: r.many(r.u8, 100)),
        (b"\0\x03\x01", lambda r: r.many(r.u8, 100)),
    ],
)
def test_what_makes_no_sense_is_malformed(data, read):
    with pytest.raises(WireError) as e:
        read(Reader(data))
    assert e.value.reason is Reason.MALFORMED


def test_many_reads_as_many_as_it_says():
    assert Reader(b"\0\x02\x07\x08").many(Reader(b"\x07\x08").u8, U16_MAX) == (7, 8)
