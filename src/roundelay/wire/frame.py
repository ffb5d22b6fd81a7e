"""The frame: one datagram.

     0   2  magic `RD`
     2   4  CRC-32 of everything behind it; 0 and not read where the frame is sealed
     6   1  version
     7   1  tag: the message type, numbered by the core's codec; 254 and 255 are not for the core
     8   4  size of the whole frame
    12   8  Lamport clock of the sender
    20   8  frame number: the sender's transmissions counted from 1, per incarnation
    28   2  length of the origin
    30   .  origin: group, node, incarnation, view
     .   .  body, by the core's codec

The origin is the same in every frame that a node sends in one view, so both ends keep its parsed
form by its bytes and a frame costs one struct call and one look-up.

Zeros may follow the frame in its datagram: Linux sends and receives datagrams with one call only if
they have one size, so frames that leave together are filled up (`filled_up`).
"""

import struct
from collections.abc import Sequence
from typing import Generic, TypeVar

from roundelay.core.checksum import crc32
from roundelay.core.contract import Codec, Origin
from roundelay.core.ids import NODE_NAME_BYTES_MAX, ViewId
from roundelay.core.value import value
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer

M = TypeVar("M")

MAGIC = b"RD"
SEALED_MAGIC = b"RS"
"""Of a datagram that contains a frame under a seal: see `roundelay.sealing`."""
VERSION = 3
PROBE_TAG = 255
"""Of frames that no core is given: nodes look for each other with them."""
PROOF_TAG = 254
"""Of frames that no core is given: nodes with a key prove with them that they are alive."""
FRAME_BYTES_MAX = 65_507
"""The largest UDP datagram over IPv4."""

FILL_SHARE = 3
"""Zeros are at most this part, a third, of what is sent. Too large: more datagrams cost a call of
the system each; too small: the network carries zeros."""

_HEADER = struct.Struct(">2sIBBIQQH")
_CHECKED = struct.Struct(">BBIQQH")
_CHECKED_FROM = _HEADER.size - _CHECKED.size
TAG_AT = 7
ORIGIN_AT = _HEADER.size
"""Where the origin begins."""
_UNCHECKED = bytes(4)
"""The checksum of a frame that has a seal instead."""
_ORIGINS_MAX = 1024


@value
class Frame(Generic[M]):
    """A datagram that passed every check."""

    origin: Origin
    lamport: int
    number: int
    """Counts the frames of one life of their sender, from 1."""
    tag: int
    message: M
    size: int


def encode(
    origin: bytes, tag: int, lamport: int, number: int, body: bytes, *, sealed: bool = False
) -> bytes:
    """The datagram; `origin` comes from `encode_origin`. A frame that will be `sealed` has no
    checksum."""
    size = _HEADER.size + len(origin) + len(body)
    if size > FRAME_BYTES_MAX:
        raise ValueError(f"a frame of {size} bytes; the limit is {FRAME_BYTES_MAX}")
    checked = _CHECKED.pack(VERSION, tag, size, lamport, number, len(origin))
    if sealed:
        return b"".join((MAGIC, _UNCHECKED, checked, origin, body))
    crc = crc32(body, crc32(origin, crc32(checked)))
    return b"".join((MAGIC, crc.to_bytes(4), checked, origin, body))


def decode(
    data: bytes, codec: Codec[M], origins: dict[bytes, Origin], *, sealed: bool = False
) -> Frame[M]:
    """The frame in `data`, or WireError. `origins` is a cache that the caller keeps. The checksum
    of a frame that was `sealed` is not read."""
    if len(data) < _HEADER.size:
        # Too short to tell versions apart; only the magic decides whose it is.
        short = data[:2] == MAGIC[: len(data)] and data
        raise WireError(Reason.TRUNCATED if short else Reason.FOREIGN)
    magic, crc, version, tag, size, lamport, number, origin_size = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise WireError(Reason.SEALED if magic == SEALED_MAGIC else Reason.FOREIGN)
    if version != VERSION:
        raise WireError(Reason.VERSION, f"version {version}, this is {VERSION}")
    if size > len(data):
        raise WireError(Reason.TRUNCATED, f"{len(data)} bytes of {size}")
    if size < len(data):
        if len(data) > FRAME_BYTES_MAX or data.count(0, size) != len(data) - size:
            raise WireError(Reason.OVERSIZED, f"{len(data)} bytes, declared {size}")
        data = data[:size]
    elif size > FRAME_BYTES_MAX:
        raise WireError(Reason.OVERSIZED, f"{size} bytes")
    if not sealed:
        # To copy a small frame is cheaper than to look at a part of it.
        checked = data[_CHECKED_FROM:] if size < 4096 else memoryview(data)[_CHECKED_FROM:]
        if crc32(checked) != crc:
            raise WireError(Reason.CHECKSUM)
    body_at = _HEADER.size + origin_size
    if body_at > size:
        raise WireError(Reason.MALFORMED, "the origin is longer than the frame")
    if lamport > I64_MAX or number > I64_MAX:
        raise WireError(Reason.MALFORMED, "a counter past 63 bits")
    raw_origin = data[_HEADER.size : body_at]
    origin = origins.get(raw_origin) or learn_origin(raw_origin, origins)
    return Frame(origin, lamport, number, tag, codec.decode(tag, data, body_at), size)


