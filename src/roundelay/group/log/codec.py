"""The messages of the log to bytes and back."""

import struct
from collections.abc import Callable, Mapping
from typing import assert_never

from roundelay.core.ids import ViewId
from roundelay.core.log import LOG_ID_BYTES, Mark, Place
from roundelay.group.log.messages import (
    NO_LOG,
    Ack,
    Chunk,
    CutTo,
    Fetch,
    FetchSnapshot,
    LogMessage,
    Offer,
    Probe,
    Ready,
    Reply,
    TooFar,
)
from roundelay.wire.frame import FRAME_BYTES_MAX
from roundelay.wire.log_record import decode_record, encode_record
from roundelay.wire.packet import MEMBERS_MAX
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer

_TWO = struct.Struct(">QQ")
_THREE = struct.Struct(">QIQ")
_CHUNK = struct.Struct(">IQBQQQI")
"""Number, offset, flags, committed; ordinal, length and opened, or zeros."""
_END, _WHOLE, _KNOWN = 1, 2, 4


class LogCodec:
    """Messages of the log to bytes and back."""

    tags: Mapping[int, str] = {
        96: "OFFER",
        97: "READY",
        98: "LOGACK",
        99: "PROBE",
        100: "REPLY",
        101: "FETCH",
        102: "CHUNK",
        103: "CUT",
        104: "TOOFAR",
        105: "FETCHSNAP",
    }

    def encode(self, message: LogMessage) -> tuple[int, bytes]:
        w = Writer()
        match message:
            case Chunk():
                known = message.ordinal is not None
                head = _CHUNK.pack(
                    message.number,
                    message.offset,
                    _END * message.end + _WHOLE * message.whole + _KNOWN * known,
                    message.committed,
                    message.ordinal or 0,
                    message.length,
                    message.opened,
                )
                return 102, head + message.data
            case Ack():
                return 98, _THREE.pack(message.length, message.opened, message.committed)
            case Probe():
                w.u64(message.number)
                return 99, w.done()
            case Reply():
                return 100, _TWO.pack(message.number, message.length)
            case Offer():
                w.rest(message.log or NO_LOG)
                w.u32(message.generation)
                _write_place(w, message.place)
                for number in (message.digest, message.first, message.committed):
                    w.u64(number)
                _write_snapshot(w, message.snapshot)
                w.u64(message.session)
                _write_bits(w, message.have)
                return 96, w.done()
            case Ready():
                w.u64(message.base)
                _write_bits(w, message.have)
                _write_bits(w, message.ready)
                return 97, w.done()
            case Fetch():
                w.u32(message.number)
                _write_place(w, message.place)
                w.u64(message.offset)
                w.u64(message.limit)
                _write_place(w, message.begun)
                return 101, w.done()
            case CutTo():
                w.u32(message.number)
                _write_place(w, message.place)
                return 103, w.done()
            case TooFar():
                w.u32(message.number)
                for number in (message.index, message.size, message.digest):
                    w.u64(number)
                w.rest(encode_record(message.mark))
                return 104, w.done()
            case FetchSnapshot():
                w.u32(message.number)
                for number in (message.index, message.offset, message.limit):
                    w.u64(number)
                return 105, w.done()
            case _:
                assert_never(message)

    def decode(self, tag: int, data: bytes, start: int) -> LogMessage:
        r = Reader(data, start)
        reader = _READERS.get(tag)
        if reader is None:
            raise WireError(Reason.MALFORMED, f"tag {tag}")
        message = reader(r)
        r.done()
        return message


def _read_offer(r: Reader) -> Offer:
    log, generation, place = r.take(LOG_ID_BYTES), r.u32(), _read_place(r)
    digest, first, committed = r.u64(), r.u64(I64_MAX), r.u64(I64_MAX)
    snapshot, session, have = _read_snapshot(r), r.u64(I64_MAX), _read_bits(r)
    if max(first, committed) > place.length:
        raise WireError(Reason.MALFORMED, "a log that ends before it begins")
    if log == NO_LOG:
        log = b""
    if (not log) != (not place.term.rep):
        raise WireError(Reason.MALFORMED, "a log without an id, or without a mark")
    return Offer(log, generation, place, digest, first, committed, snapshot, session, have)


