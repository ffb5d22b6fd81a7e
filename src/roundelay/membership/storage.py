"""What survives a crash: the largest ring number this node may have used.

Ring numbers are never used twice, or a view id could have two memberships. So the number is on disk
before a frame carries it, and where the disk cannot be trusted a number is taken that is larger
than any before: the wall clock's.
"""

import struct

from roundelay.core.checksum import crc32
from roundelay.core.contract import Boot

STEP = 4
"""Ring numbers are multiples of this; the numbers between them name transitional views."""

_FORM = struct.Struct(">4sQQ")
_MAGIC = b"RDS1"


def pack(seq: int, incarnation: int) -> bytes:
    """Stable storage that holds this ring number."""
    body = _FORM.pack(_MAGIC, seq, incarnation)
    return body + crc32(body).to_bytes(4)


def unpack(stored: bytes) -> tuple[int, int] | None:
    """Ring number and incarnation, or None if the bytes are torn or not ours."""
    if len(stored) != _FORM.size + 4:
        return None
    body, check = stored[:-4], stored[-4:]
    magic, seq, incarnation = _FORM.unpack(body)
    if magic != _MAGIC or crc32(body) != int.from_bytes(check):
        return None
    return int(seq), int(incarnation)


def last_seq(boot: Boot) -> int:
    """A ring number that is at least every one this node has used."""
    if boot.stored is None and boot.incarnation == 0:
        return 0
    found = unpack(boot.stored) if boot.stored is not None else None
    return found[0] if found is not None else STEP * boot.wall_us