def filled_up(frames: Sequence[bytes]) -> Sequence[bytes]:
    """The same frames in their order, with zeros behind those that are smaller than the largest:
    behind all, or if that took too many zeros, behind those that are a little smaller. The last one
    stays as it is, as it may be smaller anyway."""
    sizes = [*map(len, frames)]
    last = sizes.pop()
    largest = max(sizes, default=last)
    if min(sizes, default=last) == largest:
        return frames
    whole = len(sizes) * largest
    share = largest // FILL_SHARE if (whole - sum(sizes)) * FILL_SHARE > whole else largest
    return [
        *(
            frame.ljust(largest, b"\0") if largest - len(frame) <= share else frame
            for frame in frames[:-1]
        ),
        frames[-1],
    ]


def encode_origin(origin: Origin) -> bytes:
    """The part of the header that stays the same while its sender stays in one view."""
    w = Writer()
    for name in (origin.group, origin.node, origin.view.rep if origin.view else ""):
        if len(name.encode()) > NODE_NAME_BYTES_MAX:
            raise ValueError(f"the name {name!r} is longer than {NODE_NAME_BYTES_MAX} bytes")
    w.text(origin.group)
    w.text(origin.node)
    w.u64(origin.incarnation)
    w.flag(origin.view is not None)
    if origin.view is not None:
        w.u64(origin.view.seq)
        w.text(origin.view.rep)
    return w.done()


def learn_origin(raw: bytes, origins: dict[bytes, Origin]) -> Origin:
    """The origin with these bytes, or WireError; it is put into the cache."""
    origin = _decode_origin(raw)
    if len(origins) >= _ORIGINS_MAX:
        origins.clear()  # Bounded: strangers may send any number of origins.
    origins[raw] = origin
    return origin


def _decode_origin(raw: bytes) -> Origin:
    r = Reader(raw)
    group, node = r.name(), r.name()
    incarnation = r.u64(I64_MAX)
    view = ViewId(r.u64(I64_MAX), r.name()) if r.flag() else None
    r.done()
    return Origin(group, node, incarnation, view)


def origin_in(data: bytes) -> Origin:
    """The origin of a frame, or WireError. Its other fields are not checked."""
    if len(data) < _HEADER.size:
        raise WireError(Reason.TRUNCATED)
    size: int = _HEADER.unpack_from(data)[-1]
    return _decode_origin(data[_HEADER.size : _HEADER.size + size])


def tag_of(data: bytes) -> int:
    """The tag of a frame, which is at least a header long."""
    return data[TAG_AT]


def is_probe(data: bytes) -> bool:
    """Whether a datagram that makes no sense to the core is a probe; it may still be a bad one."""
    return len(data) > TAG_AT and data[TAG_AT] == PROBE_TAG


def version_of(data: bytes) -> int:
    """The version that a datagram claims to be of, which is at least a header long."""
    return data[_CHECKED_FROM]


def key_id_of(data: bytes) -> bytes:
    """The id of the key that a sealed datagram claims to be of, unchecked."""
    return data[4:12]


def group_of(data: bytes) -> bytes:
    """The name of the group that a datagram claims to be of, unchecked; empty if it has none."""
    at = _HEADER.size
    size = data[at] if len(data) > at else 0
    return data[at + 1 : at + 1 + size]
