"""What survives a crash: the largest ring number this node may have used, and its standing.

Ring numbers are never used twice, or one view id could stand for two memberships. So the number is
on disk before a frame carries it, and a node whose storage is missing, torn or foreign takes its
number from the wall clock. The standing is what `membership.primary` must remember; such a node has
lost it, and has no vote.
"""

from roundelay.core.checksum import crc32
from roundelay.core.contract import Boot
from roundelay.core.value import value
from roundelay.membership.codec import read_primary, write_primary
from roundelay.membership.messages import ATTEMPTS_MAX, SEQ_MAX, STEP
from roundelay.membership.primary import Standing
from roundelay.wire.primitives import Reader, WireError, Writer

WALL_US_MAX = 2**52
"""Microseconds since 1970. A clock past this, which is the year 2112, counts as this: a ring number
made from a later time would leave no room for further ones."""

_MAGIC = b"RDS2"


@value
class Stored:
    """Stable storage as it was read back."""

    seq: int
    """At least every ring number that this node has used."""
    standing: Standing
    kept: bool
    """Whether storage was found whole."""


def pack(seq: int, standing: Standing) -> bytes:
    """The bytes to keep."""
    w = Writer()
    w.rest(_MAGIC)
    w.u64(seq)
    w.flag(standing.able)
    w.flag(standing.last is not None)
    if standing.last is not None:
        write_primary(w, standing.last)
    w.u16(len(standing.attempts))
    for attempt in standing.attempts:
        write_primary(w, attempt)
    body = w.done()
    return body + crc32(body).to_bytes(4)


def unpack(stored: bytes) -> tuple[int, Standing] | None:
    """Ring number and standing, or None if the bytes are torn or not ours."""
    body, check = stored[:-4], stored[-4:]
    if body[:4] != _MAGIC or len(check) < 4 or crc32(body) != int.from_bytes(check):
        return None
    r = Reader(body, 4)
    try:
        seq, able = r.u64(SEQ_MAX), r.flag()
        last = read_primary(r) if r.flag() else None
        attempts = r.many(lambda: read_primary(r), ATTEMPTS_MAX)
        r.done()
    except WireError:
        return None
    return seq, Standing(able, last, attempts)


def read_storage(boot: Boot) -> Stored:
    """What a node starts with. Its next views are later than the terms of its log, also if the
    number that was stored is gone and the clock is wrong."""
    found = unpack(boot.stored) if boot.stored is not None else None
    least = _after_log(boot)
    if found is not None:
        return Stored(max(found[0], least), found[1], kept=True)
    first = boot.stored is None and boot.incarnation == 0
    seq = 0 if first else STEP * min(boot.wall_us, WALL_US_MAX)
    return Stored(max(seq, least), Standing(), kept=False)


def _after_log(boot: Boot) -> int:
    """The smallest ring number that is not smaller than the last term of the log."""
    marks = () if boot.journal is None else boot.journal.marks
    return -(-marks[-1].term.seq // STEP) * STEP if marks else 0
