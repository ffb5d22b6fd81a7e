"""What members say on the wire. Members are numbered by their place in the view, from 0 on the
wire and from 1 where people read.

*Transmissions* go over the one channel, so that all who hear two of them hear them in the same
order. All else goes directly from member to member, and belongs to a recovery or to the channel
itself.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias, assert_never

from roundelay.core.ids import Packet
from roundelay.core.value import value
from roundelay.wire.packet import MEMBERS_MAX, decode_packet, encode_packet
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer

PART_BYTES = 1200
"""Most bytes of a list that one frame carries."""
PARTS_MAX = 4096
"""Most parts of a list."""
WANTED_MAX = 32
"""Most packets that one frame asks for."""

_HEAD = struct.Struct(">HQQI")
_PLACE = struct.Struct(">QQ")
_NAME = struct.Struct(">HQ")
_PART = struct.Struct(">QHHH")


class Name(NamedTuple):
    """One packet: its source, and its number among all that this source sent in the view."""

    source: int
    number: int

    def __str__(self) -> str:
        return f"{self.source + 1}.{self.number}"


@value
class Transmission:
    """A packet (DT), or the word that its source is ready to receive (RR)."""

    source: int
    epoch: int
    """How many recoveries there were before."""
    number: int
    """TSEQ: the number of the packet. Of an RR: that of the next packet."""
    counts: tuple[int, ...]
    """PSEQ, by member: how many packets for that member its source sent before."""
    ack: tuple[int, ...]
    """By source: its packets below this number were heard, or are not for this member."""
    pack: tuple[int, ...]
    """By source: of those for this member, the ones below this number are pre-acknowledged ..."""
    done: tuple[int, ...]
    """... and those below this one delivered."""
    room: int
    """Packets that its source has room for."""
    packet: Packet | None = None

    def __str__(self) -> str:
        ack = ",".join(map(str, self.ack))
        about = f"{self.number}" if self.packet is None else f"{self.number}: {self.packet}"
        return f"{self.source + 1} epoch {self.epoch} {about} ack {ack}"


@value
class Placed:
    """A transmission at its place on the channel."""

    hop: int
    """Its place, where a reflector gives it one; 0 on a channel that needs none."""
    turn: int
    """Which of its source's transmissions it is; 0 as above."""
    transmission: Transmission

    def __str__(self) -> str:
        place = f"{self.hop}: " if self.hop else ""
        return f"{place}{self.transmission}"


@value
class Raised:
    """A transmission on its way to the reflector."""

    turn: int
    """Counts the transmissions of its source, from 1: the reflector takes them in this order."""
    transmission: Transmission

    def __str__(self) -> str:
        return f"{self.turn}: {self.transmission}"


@value
class Taken:
    """From the reflector: it has all transmissions up to this turn."""

    turn: int

    def __str__(self) -> str:
        return str(self.turn)


@value
class Poll:
    """Asks a member to say that it is ready."""


@value
class Reset:
    """RST: something was lost, and the packets of this epoch need an order."""

    epoch: int

    def __str__(self) -> str:
        return f"epoch {self.epoch}"


@value
class ListPart:
    """A part of the list (PAK) that a member made when it stopped: see `lists`."""

    epoch: int
    member: int
    part: int
    parts: int
    data: bytes

    def __str__(self) -> str:
        return f"of {self.member + 1}, epoch {self.epoch}, part {self.part + 1} of {self.parts}"


@value
class Want:
    """Asks for lists of an epoch, and for packets."""

    epoch: int
    lists: tuple[int, ...]
    packets: tuple[Name, ...] = ()

    def __str__(self) -> str:
        lists = [f"the list of {member + 1}" for member in self.lists]
        return f"epoch {self.epoch}: {', '.join([*lists, *map(str, self.packets)])}"


@value
class Again:
    """RET: a packet that somebody lacks."""

    epoch: int
    name: Name
    packet: Packet

    def __str__(self) -> str:
        return f"{self.name}: {self.packet}"


@value
class Done:
    """These members have all packets of this epoch that are for them, its sender among them."""

    epoch: int
    members: tuple[int, ...]

    def __str__(self) -> str:
        return f"epoch {self.epoch}: {','.join(str(member + 1) for member in self.members)}"


Message: TypeAlias = Placed | Raised | Taken | Poll | Reset | ListPart | Want | Again | Done


