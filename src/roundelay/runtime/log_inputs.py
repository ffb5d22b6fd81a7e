"""Inputs of a core with a log as bytes, as the record of a node keeps them.

what the journal holds  a line of JSON, the marks, the checkpoint and the tail, each with its
                        size, u32, before it; a head without its body
append                  a line of JSON, [stamp, session, number], and the payload
open a session          a line of JSON, [name, stamp]
loaded                  u64 request, u8 whether it could be read, the records, each with its size
a part of a snapshot    u64 request, size of the file, whether it is there; the part
all others              numbers, i64
"""

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from roundelay.core.checksum import crc32
from roundelay.core.log import Checkpoint, Entries, Head, KeptLog, Mark
from roundelay.wire.log_record import decode_record, encode_record

_SIZE = struct.Struct(">I")


def encode_kept(kept: KeptLog) -> bytes:
    head = {
        "log": kept.log.hex(),
        "generation": kept.generation,
        "able": kept.able,
        "first": kept.first,
        "committed": kept.committed,
        "marks": len(kept.marks),
        "snapshot": kept.snapshot,
        "why": kept.why,
    }
    parts = [*map(encode_record, kept.marks), encode_record(kept.checkpoint)]
    parts += [
        # The checksum of a head is that of a body which is not here: it travels in its place.
        encode_record(_bodiless(record) if isinstance(record, Head) else record)
        for record in kept.tail
    ]
    return json.dumps(head).encode() + b"\n" + _join(parts)


def decode_kept(data: bytes) -> KeptLog:
    """ValueError, KeyError or WireError for bytes that `encode_kept` did not make."""
    line, _, rest = data.partition(b"\n")
    head = json.loads(line)
    records = [decode_record(part) for part in _split(rest)]
    marks, (checkpoint, *tail) = records[: head["marks"]], records[head["marks"] :]
    if type(checkpoint) is not Checkpoint:
        raise ValueError("no checkpoint")
    return KeptLog(
        bytes.fromhex(head["log"]),
        head["generation"],
        head["able"],
        head["first"],
        head["committed"],
        tuple(mark for mark in marks if type(mark) is Mark),
        checkpoint,
        tuple(
            _head(record) if isinstance(record, Entries) else record
            for record in tail
            if not isinstance(record, Checkpoint)
        ),
        head["snapshot"],
        head["why"],
    )


def _bodiless(head: Head) -> Entries:
    body = struct.pack(">I", head.crc)
    return Entries(_replace(head, crc32(body)), body)


def _replace(head: Head, crc: int) -> Head:
    return replace(head, crc=crc)


def _head(record: Entries) -> Head:
    return _replace(record.head, struct.unpack(">I", record.body)[0])


def encode_append(payload: bytes, stamp_us: int, session: int | None, number: int | None) -> bytes:
    return json.dumps([stamp_us, session, number]).encode() + b"\n" + payload


def decode_append(data: bytes) -> tuple[bytes, int, int | None, int | None]:
    head, _, payload = data.partition(b"\n")
    stamp_us, session, number = json.loads(head)
    return payload, stamp_us, session, number


def encode_open_session(name: str, stamp_us: int) -> bytes:
    return json.dumps([name, stamp_us]).encode()


def decode_open_session(data: bytes) -> tuple[str, int]:
    name, stamp_us = json.loads(data)
    return name, stamp_us


def encode_loaded(request: int, records: Sequence[bytes] | None) -> bytes:
    head = struct.pack(">QB", request, records is not None)
    return head + _join(records or ())


def decode_loaded(data: bytes) -> tuple[int, list[bytes] | None]:
    request, readable = struct.unpack_from(">QB", data)
    return request, list(_split(data[9:])) if readable else None


def encode_numbers(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)


def decode_numbers(data: bytes, count: int) -> tuple[int, ...]:
    return struct.unpack_from(f">{count}q", data)


def encode_snapshot_part(request: int, data: bytes | None, size: int) -> bytes:
    return encode_numbers(request, size, int(data is not None)) + (data or b"")


def decode_snapshot_part(raw: bytes) -> tuple[int, bytes | None, int]:
    request, size, there = decode_numbers(raw, 3)
    return request, raw[24:] if there else None, size


def _join(parts: Iterable[bytes]) -> bytes:
    return b"".join(piece for part in parts for piece in (_SIZE.pack(len(part)), part))


def _split(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size + size
        if at > len(data):
            raise ValueError("cut short")
        yield data[at - size : at]
