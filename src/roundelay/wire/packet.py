"""Packets as bytes: data messages of engines carry them, and recovery exchanges them."""

import struct
from functools import lru_cache

from roundelay.core.ids import NodeId, Packet, Service, Span
from roundelay.wire.frame import FRAME_BYTES_MAX
from roundelay.wire.primitives import I64_MAX, U16_MAX, Reader, Reason, WireError, Writer, name_in

MEMBERS_MAX = 1024
"""The most nodes in one view or destination list; a message with more is malformed."""


_SERVICES = tuple(Service)
_U8 = struct.Struct(">B")
_HEAD = struct.Struct(">QQHBB")
_PLAIN = struct.Struct(">QQHBBI")
"""The fields of `_HEAD` (incarnation, first, count, service, whether destinations follow) and the
size of the body, which follows at once if there are no destinations."""
_FIRST_MAX = I64_MAX - U16_MAX
_new = tuple.__new__


def encode_packet(packet: Packet, before: bytes = b"") -> bytes:
    """The bytes of the packet, after `before`, which an engine puts in front of it."""
    node, incarnation, first, count = packet.span
    if packet.destinations is not None:
        w = Writer()
        write_packet(w, packet)
        return before + w.done()
    body = packet.body
    head = _PLAIN.pack(incarnation, first, count, packet.service, 0, len(body))
    return b"".join((before, _name(node), head, body))


@lru_cache(maxsize=MEMBERS_MAX)
def _name(node: NodeId) -> bytes:
    name = node.encode()
    return _U8.pack(len(name)) + name


def decode_packet(data: bytes, start: int) -> Packet:
    """The packet in `data[start:]`, which must hold nothing else; else WireError."""
    try:
        size = data[start]
        at = start + 1 + size
        incarnation, first, count, service, selective, length = _PLAIN.unpack_from(data, at)
        body_at = at + _PLAIN.size
        if (
            not selective
            and len(data) - body_at == length <= FRAME_BYTES_MAX
            and first <= _FIRST_MAX
            and incarnation <= I64_MAX
        ):
            name = name_in(data[start + 1 : at])
            span = _new(Span, (name, incarnation, first, count))  # Without a call of Python code.
            return Packet(span, _SERVICES[service], data[body_at:])
    except (IndexError, struct.error):
        pass
    r = Reader(data, start)  # It has destinations, or makes no sense, and then the reader raises.
    packet = read_packet(r)
    r.done()
    return packet


def write_packet(w: Writer, packet: Packet) -> None:
    node, incarnation, first, count = packet.span
    destinations, body = packet.destinations, packet.body
    w.text(node)
    if destinations is None:
        w.fields(_PLAIN, incarnation, first, count, packet.service, 0, len(body))
        w.rest(body)
        return
    w.fields(_HEAD, incarnation, first, count, packet.service, 1)
    w.u16(len(destinations))
    for destination in destinations:
        w.text(destination)
    w.blob(body)


def read_packet(r: Reader) -> Packet:
    node = r.name()
    incarnation, first, count, service, selective = r.fields(_HEAD)
    if first > _FIRST_MAX or incarnation > I64_MAX or service >= len(_SERVICES) or selective > 1:
        raise WireError(Reason.MALFORMED, "a packet out of range")
    destinations = None
    if selective:
        destinations = r.many(r.name, MEMBERS_MAX)
    body = r.blob(FRAME_BYTES_MAX)
    return Packet(Span(node, incarnation, first, count), _SERVICES[service], body, destinations)
