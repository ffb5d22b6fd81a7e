"""What members say on the wire. Members are numbered by their place in the view, from 0 on the
wire and from 1 where people read."""

import struct
from collections.abc import Mapping
from typing import TypeAlias, assert_never

from roundelay.core.ids import Packet
from roundelay.core.value import value
from roundelay.wire.packet import decode_packet, encode_packet
from roundelay.wire.primitives import I64_MAX, U16_MAX, Reader, Reason, WireError, Writer

Uid: TypeAlias = tuple[int, int]
"""A packet: its sender, and its number among that sender's in this view, from 1 on."""

NOBODY = U16_MAX
"""Instead of a member: no token is handed on."""

BATCH_MAX = 1024
"""Most packets that one acknowledgment can order."""
REQUEST_MAX = 64
"""Most things of each kind that one request asks for."""

_MSG = struct.Struct(">HQQ")
_ACK = struct.Struct(">HQHQH")
_UID = struct.Struct(">HQ")


@value
class Msg:
    """A packet that wants a number, from its sender or from whoever was asked for it."""

    sender: int
    number: int
    held: int
    """Its sender holds everything up to this global number."""
    packet: Packet

    def __str__(self) -> str:
        return f"{show_uid((self.sender, self.number))} holding {self.held}: {self.packet}"


@value
class Ack:
    """The order of some packets, and who has the token next."""

    holder: int
    """Who ordered them. It holds everything up to `last`."""
    uids: tuple[Uid, ...]
    """None, if the token is only passed on."""
    last: int
    """The global number of the last of them; without any, what the holder holds."""
    next: int = NOBODY
    """Who has the token now. Nobody, if this is a copy for somebody who asked: it tells an order
    and never hands on a token."""
    hop: int = 0
    """Counts the transfers of the token, also those that order nothing. 0 in a copy."""

    def __str__(self) -> str:
        names = " ".join(map(show_uid, self.uids)) or "null"
        way = f"to {self.next + 1} hop {self.hop}" if self.next != NOBODY else "again"
        return f"{self.last}: {names} by {self.holder + 1} {way}"


@value
class Req:
    """Asks whoever has the token for what its sender lacks."""

    held: int
    """Its sender holds everything up to this global number."""
    msgs: tuple[Uid, ...]
    acks: tuple[int, ...]
    """Global numbers whose packets it does not know."""

    def __str__(self) -> str:
        wanted = [*map(show_uid, self.msgs), *(f"ack {number}" for number in self.acks)]
        return f"holding {self.held} lacks {', '.join(wanted)}"


Message: TypeAlias = Msg | Ack | Req


class DtpCodec:
    """Messages to bytes and back."""

    tags: Mapping[int, str] = {1: "MSG", 2: "ACK", 3: "REQ"}

    def encode(self, message: Message) -> tuple[int, bytes]:
        if isinstance(message, Msg):
            head = _MSG.pack(message.sender, message.number, message.held)
            return 1, encode_packet(message.packet, head)
        w = Writer()
        match message:
            case Ack():
                count = len(message.uids)
                w.fields(_ACK, message.holder, message.last, message.next, message.hop, count)
                for uid in message.uids:
                    write_uid(w, uid)
                return 2, w.done()
            case Req():
                w.u64(message.held)
                w.u16(len(message.msgs))
                for uid in message.msgs:
                    write_uid(w, uid)
                w.u16(len(message.acks))
                for number in message.acks:
                    w.u64(number)
                return 3, w.done()
            case _:
                assert_never(message)

    def decode(self, tag: int, data: bytes, start: int) -> Message:
        if tag == 1:
            packet = decode_packet(data, start + _MSG.size)  # Which refuses what is too short.
            sender, number, held = _MSG.unpack_from(data, start)
            _in_range(number and number <= I64_MAX and held <= I64_MAX)
            return Msg(sender, number, held, packet)
        r = Reader(data, start)
        message: Ack | Req
        match tag:
            case 2:
                holder, last, next_, hop, count = r.fields(_ACK)
                _in_range(count <= min(last, BATCH_MAX) and last <= I64_MAX and hop <= I64_MAX)
                uids = tuple(read_uid(r) for _ in range(count))
                message = Ack(holder, uids, last, next_, hop)
            case 3:
                held = r.u64(I64_MAX)
                msgs = r.many(lambda: read_uid(r), REQUEST_MAX)
                message = Req(held, msgs, r.many(lambda: r.u64(I64_MAX), REQUEST_MAX))
            case _:
                raise WireError(Reason.MALFORMED, f"tag {tag}")
        r.done()
        return message


def write_uid(w: Writer, uid: Uid) -> None:
    w.fields(_UID, *uid)


def read_uid(r: Reader) -> Uid:
    sender, number = r.fields(_UID)
    _in_range(number and number <= I64_MAX)
    return sender, number


def _in_range(sane: object) -> None:
    if not sane:
        raise WireError(Reason.MALFORMED, "a number out of range")


def show_uid(uid: Uid) -> str:
    """A packet as people read it."""
    return f"{uid[0] + 1}.{uid[1]}"
