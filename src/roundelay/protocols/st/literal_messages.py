"""What members say on the wire under the rules of the paper: the transmissions of `messages`, and
the paper's own recovery. All of it goes over the channel.

Numbers of packets for one member begin with 1, as in the paper; in transmissions, which count the
packets before, with 0.
"""

from collections.abc import Mapping
from typing import TypeAlias

from roundelay.core.value import value
from roundelay.protocols.st.messages import Placed, StCodec, Transmission
from roundelay.wire.packet import MEMBERS_MAX
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer

Vector = tuple[int, ...]


@value
class Rst:
    """Its sender has lost something; this is what it expects from each source."""

    epoch: int
    line: Vector

    def __str__(self) -> str:
        return f"epoch {self.epoch}: {show(self.line)}"


@value
class RstPak:
    """The line that its sender proposes."""

    epoch: int
    line: Vector

    def __str__(self) -> str:
        return f"epoch {self.epoch}: {show(self.line)}"


@value
class RstAck:
    """The line and the order of sources that its sender came to, what it expects next from each
    source of the packets for it, and which will be its own next for each member."""

    epoch: int
    line: Vector
    preq: Vector
    pseq: Vector
    order: Vector
    """Members by the arrival of their `RstPak`."""

    def __str__(self) -> str:
        order = ",".join(str(member + 1) for member in self.order)
        return (
            f"epoch {self.epoch}: {show(self.line)} preq {show(self.preq)} "
            f"pseq {show(self.pseq)} order {order}"
        )


@value
class Ret:
    """A packet that somebody lost, again."""

    epoch: int
    transmission: Transmission

    def __str__(self) -> str:
        t = self.transmission
        return f"{t.source + 1}.{t.number}: {t.packet}"


@value
class Ask:
    """Its sender still lacks packets of this source: from this one for it on."""

    epoch: int
    source: int
    number: int

    def __str__(self) -> str:
        return f"epoch {self.epoch}: of {self.source + 1}, from its {self.number} on"


@value
class Abort:
    """The group ends."""

    def __str__(self) -> str:
        return "the group ends"


LiteralMessage: TypeAlias = Placed | Rst | RstPak | RstAck | Ret | Ask | Abort


def show(vector: Vector) -> str:
    return f"<{','.join(map(str, vector))}>"


class LiteralCodec:
    """Messages to bytes and back."""

    tags: Mapping[int, str] = {
        1: "DT",
        2: "RR",
        16: "RST",
        17: "RST_PAK",
        18: "RST_ACK",
        19: "RET",
        20: "ASK",
        21: "ABORT",
    }

    def __init__(self) -> None:
        self._transmissions = StCodec()

    def encode(self, message: LiteralMessage) -> tuple[int, bytes]:
        w = Writer()
        match message:
            case Placed():
                return self._transmissions.encode(message)
            case Rst() | RstPak():
                w.u64(message.epoch)
                _write(w, message.line)
                return 16 + (type(message) is RstPak), w.done()
            case RstAck():
                w.u64(message.epoch)
                for vector in (message.line, message.preq, message.pseq, message.order):
                    _write(w, vector)
                return 18, w.done()
            case Ret():
                _, data = self._transmissions.encode(Placed(0, 0, message.transmission))
                w.u64(message.epoch)
                w.rest(data)
                return 19, w.done()
            case Ask():
                w.u64(message.epoch)
                w.u16(message.source)
                w.u64(message.number)
                return 20, w.done()
            case Abort():
                return 21, b""

    def decode(self, tag: int, data: bytes, start: int) -> LiteralMessage:
        r = Reader(data, start)
        message: LiteralMessage
        match tag:
            case 1 | 2:
                return self._placed(tag, data, start)
            case 16:
                message = Rst(r.u64(I64_MAX), _read(r))
            case 17:
                message = RstPak(r.u64(I64_MAX), _read(r))
            case 18:
                message = RstAck(r.u64(I64_MAX), _read(r), _read(r), _read(r), _read(r))
            case 19:
                return Ret(r.u64(I64_MAX), self._placed(1, data, start + 8).transmission)
            case 20:
                message = Ask(r.u64(I64_MAX), r.u16(), r.u64(I64_MAX))
            case 21:
                message = Abort()
            case _:
                raise WireError(Reason.MALFORMED, f"tag {tag}")
        r.done()
        return message

    def _placed(self, tag: int, data: bytes, start: int) -> Placed:
        message = self._transmissions.decode(tag, data, start)
        assert isinstance(message, Placed)
        return message


def _write(w: Writer, vector: Vector) -> None:
    w.u16(len(vector))
    for number in vector:
        w.u64(number)


def _read(r: Reader) -> Vector:
    return r.many(lambda: r.u64(I64_MAX), MEMBERS_MAX)
