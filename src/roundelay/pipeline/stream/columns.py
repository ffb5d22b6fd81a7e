"""Packets of a journal as Arrow batches, a packet at a time and not an entry at a time.

The payloads of a packet lie one behind the other, as in an Arrow array of binary values: they are
copied once. What is the same for all entries of a packet is repeated by numpy.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from roundelay.group.body import MIXED, PIECE, PIECE_OVERHEAD_BYTES, SAME
from roundelay.journal.reader import Packet
from roundelay.pipeline.errors import PipelineError

BATCH_ROWS = 32_768
"""Rows at which a batch is complete. Fewer: Spark's cost for each batch is felt; more: a task needs
more memory, and later stages wait for longer."""
BATCH_BYTES = 16 << 20
"""Bytes of payloads at which it is complete, too."""

TYPES = {
    "index": "BIGINT",
    "term": "STRING",
    "sender": "STRING",
    "incarnation": "BIGINT",
    "session": "STRING",
    "number": "BIGINT",
    "stamp": "TIMESTAMP",
    "payload": "BINARY",
}
"""The columns, and what Spark calls their types."""

_SAME = struct.Struct(">BI")
_U32 = np.dtype(">u4")

Decode = Callable[[Any, Any], Any]
"""Makes the column of payloads from binary values and the indexes of their entries."""


def batches(packets: Iterable[Packet], schema: Any, decode: Decode) -> Iterator[Any]:
    """The entries in these packets, which follow one another or leave out whole ranges of indexes,
    as record batches of this Arrow schema."""
    gathered: list[Packet] = []
    rows = size = 0
    for packet in packets:
        gathered.append(packet)
        rows += packet.count
        size += len(packet.body)
        if rows >= BATCH_ROWS or size >= BATCH_BYTES:
            yield _batch(gathered, rows, schema, decode)
            gathered, rows, size = [], 0, 0
    if gathered:
        yield _batch(gathered, rows, schema, decode)


def _batch(packets: list[Packet], rows: int, schema: Any, decode: Decode) -> Any:
    heads = [packet.head for packet in packets]
    counts = np.array([packet.count for packet in packets], np.int64)
    starts = np.cumsum(counts) - counts
    within = np.arange(rows, dtype=np.int64)

    def each(values: list[int]) -> Any:
        return np.repeat(np.array(values, np.int64), counts)

    def climbing(values: list[int]) -> Any:
        return np.repeat(np.array(values, np.int64) - starts, counts) + within

    def words(values: list[Any], spelled: Callable[[Any], str]) -> Any:
        codes = {one: code for code, one in enumerate(dict.fromkeys(values))}
        spellings = pa.array(map(spelled, codes), pa.string())
        of_rows = np.repeat(np.array([codes[one] for one in values], np.int32), counts)
        return spellings.take(pa.array(of_rows))

    indexes = climbing([packet.index for packet in packets])
    made: dict[str, Callable[[], Any]] = {
        "index": lambda: pa.array(indexes),
        "term": lambda: words([head.term for head in heads], str),
        "sender": lambda: words([head.sender for head in heads], str),
        "incarnation": lambda: pa.array(each([head.incarnation for head in heads])),
        "session": lambda: words([head.session for head in heads], "{:016x}".format),
        "number": lambda: pa.array(climbing([p.head.number + p.skip for p in packets])),
        "stamp": lambda: pa.array(each([head.stamp_us for head in heads])).view(
            schema.field("stamp").type
        ),
        "payload": lambda: decode(_payloads(packets, rows), indexes),
    }
    return pa.RecordBatch.from_arrays([made[name]() for name in schema.names], schema=schema)


def _payloads(packets: list[Packet], rows: int) -> Any:
    """All payloads as one array of binary values."""
    parts, sizes = [], []
    for packet in packets:
        part, size = _part(packet)
        parts.append(part)
        sizes.append(size)
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(np.concatenate(sizes), out=offsets[1:])
    data = pa.py_buffer(b"".join(parts))
    if offsets[-1] > np.iinfo(np.int32).max:
        raise PipelineError(
            f"the entries from {packets[0].index} on have {offsets[-1]} bytes, which is too much "
            "for one batch of Spark"
        )
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), data]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def _part(packet: Packet) -> tuple[memoryview, Any]:
    """The payloads of a packet that are meant, and their sizes."""
    body, skip, count, whole = packet.body, packet.skip, packet.count, packet.head.count
    form = body[0] if len(body) else 0
    if form == SAME and len(body) >= _SAME.size:
        size = _SAME.unpack_from(body)[1]
        if len(body) == _SAME.size + size * whole:
            start = _SAME.size + skip * size
            return body[start : start + count * size], np.full(count, size, np.int64)
    elif form == MIXED and len(body) >= 1 + 4 * whole:
        sizes = np.frombuffer(body, _U32, whole, 1).astype(np.int64)
        start = 1 + 4 * whole
        if len(body) == start + int(sizes.sum()):
            start += int(sizes[:skip].sum())
            sizes = sizes[skip : skip + count]
            return body[start : start + int(sizes.sum())], sizes
    elif form == PIECE and whole == 1 and len(body) >= PIECE_OVERHEAD_BYTES:
        part = body[PIECE_OVERHEAD_BYTES:]
        return part, np.array([len(part)], np.int64)
    raise PipelineError(
        f"entries from {packet.head.index} on make no sense; look at the journal with: roundelay "
        "journal verify"
    )
