"""How the file of a snapshot begins and ends: journals write it, and nodes that catch up read it
while it comes in parts.

    head      `RDS1`, u32 size of the head, u32 CRC-32 of what follows in it,
              log id, u32 generation, the checkpoint at the snapshot's place as a record
    parts     u32 size, u32 CRC-32, bytes of the application; as many as there are
    end       u32 0, u64 bytes of the application in all, BLAKE2b of 16 bytes over all before it

Two files with the same end are the same file.
"""

import struct

from roundelay.core.checksum import crc32
from roundelay.core.ids import ViewId
from roundelay.core.log import LOG_ID_BYTES, Checkpoint
from roundelay.core.value import value
from roundelay.wire.log_record import SESSIONS_MAX, decode_record, encode_record
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError

MAGIC = b"RDS1"
DIGEST_BYTES = 16
END_BYTES = 4 + 8 + DIGEST_BYTES
HEAD_BYTES_MAX = 4096 + 24 * SESSIONS_MAX
"""No head is larger."""

TERM_WITHIN_BYTES = 512
"""The term of a snapshot is within so many bytes of its beginning."""

_PREFIX = struct.Struct(">4sII")
_IDENTITY = struct.Struct(f">{LOG_ID_BYTES}sI")
_END = struct.Struct(f">IQ{DIGEST_BYTES}s")


@value
class SnapshotHead:
    """What a snapshot is of."""

    log: bytes
    generation: int
    checkpoint: Checkpoint
    """Its length is the snapshot's index."""


def encode_head(head: SnapshotHead) -> bytes:
    """How the file begins."""
    rest = _IDENTITY.pack(head.log, head.generation) + encode_record(head.checkpoint)
    return _PREFIX.pack(MAGIC, _PREFIX.size + len(rest), crc32(rest)) + rest


def decode_head(data: bytes) -> tuple[SnapshotHead, int] | None:
    """The head at the beginning of `data` and its size; None if `data` ends within the head.
    WireError if no snapshot begins so."""
    if len(data) < _PREFIX.size:
        if not MAGIC.startswith(data[:4]):
            raise WireError(Reason.FOREIGN, "not a snapshot")
        return None
    magic, size, crc = _PREFIX.unpack_from(data)
    if magic != MAGIC or not _PREFIX.size + _IDENTITY.size < size <= HEAD_BYTES_MAX:
        raise WireError(Reason.FOREIGN, "not a snapshot")
    if len(data) < size:
        return None
    rest = data[_PREFIX.size : size]
    if crc32(rest) != crc:
        raise WireError(Reason.CHECKSUM, "the head of the snapshot is damaged")
    log, generation = _IDENTITY.unpack_from(rest)
    checkpoint = decode_record(rest[_IDENTITY.size :])
    if not isinstance(checkpoint, Checkpoint):
        raise WireError(Reason.MALFORMED, "a snapshot without a checkpoint")
    return SnapshotHead(log, generation, checkpoint), size


def term_in_head(data: bytes) -> ViewId:
    """The term of a snapshot whose file begins with `data`, at least `TERM_WITHIN_BYTES` of it if
    there are so many. Nothing else of the head is checked. WireError if no snapshot begins so."""
    r = Reader(data)
    if r.take(len(MAGIC)) != MAGIC:
        raise WireError(Reason.FOREIGN, "not a snapshot")
    r.take(_PREFIX.size + _IDENTITY.size + 1 - len(MAGIC))
    return ViewId(r.u64(I64_MAX), r.name(may_be_empty=True))


def encode_end(application_bytes: int, digest: bytes) -> bytes:
    """How the file ends."""
    return _END.pack(0, application_bytes, digest)


def decode_end(data: bytes) -> tuple[int, bytes]:
    """The bytes of the application, and the digest, of a file that ends with these `END_BYTES`;
    WireError if none does."""
    if len(data) != END_BYTES:
        raise WireError(Reason.TRUNCATED, "the end of a snapshot is missing")
    zero, size, digest = _END.unpack(data)
    if zero:
        raise WireError(Reason.MALFORMED, "no snapshot ends like this")
    return size, digest
