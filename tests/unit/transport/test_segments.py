"""Runs of datagrams that the system takes at once."""

import socket
import struct

from hypothesis import given
from hypothesis import strategies as st

from roundelay.transport.segments import (
    BUFFER_BYTES_MAX,
    SEGMENTS_MAX,
    UDP_GRO,
    buffers,
    control,
    split,
)

sizes = st.sampled_from([0, 1, 7, 900, 1300, 20_000, 40_000])


@given(st.lists(st.tuples(sizes, st.integers(1, 90)), max_size=6))
def test_runs_are_all_of_it_in_order_and_each_is_one_that_the_system_takes(blocks):
    datagrams = [bytes([i % 250]) * size for size, count in blocks for i in range(count)]
    cut = list(buffers(datagrams))
    assert [datagram for buffer in cut for datagram in buffer] == datagrams
    for buffer in cut:
        assert 0 < len(buffer) <= SEGMENTS_MAX
        assert {len(datagram) for datagram in buffer[:-1]} <= {len(buffer[0])}
        assert len(buffer[-1]) <= len(buffer[0])
        assert len(buffer) == 1 or sum(map(len, buffer)) <= BUFFER_BYTES_MAX


@given(st.integers(1, 1400), st.integers(1, 40), st.integers(1, 1400))
def test_what_is_sent_as_one_buffer_is_taken_apart_again(size, count, last):
    buffer = [bytes([i]) * size for i in range(count)] + [b"z" * min(last, size)]
    ((level, _, told),) = control(buffer)
    (said,) = struct.unpack("=H", told)
    heard = [(level, UDP_GRO, struct.pack("=i", said))]
    assert list(split(b"".join(buffer), heard)) == buffer


def test_what_comes_alone_or_with_other_words_stays_whole():
    assert split(b"alone", []) == (b"alone",)
    assert split(b"alone", [(socket.SOL_SOCKET, 1, b"xxxx")]) == (b"alone",)
