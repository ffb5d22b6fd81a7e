"""What is inside a packet: whole messages, or a piece of a large one.

    1   whole messages of one size      u32 size, payloads
    2   whole messages of many sizes    u32 size each, payloads
    3   a piece                         u32 index, u32 pieces, u32 CRC-32 of the whole, bytes

    4   of the replicated log           see `group.log.arrival`
    5   opens a session of that log     likewise

How many messages there are is the packet's own affair (`span.count`). A piece that is not the last
has count 0: the message is ordered, and its number taken, where its last piece is.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from io import BytesIO

from roundelay.core.checksum import crc32
from roundelay.core.value import value
from roundelay.wire.primitives import Reader, Reason, WireError

SAME, MIXED, PIECE = 1, 2, 3
LOG, LOG_OPENING = 4, 5

_LOG_FORMS = (bytes((LOG,)), bytes((LOG_OPENING,)))

_SAME = struct.Struct(">BI")
_MIXED = bytes((MIXED,))
_PIECE = struct.Struct(">BIII")
_SAME_MAX = 4096
"""Most messages that `_same` takes apart: what it keeps for each takes memory."""
PIECE_OVERHEAD_BYTES = _PIECE.size
MESSAGE_OVERHEAD_BYTES = 4
"""What a message costs in a packet beyond its payload, at most; and the packet itself one byte."""


@value
class Piece:
    """A part of a large message."""

    index: int
    pieces: int
    crc: int
    """Of the whole message."""
    data: bytes

    @property
    def last(self) -> bool:
        return self.index == self.pieces - 1


def is_log_body(body: bytes) -> bool:
    """Whether a packet with this body is for the replicated log."""
    return body[:1] in _LOG_FORMS


def pack(payloads: Sequence[bytes]) -> bytes:
    """A body of whole messages."""
    sizes = [*map(len, payloads)]
    if sizes[0] == sizes[-1] and sizes.count(sizes[0]) == len(sizes):
        return b"".join((_SAME.pack(SAME, sizes[0]), *payloads))
    return b"".join((_MIXED, _sizes(len(sizes)).pack(*sizes), *payloads))


def pack_piece(payload: bytes, index: int, pieces: int, size: int, crc: int) -> bytes:
    """The body of one piece of `payload`, cut into pieces of `size` bytes."""
    return _PIECE.pack(PIECE, index, pieces, crc) + payload[index * size : (index + 1) * size]


def unpack(body: bytes, count: int) -> tuple[bytes, ...] | Piece:
    """The messages in a body, or the piece it is; WireError if it is neither."""
    form = body[0] if body else 0
    if form == SAME and len(body) >= _SAME.size:
        size = _SAME.unpack_from(body)[1]
        if len(body) - _SAME.size != size * count:
            raise WireError(Reason.MALFORMED, "sizes do not add up")
        if count == 1:
            return (body[_SAME.size :],)
        if not size:
            return (b"",) * count
        if count > _SAME_MAX:
            starts = range(_SAME.size, len(body), size)
            return tuple([body[start : start + size] for start in starts])
        return _same(size, count).unpack_from(body, _SAME.size)
    if form == PIECE and len(body) >= _PIECE.size:
        _, index, pieces, crc = _PIECE.unpack_from(body)
        if index >= pieces or count != (index == pieces - 1):
            raise WireError(Reason.MALFORMED, "a piece out of place")
        return Piece(index, pieces, crc, body[_PIECE.size :])
    if form == MIXED:
        sizes = Reader(body, 1).fields(_sizes(count))
        start = 1 + 4 * count
        if start + sum(sizes) != len(body):
            raise WireError(Reason.MALFORMED, "sizes do not add up")
        data = BytesIO(body)  # Slices, which have to be told where they begin, take twice as long.
        data.seek(start)
        return tuple(map(data.read, sizes))
    raise WireError(Reason.MALFORMED, f"form {form}")


@lru_cache(maxsize=256)
def _same(size: int, count: int) -> struct.Struct:
    """Takes apart `count` messages of one size at once, which is five times as fast as slices."""
    assert count <= _SAME_MAX
    return struct.Struct(f"{size}s" * count)


@lru_cache(maxsize=256)
def _sizes(count: int) -> struct.Struct:
    """The sizes of so many messages."""
    return struct.Struct(f">{count}I")


def checksum(payload: bytes) -> int:
    return crc32(payload)
