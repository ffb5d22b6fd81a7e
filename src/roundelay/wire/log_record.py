"""Records of a log as bytes: journals keep them, and a node that catches up is sent them.

    u8  kind            1 entries, 2 mark, 3 checkpoint
    entries             u64 index, view term, name sender, u64 incarnation, session, number,
                        u32 count, u64 stamp, u32 CRC-32 of the body, body
    mark                view term, u64 base, names of voters, names of members, u64 session each,
                        u32 generation, u8 whether lossy, u32 opened, log id
    checkpoint          view term, u64 length, u32 opened, u64 digest, u64 log time, u32 sessions,
                        of each u64 session, i64 number, u64 index

A view is u64 seq and the name of its representative, which is empty in `NO_TERM`.
"""

import struct
from functools import lru_cache

from roundelay.core.checksum import crc32
from roundelay.core.ids import NodeId, ViewId
from roundelay.core.log import (
    LOG_ID_BYTES,
    Checkpoint,
    Entries,
    Head,
    LogRecord,
    Mark,
    Place,
    Session,
)
from roundelay.wire.packet import MEMBERS_MAX
from roundelay.wire.primitives import (
    I64_MAX,
    Reader,
    Reason,
    WireError,
    Writer,
)

SESSIONS_MAX = 65_536
"""Sessions that a log remembers."""

_ENTRIES, _MARK, _CHECKPOINT = 1, 2, 3
_ENTRIES_KIND, _MARK_KIND, _CHECKPOINT_KIND = (
    bytes((kind,)) for kind in (_ENTRIES, _MARK, _CHECKPOINT)
)
_NUMBERS = struct.Struct(">QQQIQI")
"""Incarnation, session, number, count, stamp and checksum of the body."""
_SESSION = struct.Struct(">QqQ")


def encode_record(record: LogRecord) -> bytes:
    """The bytes of a record."""
    if type(record) is Entries:
        return b"".join((head_bytes(record.head), record.body))
    w = Writer()
    if type(record) is Mark:
        _write_mark(w, record)
    else:
        assert type(record) is Checkpoint
        _write_checkpoint(w, record)
    return w.done()


def head_bytes(head: Head) -> bytes:
    """The bytes of a record of entries up to its body, which need not be copied to be written."""
    numbers = _NUMBERS.pack(
        head.incarnation, head.session, head.number, head.count, head.stamp_us, head.crc
    )
    term = head.term
    return b"".join((_start(head.index), _view(term), _name(head.sender), numbers))


def decode_record(data: bytes) -> LogRecord:
    """The record in `data`, or WireError. The checksum of a body is compared."""
    if data[:1] == _ENTRIES_KIND:
        return _read_entries(data)
    r = Reader(data)
    kind = r.u8()
    if kind == _MARK:
        return _read_mark(r)
    if kind == _CHECKPOINT:
        return _read_checkpoint(r)
    raise WireError(Reason.MALFORMED, f"a record of kind {kind}")


def is_mark(data: bytes) -> bool:
    """Whether these are the bytes of a mark, if they are those of a record at all."""
    return data[:1] == _MARK_KIND


def is_checkpoint(data: bytes) -> bool:
    """Whether these are the bytes of a checkpoint, if they are those of a record at all."""
    return data[:1] == _CHECKPOINT_KIND


def checkpoint_place(data: bytes) -> Place:
    """The place of a checkpoint, of which at least the beginning is given; WireError if that is too
    short."""
    r = Reader(data, 1)
    return Place(_read_view(r), r.u64(I64_MAX), r.u32())


def entries_end(data: bytes) -> int | None:
    """The index behind a record of entries; None if it has none, since it opens a session. The
    record comes from this node's own journal: nothing is checked."""
    at = 17
    at += 1 + data[at]
    at += 1 + data[at]
    count: int = _NUMBERS.unpack_from(data, at)[3]
    return int.from_bytes(data[1:9]) + count if count else None


def _start(index: int) -> bytes:
    return struct.pack(">BQ", _ENTRIES, index)


@lru_cache(maxsize=64)
def _view(view: ViewId) -> bytes:
    w = Writer()
    _write_view(w, view)
    return w.done()


@lru_cache(maxsize=MEMBERS_MAX)
def _name(node: NodeId) -> bytes:
    w = Writer()
    w.text(node)
    return w.done()


def _read_entries(data: bytes) -> Entries:
    try:
        at = 18 + data[17]
        at += 1 + data[at]
        incarnation, session, number, count, stamp_us, crc = _NUMBERS.unpack_from(data, at)
    except (IndexError, struct.error):
        raise WireError(Reason.MALFORMED, "entries that end within their head") from None
    index = int.from_bytes(data[1:9])
    if max(incarnation, number + count, index + count, stamp_us) > I64_MAX:
        raise WireError(Reason.MALFORMED, "entries out of range")
    term, sender = _origin(data[9:at])
    body = data[at + _NUMBERS.size :]
    if crc32(body) != crc:
        raise WireError(Reason.CHECKSUM, f"the body of the entries from {index} on is damaged")
    head = Head(index, term, sender, incarnation, session, number, count, stamp_us, crc)
    return Entries(head, body)


@lru_cache(maxsize=MEMBERS_MAX)
def _origin(data: bytes) -> tuple[ViewId, NodeId]:
    """Term and sender, which are the same in many records."""
    r = Reader(data)
    term, sender = _read_view(r), r.name()
    r.done()
    return term, sender


def _write_mark(w: Writer, mark: Mark) -> None:
    w.u8(_MARK)
    _write_view(w, mark.term)
    w.u64(mark.base)
    _write_names(w, mark.voters)
    _write_names(w, mark.members)
    for session in mark.sessions:
        w.u64(session)
    w.u32(mark.generation)
    w.flag(mark.lossy)
    w.u32(mark.opened)
    w.rest(mark.log)


def _read_mark(r: Reader) -> Mark:
    term, base = _read_view(r), r.u64(I64_MAX)
    voters, members = r.many(r.name, MEMBERS_MAX), r.many(r.name, MEMBERS_MAX)
    sessions = tuple(r.u64() for _ in members)
    generation, lossy, opened, log = r.u32(), r.flag(), r.u32(), r.take(LOG_ID_BYTES)
    r.done()
    return Mark(term, base, voters, members, sessions, generation, log, lossy, opened)


def _write_checkpoint(w: Writer, checkpoint: Checkpoint) -> None:
    w.u8(_CHECKPOINT)
    _write_view(w, checkpoint.place.term)
    w.u64(checkpoint.place.length)
    w.u32(checkpoint.place.opened)
    w.u64(checkpoint.digest)
    w.u64(checkpoint.time_us)
    w.u32(len(checkpoint.sessions))
    for session in checkpoint.sessions:
        w.fields(_SESSION, *session)


def _read_checkpoint(r: Reader) -> Checkpoint:
    place = Place(_read_view(r), r.u64(I64_MAX), r.u32())
    digest, time_us = r.u64(), r.u64(I64_MAX)
    sessions = tuple(Session(*r.fields(_SESSION)) for _ in range(r.u32(SESSIONS_MAX)))
    r.done()
    return Checkpoint(place, digest, time_us, sessions)


def _write_view(w: Writer, view: ViewId) -> None:
    w.u64(view.seq)
    w.text(view.rep)


def _read_view(r: Reader) -> ViewId:
    return ViewId(r.u64(I64_MAX), r.name(may_be_empty=True))


def _write_names(w: Writer, names: tuple[NodeId, ...]) -> None:
    w.u16(len(names))
    for name in names:
        w.text(name)