def _read_chunk(r: Reader) -> Chunk:
    number, offset, flags, committed, ordinal, length, opened = r.fields(_CHUNK)
    if max(offset, committed, ordinal, length) > I64_MAX or flags >= 2 * _KNOWN:
        raise WireError(Reason.MALFORMED, "a chunk out of range")
    if not flags & _KNOWN and (ordinal or length or opened):
        raise WireError(Reason.MALFORMED, "a chunk with a place that it does not know")
    return Chunk(
        number,
        offset,
        r.rest(FRAME_BYTES_MAX),
        bool(flags & _END),
        bool(flags & _WHOLE),
        ordinal if flags & _KNOWN else None,
        length,
        opened,
        committed,
    )


def _read_ack(r: Reader) -> Ack:
    length, opened, committed = r.u64(I64_MAX), r.u32(), r.u64(I64_MAX)
    if committed > length:
        # What is committed is known here only as far as this log goes.
        raise WireError(Reason.MALFORMED, "more is committed than there is")
    return Ack(length, opened, committed)


def _read_fetch(r: Reader) -> Fetch:
    number, place = r.u32(), _read_place(r)
    return Fetch(number, place, *_read_part(r), _read_place(r))


def _read_fetch_snapshot(r: Reader) -> FetchSnapshot:
    number, index = r.u32(), r.u64(I64_MAX)
    return FetchSnapshot(number, index, *_read_part(r))


def _read_part(r: Reader) -> tuple[int, int]:
    offset, limit = r.u64(I64_MAX), r.u64(I64_MAX)
    if limit < offset:
        raise WireError(Reason.MALFORMED, "a part that ends before it begins")
    return offset, limit


def _read_too_far(r: Reader) -> TooFar:
    number, index, size, digest = r.u32(), r.u64(I64_MAX), r.u64(I64_MAX), r.u64()
    mark = decode_record(r.rest(FRAME_BYTES_MAX))
    if not isinstance(mark, Mark):
        raise WireError(Reason.MALFORMED, "a snapshot of no term")
    return TooFar(number, index, size, digest, mark)


_READERS: dict[int, Callable[[Reader], LogMessage]] = {
    96: _read_offer,
    97: lambda r: Ready(r.u64(I64_MAX), _read_bits(r), _read_bits(r)),
    98: _read_ack,
    99: lambda r: Probe(r.u64(I64_MAX)),
    100: lambda r: Reply(r.u64(I64_MAX), r.u64(I64_MAX)),
    101: _read_fetch,
    102: _read_chunk,
    103: lambda r: CutTo(r.u32(), _read_place(r)),
    104: _read_too_far,
    105: _read_fetch_snapshot,
}


def _write_place(w: Writer, place: Place) -> None:
    w.u64(place.term.seq)
    w.text(place.term.rep)
    w.u64(place.length)
    w.u32(place.opened)


def _read_place(r: Reader) -> Place:
    return Place(ViewId(r.u64(I64_MAX), r.name(may_be_empty=True)), r.u64(I64_MAX), r.u32())


def _write_snapshot(w: Writer, snapshot: int | None) -> None:
    w.u64(0 if snapshot is None else snapshot + 1)


def _read_snapshot(r: Reader) -> int | None:
    snapshot = r.u64(I64_MAX)
    return snapshot - 1 if snapshot else None


def _write_bits(w: Writer, bits: tuple[bool, ...]) -> None:
    """A bit for each member, the first one's the lowest."""
    w.u16(len(bits))
    number = sum(1 << i for i, bit in enumerate(bits) if bit)
    w.rest(number.to_bytes((len(bits) + 7) // 8, "little"))


def _read_bits(r: Reader) -> tuple[bool, ...]:
    size = r.u16(MEMBERS_MAX)
    number = int.from_bytes(r.take((size + 7) // 8), "little")
    if number >> size:
        raise WireError(Reason.MALFORMED, "a set with nobody's bit")
    return tuple([bool(number >> i & 1) for i in range(size)])
