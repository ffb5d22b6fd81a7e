"""Log packets: messages of a session, in the body of an ordinary packet.

    u8 form     4 messages, 5 the opening of a named session
    u64         session
    u64         number of the first message in the session
    u64         what the wall clock of the sender showed, in microseconds
    rest        an ordinary body (forms 1 and 2, or 3 for a piece of a large message); the name

All members see the same packets in the same order and decide alike which of them make sense.
"""

import struct
from hashlib import blake2b

from roundelay.core.ids import NodeId, Packet, is_name
from roundelay.core.log import NAMED
from roundelay.core.value import value
from roundelay.group.assembler import Assembler
from roundelay.group.body import LOG, LOG_OPENING, MIXED, PIECE, SAME, pack, unpack
from roundelay.wire.primitives import I64_MAX

MESSAGES, OPENING = LOG, LOG_OPENING
"""Forms of the body of a log packet."""

_HEAD = struct.Struct(">BQQQ")
LOG_OVERHEAD_BYTES = _HEAD.size
"""What a log packet has before its ordinary body."""
_SAME_HEAD = struct.Struct(">BI")


@value
class Arrival:
    """A log packet as it was delivered, or a large message put together."""

    sender: NodeId
    incarnation: int
    session: int
    number: int
    count: int
    """0: it opens the session; the body is its name."""
    stamp_us: int
    body: bytes

    @property
    def size(self) -> int:
        """Bytes that it takes in memory, about."""
        return len(self.body) + 200


def named_session(name: str) -> int:
    """The id of the session of that name."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) | NAMED


def wrap(form: int, session: int, number: int, stamp_us: int, body: bytes) -> bytes:
    """The body of a log packet."""
    return b"".join((_HEAD.pack(form, session, number, stamp_us), body))


class Arrivals:
    """Reads the log packets of one view in their order; puts large messages together."""

    def __init__(self, message_bytes_max: int) -> None:
        self._assembler = Assembler(message_bytes_max)

    @property
    def bytes(self) -> int:
        """Of pieces that wait for the rest of their message."""
        return self._assembler.bytes

    def forget(self) -> None:
        """Drop the pieces of the old view: they come again."""
        self._assembler.forget()

    def read(self, packet: Packet) -> Arrival | None:
        """What this packet brings or completes; None for a piece, or what makes no sense."""
        span, body = packet.span, packet.body
        if len(body) < _HEAD.size:
            return None
        form, session, number, stamp_us = _HEAD.unpack_from(body)
        if stamp_us > I64_MAX or number + span.count > I64_MAX:
            return None
        inner, count = body[_HEAD.size :], span.count
        if form == OPENING:
            if count != 1 or not _is_opening(session, inner):
                return None
            count = 0
        elif inner[:1] == _PIECE:
            whole = self._assembler.messages_of(Packet(span, packet.service, inner))
            if not whole:
                return None
            inner = pack(whole)
        elif not is_whole(inner, count):
            return None
        return Arrival(span.node, span.incarnation, session, number, count, stamp_us, inner)


_PIECE = bytes((PIECE,))


def _is_opening(session: int, name: bytes) -> bool:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return False
    return is_name(text) and named_session(text) == session


def is_whole(body: bytes, count: int) -> bool:
    """Whether a body holds so many whole messages, without taking it apart."""
    if not count or len(body) < _SAME_HEAD.size:
        return False
    if body[0] == SAME:
        size: int = _SAME_HEAD.unpack_from(body)[1]
        return len(body) - _SAME_HEAD.size == size * count
    if body[0] != MIXED or len(body) < 1 + 4 * count:
        return False
    total: int = sum(struct.unpack_from(f">{count}I", body, 1))
    return 1 + 4 * count + total == len(body)


def without_first(arrival: Arrival, skipped: int) -> Arrival:
    """The same without so many of its first messages."""
    messages = unpack(arrival.body, arrival.count)
    assert isinstance(messages, tuple), "a whole body"
    return Arrival(
        arrival.sender,
        arrival.incarnation,
        arrival.session,
        arrival.number + skipped,
        arrival.count - skipped,
        arrival.stamp_us,
        pack(messages[skipped:]),
    )
