"""What links say on the wire. Members are numbered by their place in the view.

The content of a Data is the engine's affair: a packet, or a packet with a tag of the engine's. The
codec is made with a writer and a reader for it.

    DATA       u16 sender, u64 number, u64 stable, received, the content up to the end
    HEARTBEAT  received
    REQUEST    u16 sender, numbers

`received` and `numbers` are a u16, how many there are, and a u64 each.
"""

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Generic, TypeAlias, TypeVar

from roundelay.core.value import value
from roundelay.wire.packet import MEMBERS_MAX
from roundelay.wire.primitives import I64_MAX, Reason, WireError

P = TypeVar("P")

_DATA = struct.Struct(">HQQ")
_REQUEST = struct.Struct(">H")
_COUNT = struct.Struct(">H")

REQUEST_MAX = 256
"""Most numbers in one Request."""


@value
class Data(Generic[P]):
    """One content at its place, from its sender or from whoever was asked for it."""

    sender: int
    """The member that sent it first."""
    number: int
    """Its place among that sender's in this view: 1, 2, 3 ..."""
    stable: int
    """Every member has that sender's contents up to this number."""
    received: tuple[int, ...]
    """Whoever sends this frame has each member's contents up to these numbers."""
    content: P

    def __str__(self) -> str:
        return f"{self.number}: {self.content} has {_numbers(self.received)}"


@value
class Heartbeat:
    """A sign of life: what its sender has, and so how much it has sent."""

    received: tuple[int, ...]

    def __str__(self) -> str:
        return f"has {_numbers(self.received)}"


@value
class Request:
    """Asks for contents that somebody lacks."""

    sender: int
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return f"lacks {_numbers(self.numbers)} of member {self.sender}"


Message: TypeAlias = Data[P] | Heartbeat | Request


class LinkCodec(Generic[P]):
    """Messages of a link to bytes and back, given how its content is written and read."""

    tags: Mapping[int, str] = {1: "DATA", 2: "HEARTBEAT", 3: "REQUEST"}

    def __init__(self, write: Callable[[P, bytes], bytes], read: Callable[[bytes, int], P]) -> None:
        """`write` gives a content behind the bytes that go before it. `read` gives the content that
        is all of `data[start:]`, or WireError: any bytes may come there."""
        self._write = write
        self._read = read

    def encode(self, message: Message[P]) -> tuple[int, bytes]:
        if type(message) is Data:
            received = message.received
            head = _DATA.pack(message.sender, message.number, message.stable)
            return 1, self._write(message.content, head + _pack_numbers(received))
        if type(message) is Heartbeat:
            return 2, _pack_numbers(message.received)
        assert type(message) is Request
        return 3, _REQUEST.pack(message.sender) + _pack_numbers(message.numbers)

    def decode(self, tag: int, data: bytes, start: int) -> Message[P]:
        try:
            if tag == 1:
                sender, number, stable = _DATA.unpack_from(data, start)
                received, end = _unpack_numbers(data, start + _DATA.size, MEMBERS_MAX)
                if not stable < number <= I64_MAX:
                    raise WireError(Reason.MALFORMED, f"number {number} above {stable}")
                return Data(sender, number, stable, received, self._read(data, end))
            if tag == 2:
                received, end = _unpack_numbers(data, start, MEMBERS_MAX)
                _check_end(data, end)
                return Heartbeat(received)
            if tag == 3:
                (sender,) = _REQUEST.unpack_from(data, start)
                numbers, end = _unpack_numbers(data, start + _REQUEST.size, REQUEST_MAX)
                _check_end(data, end)
                return Request(sender, numbers)
        except struct.error:
            raise WireError(Reason.MALFORMED, "the message ends within a number") from None
        raise WireError(Reason.MALFORMED, f"tag {tag}")

    def pack(self, content: P) -> bytes:
        """A content alone, as it is exchanged at a view change."""
        return self._write(content, b"")

    def unpack(self, data: bytes) -> P:
        return self._read(data, 0)


def header_bytes(nodes: int) -> int:
    """What a link adds to a content, in a group of so many."""
    return _DATA.size + _COUNT.size + 8 * nodes


@lru_cache(maxsize=MEMBERS_MAX + 1)
def _vector(count: int) -> struct.Struct:
    return struct.Struct(f">{count}Q")


def _pack_numbers(numbers: tuple[int, ...]) -> bytes:
    count = len(numbers)
    return _COUNT.pack(count) + _vector(count).pack(*numbers)


def _unpack_numbers(data: bytes, start: int, most: int) -> tuple[tuple[int, ...], int]:
    """The numbers, and where what follows them begins; struct.error if the bytes end before."""
    (count,) = _COUNT.unpack_from(data, start)
    if count > most:
        raise WireError(Reason.MALFORMED, f"{count} where at most {most} may be")
    form = _vector(count)
    at = start + _COUNT.size
    numbers: tuple[int, ...] = form.unpack_from(data, at)
    if count and max(numbers) > I64_MAX:
        raise WireError(Reason.MALFORMED, "a number past 63 bits")
    return numbers, at + form.size


def _check_end(data: bytes, end: int) -> None:
    if end != len(data):
        raise WireError(Reason.MALFORMED, f"{len(data) - end} bytes too many")


def _numbers(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))
