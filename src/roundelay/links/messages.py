"""What links say on the wire. Members are numbered by their place in the view.

The content of a Data is the engine's affair: a packet, or a packet with a tag of the engine's. The
codec is made with a writer and a reader for it.
"""

from collections.abc import Callable, Mapping
from typing import Generic, TypeAlias, TypeVar, assert_never

from roundelay.core.value import value
from roundelay.wire.packet import MEMBERS_MAX
from roundelay.wire.primitives import I64_MAX, U16_MAX, Reader, Reason, WireError, Writer

P = TypeVar("P")

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

    def __init__(self, write: Callable[[Writer, P], None], read: Callable[[Reader], P]) -> None:
        self._write = write
        self._read = read

    def encode(self, message: Message[P]) -> tuple[int, bytes]:
        w = Writer()
        match message:
            case Data():
                w.u16(message.sender)
                w.u64(message.number)
                w.u64(message.stable)
                _write_numbers(w, message.received)
                self._write(w, message.content)
                return 1, w.done()
            case Heartbeat():
                _write_numbers(w, message.received)
                return 2, w.done()
            case Request():
                w.u16(message.sender)
                _write_numbers(w, message.numbers)
                return 3, w.done()
            case _:
                assert_never(message)

    def decode(self, tag: int, data: bytes, start: int) -> Message[P]:
        r = Reader(data, start)
        message: Message[P]
        match tag:
            case 1:
                sender, number, stable = r.u16(), r.u64(I64_MAX), r.u64(I64_MAX)
                received = _read_numbers(r, MEMBERS_MAX)
                if stable >= number or not number:
                    raise WireError(Reason.MALFORMED, f"number {number} above {stable}")
                message = Data(sender, number, stable, received, self._read(r))
            case 2:
                message = Heartbeat(_read_numbers(r, MEMBERS_MAX))
            case 3:
                message = Request(r.u16(U16_MAX), _read_numbers(r, REQUEST_MAX))
            case _:
                raise WireError(Reason.MALFORMED, f"tag {tag}")
        r.done()
        return message

    def pack(self, content: P) -> bytes:
        """A content alone, as it is exchanged at a view change."""
        w = Writer()
        self._write(w, content)
        return w.done()

    def unpack(self, data: bytes) -> P:
        r = Reader(data)
        content = self._read(r)
        r.done()
        return content


def _write_numbers(w: Writer, numbers: tuple[int, ...]) -> None:
    w.u16(len(numbers))
    for number in numbers:
        w.u64(number)


def _read_numbers(r: Reader, most: int) -> tuple[int, ...]:
    return r.many(lambda: r.u64(I64_MAX), most)


def _numbers(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))
