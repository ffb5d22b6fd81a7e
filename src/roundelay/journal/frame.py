"""Records in a file. Each one lies in a frame:

    u32  size of the record          u16  check of the size and the place
    2s   `RJ`                        u32  CRC-32
    u64  synced                      u64  committed
    the record                       u8   0x5A

The place of a frame is its distance from the beginning of the log, in bytes over all segments, also
those that were removed. *Synced* is the place up to which everything was known to be on disk, and
*committed* the number of entries that were known to be committed, when the frame was written.

The CRC-32 covers the place, all fields of the frame and the record, except for the body of entries,
which has a CRC-32 of its own in their head. It begins with a number that differs from segment to
segment. So a block that strayed from another place or file does not pass, and a packet's body is
summed up once, by who received it.

The last byte is not 0. So a frame whose end is missing, in a file that was full of zeros before, is
told from one that was whole and got damaged.

Records are those of `wire.log_record`, and two kinds that only journals know:

    u8 16  note      repeats synced and committed when nothing else is written
    u8 17  carry     the first record of a segment: the place in the log where it begins, as view
                     term, u64 length, u32 opened; and the newest marks before it, a u32 size each
"""

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from roundelay.core.checksum import crc32
from roundelay.core.ids import NodeId, ViewId
from roundelay.core.log import MARKS_KEPT, Checkpoint, Entries, Head, LogRecord, Mark, Place
from roundelay.wire.log_record import decode_record, encode_record, head_bytes
from roundelay.wire.primitives import I64_MAX, U32_MAX, Reader, Reason, WireError, Writer, name_in

ENTRIES, MARK, CHECKPOINT, NOTE, CARRY = 1, 2, 3, 16, 17
FRAME = struct.Struct(">IH2sIQQ")
MAGIC = b"RJ"
MAGIC_AT = 6
END = b"\x5a"
OVERHEAD_BYTES = FRAME.size + 1
RECORD_BYTES_MAX = 1 << 30
"""No record is larger. A larger size in a file is damage."""

_SEED = struct.Struct(">QIQQ")
_INDEX = struct.Struct(">Q")
_NUMBERS = struct.Struct(">QQQIQI")
_KINDS = frozenset((ENTRIES, MARK, CHECKPOINT, NOTE, CARRY))


class Found(NamedTuple):
    """A frame that was read and is whole."""

    at: int
    """Where the frame begins in the bytes that were searched."""
    kind: int
    start: int
    """Where the record begins in those bytes."""
    end: int
    """Where it ends; the frame ends one byte later."""
    synced: int
    committed: int
    head: Head | None
    """Of entries."""
    body: int
    """Where the body of entries begins."""


class Bad(NamedTuple):
    """Bytes that are no whole frame."""

    at: int
    why: str
    short: bool
    """Whether its end is missing, as if it had not been written to the end."""


class Carry(NamedTuple):
    """What a segment begins with."""

    place: Place
    marks: tuple[Mark, ...]


def frame(head: bytes, size: int, place: int, nonce: int, synced: int, committed: int) -> bytes:
    """What lies before a record of `size` bytes of which `head` is all but the body of entries."""
    crc = crc32(head, crc32(_SEED.pack(place, size, synced, committed), nonce))
    return FRAME.pack(size, _check(size, place), MAGIC, crc, synced, committed)


def record_parts(record: LogRecord) -> tuple[bytes, bytes]:
    """The bytes of a record: the part that the frame sums up, and the body of entries, which is not
    copied."""
    if type(record) is Entries:
        return head_bytes(record.head), record.body
    return encode_record(record), b""


def note_bytes() -> bytes:
    return bytes((NOTE,))


def carry_bytes(carry: Carry) -> bytes:
    w = Writer()
    w.u8(CARRY)
    w.u64(carry.place.term.seq)
    w.text(carry.place.term.rep)
    w.u64(carry.place.length)
    w.u32(carry.place.opened)
    for mark in carry.marks[-MARKS_KEPT:]:
        w.blob(encode_record(mark))
    return w.done()


def read_carry(data: bytes) -> Carry:
    """The carry whose record is `data`, or WireError."""
    r = Reader(data)
    if r.u8() != CARRY:
        raise WireError(Reason.MALFORMED, "a segment begins with another record")
    term = ViewId(r.u64(I64_MAX), r.name(may_be_empty=True))
    place = Place(term, r.u64(I64_MAX), r.u32())
    marks: list[Mark] = []
    while r.more:
        mark = decode_record(r.blob(U32_MAX))
        if not isinstance(mark, Mark) or len(marks) == MARKS_KEPT:
            raise WireError(Reason.MALFORMED, "what a segment carries are no marks")
        marks.append(mark)
    return Carry(place, tuple(marks))


