"""What ATOP says on the wire: a packet, or none, with its tag. The link around it does the rest.

u32  distribution
u64  number
u16  count
u8   1 weights follow, 2 a packet follows, 3 both, 0 neither
u16  how many weights, and u32 each
.    the packet
"""

import struct

from roundelay.core.ids import Packet
from roundelay.core.value import value
from roundelay.links.messages import LinkCodec
from roundelay.protocols.atop.atom import COUNT_MAX, DISTRIBUTION_MAX, NUMBER_MAX, Tag
from roundelay.wire.packet import MEMBERS_MAX, read_packet, write_packet
from roundelay.wire.primitives import Reader, Reason, WireError, Writer

_HEAD = struct.Struct(">IQHB")
_WEIGHTS, _PACKET = 1, 2


@value
class Content:
    """A packet at its place among its sender's slots, or a dummy, which has none."""

    tag: Tag
    packet: Packet | None = None

    def __str__(self) -> str:
        weights = "" if self.tag.weights is None else f" {':'.join(map(str, self.tag.weights))}"
        return f"{self.tag}{weights} {self.packet if self.packet is not None else 'dummy'}"


def write_content(w: Writer, content: Content) -> None:
    tag, packet = content.tag, content.packet
    weights = tag.weights
    flags = (_WEIGHTS if weights is not None else 0) | (_PACKET if packet is not None else 0)
    w.fields(_HEAD, tag.distribution, tag.number, tag.count, flags)
    if weights is not None:
        w.u16(len(weights))
        for weight in weights:
            w.u32(weight)
    if packet is not None:
        write_packet(w, packet)


def read_content(r: Reader) -> Content:
    distribution, number, count, flags = r.fields(_HEAD)
    weights = r.many(r.u32, MEMBERS_MAX) if flags & _WEIGHTS else None
    packet = read_packet(r) if flags & _PACKET else None
    if flags > 3 or not 0 < count <= COUNT_MAX or (packet is not None and count != 1):
        raise WireError(Reason.MALFORMED, f"{count} slots, flags {flags}")
    if distribution > DISTRIBUTION_MAX or number > NUMBER_MAX:
        raise WireError(Reason.MALFORMED, f"number {number} of distribution {distribution}")
    if (weights is not None) != (distribution > 0 and number == 0):
        raise WireError(Reason.MALFORMED, "weights come with the first of a distribution alone")
    if weights is not None and (not weights or min(weights) < 1):
        raise WireError(Reason.MALFORMED, "a weight is at least 1")
    return Content(Tag(distribution, number, count, weights), packet)


CODEC: LinkCodec[Content] = LinkCodec(write_content, read_content)
