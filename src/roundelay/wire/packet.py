"""A packet as a field: every engine's data message carries one, and recovery exchanges them."""

from roundelay.core.ids import NODE_NAME_BYTES_MAX, Packet, Service, Span
from roundelay.wire.frame import FRAME_BYTES_MAX
from roundelay.wire.primitives import I64_MAX, U16_MAX, Reader, Reason, WireError, Writer

MEMBERS_MAX = 1024
"""Most nodes in one view or destination list."""


def write_packet(w: Writer, packet: Packet) -> None:
    span = packet.span
    w.text(span.node)
    w.u32(span.incarnation)
    w.u64(span.first)
    w.u16(span.count)
    w.u8(packet.service)
    w.flag(packet.destinations is not None)
    if packet.destinations is not None:
        w.u16(len(packet.destinations))
        for node in packet.destinations:
            w.text(node)
    w.blob(packet.body)


def read_packet(r: Reader) -> Packet:
    node = r.text(NODE_NAME_BYTES_MAX)
    if not node:
        raise WireError(Reason.MALFORMED, "a packet of a node without a name")
    incarnation = r.u32()
    first = r.u64(I64_MAX - U16_MAX)
    span = Span(node, incarnation, first, r.u16())
    service = Service(r.u8(max(Service)))
    destinations = None
    if r.flag():
        destinations = r.many(lambda: r.text(NODE_NAME_BYTES_MAX), MEMBERS_MAX)
    return Packet(span, service, r.blob(FRAME_BYTES_MAX), destinations)