def scan(data: bytes, at: int, place: int, nonce: int) -> Iterator[Found | Bad]:
    """The frames from `data[at]` on, which is at `place`. The last item is a `Bad` if what follows
    is no whole frame, be it zeros that are too few for one; there is none at the end of the data,
    and before zeros for a frame."""
    view = memoryview(data)
    size_of_data = len(data)
    shift = place - at
    unpack = FRAME.unpack_from
    while at < size_of_data:
        start = at + FRAME.size
        if start > size_of_data:
            yield Bad(at, "a frame is not complete", short=True)
            return
        size, check, magic, crc, synced, committed = unpack(data, at)
        if not size and not any(data[at:start]):
            return
        if magic != MAGIC or check != _check(size, at + shift) or not 0 < size <= RECORD_BYTES_MAX:
            short = not any(data[at + MAGIC_AT + len(MAGIC) : start])
            yield Bad(at, "the size of a record is damaged", short=short)
            return
        end = start + size
        if end >= size_of_data:
            yield Bad(at, "a record is not complete", short=True)
            return
        kind = data[start]
        head: Head | None = None
        body = end
        if kind == ENTRIES:
            try:
                head, body = head_at(data, start, end)
            except WireError:
                body = end
        seed = crc32(_SEED.pack(at + shift, size, synced, committed), nonce)
        if (
            crc32(view[start:body], seed) != crc
            or data[end] != END[0]
            or (head is not None and crc32(view[body:end]) != head.crc)
            or (kind == ENTRIES and head is None)
            or kind not in _KINDS
        ):
            yield Bad(at, "a checksum is wrong", short=not data[end])
            return
        yield Found(at, kind, start, end, synced, committed, head, body)
        at = end + 1


def head_at(data: bytes, start: int, end: int) -> tuple[Head, int]:
    """The head of the entries whose record is `data[start:end]`, and where the body begins.
    WireError if it is none; nothing is compared with the body."""
    at = start + 17
    try:
        at += 1 + data[at]
        at += 1 + data[at]
    except IndexError:
        raise WireError(Reason.MALFORMED, "a head is not complete") from None
    body = at + _NUMBERS.size
    if body > end:
        raise WireError(Reason.MALFORMED, "a head is not complete")
    index = _INDEX.unpack_from(data, start + 1)[0]
    term, sender = _names(data[start + 9 : at])
    incarnation, session, number, count, stamp_us, crc = _NUMBERS.unpack_from(data, at)
    return Head(index, term, sender, incarnation, session, number, count, stamp_us, crc), body


def whole_behind(data: bytes, place: int, nonce: int) -> bool:
    """Whether any whole frame begins in the data, which is from `place`."""
    found = data.find(MAGIC, MAGIC_AT)
    while found >= 0:
        at = found - MAGIC_AT
        if type(next(scan(data, at, place + at, nonce), None)) is Found:
            return True
        found = data.find(MAGIC, found + 1)
    return False


def decode(data: bytes, found: Found) -> LogRecord | Head:
    """The record of a frame that is no note and no carry; of entries the head alone."""
    if found.head is not None:
        return found.head
    return decode_record(data[found.start : found.end])


def place_past(place: Place, data: bytes, found: Found) -> Place:
    """The place in the log behind the record of a frame, which begins at `place`."""
    if found.head is not None:
        return place.past(found.head)
    if found.kind != MARK:
        return place
    return place.past(decode_record(data[found.start : found.end]))


def _check(size: int, place: int) -> int:
    """Sixteen bits that differ if one bit of the size does."""
    return (size * 0x9E3779B1 + place * 0x85EBCA6B + 0x5A5A0000) >> 16 & 0xFFFF


@lru_cache(maxsize=1024)
def _names(data: bytes) -> tuple[ViewId, NodeId]:
    rep_bytes = data[8]
    rep = data[9 : 9 + rep_bytes]
    sender = data[10 + rep_bytes :]
    seq = _INDEX.unpack_from(data)[0]
    if seq > I64_MAX:
        raise WireError(Reason.MALFORMED, "a view out of range")
    return ViewId(seq, name_in(rep) if rep else ""), name_in(sender)


__all__ = [
    "CARRY",
    "CHECKPOINT",
    "END",
    "ENTRIES",
    "MARK",
    "NOTE",
    "OVERHEAD_BYTES",
    "Bad",
    "Carry",
    "Checkpoint",
    "Found",
    "carry_bytes",
    "decode",
    "frame",
    "head_at",
    "note_bytes",
    "place_past",
    "read_carry",
    "record_parts",
    "scan",
    "whole_behind",
]
