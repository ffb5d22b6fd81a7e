"""How the file of a snapshot begins and ends."""

import pytest

from roundelay.core.ids import ViewId
from roundelay.core.log import Checkpoint, Place, Session
from roundelay.wire.primitives import WireError
from roundelay.wire.snapshot_file import (
    END_BYTES,
    SnapshotHead,
    decode_end,
    decode_head,
    encode_end,
    encode_head,
)

HEAD = SnapshotHead(
    b"0123456789abcdef",
    2,
    Checkpoint(Place(ViewId(7, "a"), 40, 1), 99, 5, (Session(1, 3, 39), Session(2, -1, 40))),
)


def test_a_head_is_read_as_soon_as_it_is_whole_and_not_before() -> None:
    data = encode_head(HEAD)
    for size in range(len(data)):
        assert decode_head(data[:size]) is None
    assert decode_head(data + b"more") == (HEAD, len(data))


def test_a_head_with_one_wrong_bit_is_refused() -> None:
    data = encode_head(HEAD)
    for at in range(8 * len(data)):
        wrong = bytearray(data)
        wrong[at // 8] ^= 1 << at % 8
        try:
            found = decode_head(bytes(wrong))
        except WireError:
            continue
        assert found is None
        assert 32 <= at < 64, "only a larger size can wait for more"


def test_the_end_tells_size_and_digest() -> None:
    end = encode_end(1000, bytes(range(16)))
    assert len(end) == END_BYTES
    assert decode_end(end) == (1000, bytes(range(16)))
    for wrong in (end[1:], end + b"x", b"\1" + end[1:]):
        with pytest.raises(WireError):
            decode_end(wrong)