class StCodec:
    """Messages to bytes and back."""

    tags: Mapping[int, str] = {
        1: "DT",
        2: "RR",
        3: "UPDT",
        4: "UPRR",
        5: "TAKEN",
        6: "POLL",
        7: "RST",
        8: "PAK",
        9: "WANT",
        10: "RET",
        11: "DONE",
    }

    def encode(self, message: Message) -> tuple[int, bytes]:
        match message:
            case Placed():
                sent = message.transmission
                place = _PLACE.pack(message.hop, message.turn)
                return 1 + (sent.packet is None), _encode(sent, place)
            case Raised():
                sent = message.transmission
                place = _PLACE.pack(0, message.turn)
                return 3 + (sent.packet is None), _encode(sent, place)
            case Again():
                head = Writer()
                head.u64(message.epoch)
                head.fields(_NAME, *message.name)
                return 10, encode_packet(message.packet, head.done())
        w = Writer()
        match message:
            case Taken():
                w.u64(message.turn)
                return 5, w.done()
            case Poll():
                return 6, b""
            case Reset():
                w.u64(message.epoch)
                return 7, w.done()
            case ListPart():
                w.fields(_PART, message.epoch, message.member, message.part, message.parts)
                w.rest(message.data)
                return 8, w.done()
            case Want():
                w.u64(message.epoch)
                _write_places(w, message.lists)
                w.u16(len(message.packets))
                for name in message.packets:
                    w.fields(_NAME, *name)
                return 9, w.done()
            case Done():
                w.u64(message.epoch)
                _write_places(w, message.members)
                return 11, w.done()
            case _:
                assert_never(message)

    def decode(self, tag: int, data: bytes, start: int) -> Message:
        if 1 <= tag <= 4:
            hop, turn, sent = _decode(data, start, packet=tag in (1, 3))
            if tag <= 2:
                return Placed(hop, turn, sent)
            _in_range(not hop and turn)
            return Raised(turn, sent)
        r = Reader(data, start)
        message: Message
        match tag:
            case 5:
                message = Taken(r.u64(I64_MAX))
            case 6:
                message = Poll()
            case 7:
                message = Reset(r.u64(I64_MAX))
            case 8:
                epoch, member, part, parts = r.fields(_PART)
                _in_range(epoch <= I64_MAX and part < parts <= PARTS_MAX)
                message = ListPart(epoch, member, part, parts, r.rest(PART_BYTES))
            case 9:
                epoch = r.u64(I64_MAX)
                lists = r.many(r.u16, MEMBERS_MAX)
                message = Want(epoch, lists, r.many(lambda: read_name(r), WANTED_MAX))
            case 10:
                epoch = r.u64(I64_MAX)
                name = read_name(r)
                return Again(epoch, name, decode_packet(data, start + 8 + _NAME.size))
            case 11:
                message = Done(r.u64(I64_MAX), r.many(r.u16, MEMBERS_MAX))
            case _:
                raise WireError(Reason.MALFORMED, f"tag {tag}")
        r.done()
        return message


def read_name(r: Reader) -> Name:
    source, number = r.fields(_NAME)
    _in_range(0 < number <= I64_MAX)
    return Name(source, number)


def transmission_bytes(members: int) -> int:
    """What a transmission adds to its packet, in a group of so many."""
    return _PLACE.size + _HEAD.size + 2 + 24 * members


def _encode(sent: Transmission, place: bytes) -> bytes:
    size = len(sent.ack)
    head = b"".join(
        (
            place,
            _HEAD.pack(sent.source, sent.epoch, sent.number, sent.room),
            size.to_bytes(2, "big"),
            _vectors(size).pack(
                *sent.counts,
                *sent.ack,
                *(a - p for a, p in zip(sent.ack, sent.pack, strict=True)),
                *(a - d for a, d in zip(sent.ack, sent.done, strict=True)),
            ),
        )
    )
    return head if sent.packet is None else encode_packet(sent.packet, head)


def _decode(data: bytes, start: int, *, packet: bool) -> tuple[int, int, Transmission]:
    r = Reader(data, start)
    hop, turn = r.fields(_PLACE)
    source, epoch, number, room = r.fields(_HEAD)
    size = r.u16(MEMBERS_MAX)
    form = _vectors(size)
    vectors = r.fields(form)
    _in_range(max(hop, turn, epoch, *vectors) <= I64_MAX and 0 < number <= I64_MAX)
    counts, ack = vectors[:size], vectors[size : 2 * size]
    behind, undone = vectors[2 * size : 3 * size], vectors[3 * size :]
    _in_range(all(a >= b for a, b in zip(ack, behind, strict=True)))
    _in_range(all(a >= b for a, b in zip(ack, undone, strict=True)))
    end = start + _PLACE.size + _HEAD.size + 2 + form.size
    carried = None
    if packet:
        carried = decode_packet(data, end)
    else:
        r.done()
    return (
        hop,
        turn,
        Transmission(
            source,
            epoch,
            number,
            counts,
            ack,
            tuple(a - b for a, b in zip(ack, behind, strict=True)),
            tuple(a - b for a, b in zip(ack, undone, strict=True)),
            room,
            carried,
        ),
    )


def _vectors(size: int) -> struct.Struct:
    """Two vectors of numbers, and two of how far others are behind the second of them."""
    return _FORMS.setdefault(size, struct.Struct(f">{2 * size}Q{2 * size}I"))


_FORMS: dict[int, struct.Struct] = {}


def _write_places(w: Writer, members: tuple[int, ...]) -> None:
    w.u16(len(members))
    for member in members:
        w.u16(member)


def _in_range(sane: object) -> None:
    if not sane:
        raise WireError(Reason.MALFORMED, "a number out of range")
