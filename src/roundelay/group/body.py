"""What is inside a packet: whole messages, or a piece of a large one.

    1   whole messages of one size      u32 size, payloads
    2   whole messages of many sizes    u32 size each, payloads
    3   a piece                         u32 index, u32 pieces, u32 CRC-32 of the whole, bytes

How many messages there are is the packet's own affair (`span.count`). A piece that is not the last
has count 0: the message is ordered, and its number taken, where its last piece is.
"""

import struct
import zlib
from collections.abc import Sequence

from roundelay.core.value import value
from roundelay.wire.primitives import Reader, Reason, WireError

SAME, MIXED, PIECE = 1, 2, 3

_PIECE = struct.Struct(">BIII")
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


def pack(payloads: Sequence[bytes]) -> bytes:
    """A body of whole messages."""
    sizes = [len(payload) for payload in payloads]
    if min(sizes) == max(sizes):
        return b"".join((struct.pack(">BI", SAME, sizes[0]), *payloads))
    return b"".join((struct.pack(f">B{len(sizes)}I", MIXED, *sizes), *payloads))


def pack_piece(payload: bytes, index: int, pieces: int, size: int, crc: int) -> bytes:
    """The body of one piece of `payload`, cut into pieces of `size` bytes."""
    return _PIECE.pack(PIECE, index, pieces, crc) + payload[index * size : (index + 1) * size]


def unpack(body: bytes, count: int) -> tuple[bytes, ...] | Piece:
    """The messages in a body, or the piece it is; WireError if it is neither."""
    r = Reader(body)
    form = r.u8()
    if form == PIECE:
        index, pieces, crc = r.u32(), r.u32(), r.u32()
        if index >= pieces or count != (index == pieces - 1):
            raise WireError(Reason.MALFORMED, "a piece out of place")
        return Piece(index, pieces, crc, body[_PIECE.size :])
    if form == SAME:
        size = r.u32()
        rest = r.rest(len(body))
        if len(rest) != size * count:
            raise WireError(Reason.MALFORMED, "sizes do not add up")
        return tuple(rest[i * size : (i + 1) * size] for i in range(count))
    if form == MIXED:
        sizes = [r.u32() for _ in range(count)]
        rest = r.rest(len(body))
        if len(rest) != sum(sizes):
            raise WireError(Reason.MALFORMED, "sizes do not add up")
        payloads = []
        at = 0
        for size in sizes:
            payloads.append(rest[at : at + size])
            at += size
        return tuple(payloads)
    raise WireError(Reason.MALFORMED, f"form {form}")


def checksum(payload: bytes) -> int:
    return zlib.crc32(payload)
