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
from roundelay.wire.packet import MEMBERS_MAX, decode_packet, encode_packet
from roundelay.wire.primitives import Reason, WireError

_HEAD = struct.Struct(">IQHB")
_COUNT = struct.Struct(">H")
_WEIGHTS, _PACKET = 1, 2


@value
class Content:
    """A packet at its place among its sender's slots, or a dummy, which has none."""

    tag: Tag
    packet: Packet | None = None

    def __str__(self) -> str:
        weights = "" if self.tag.weights is None else f" {':'.join(map(str, self.tag.weights))}"
        return f"{self.tag}{weights} {self.packet if self.packet is not None else 'dummy'}"


def encode_content(content: Content, before: bytes = b"") -> bytes:
    """The content, behind the bytes that go before it."""
    tag, packet = content.tag, content.packet
    weights = tag.weights
    flags = (_WEIGHTS if weights is not None else 0) | (_PACKET if packet is not None else 0)
    head = before + _HEAD.pack(tag.distribution, tag.number, tag.count, flags)
    if weights is not None:
        head += struct.pack(f">H{len(weights)}I", len(weights), *weights)
    return head if packet is None else encode_packet(packet, head)


def decode_content(data: bytes, start: int) -> Content:
    """The content that is all of `data[start:]`, or WireError."""
    weights: tuple[int, ...] | None = None
    try:
        distribution, number, count, flags = _HEAD.unpack_from(data, start)
        at = start + _HEAD.size
        if flags & _WEIGHTS:
            (members,) = _COUNT.unpack_from(data, at)
            if not 0 < members <= MEMBERS_MAX:
                raise WireError(Reason.MALFORMED, f"weights of {members} members")
            weights = struct.unpack_from(f">{members}I", data, at + _COUNT.size)
            at += _COUNT.size + 4 * members
    except struct.error:
        raise WireError(Reason.MALFORMED, "the message ends within a number") from None
    if flags > 3 or not 0 < count <= COUNT_MAX or (flags & _PACKET and count != 1):
        raise WireError(Reason.MALFORMED, f"{count} slots, flags {flags}")
    if distribution > DISTRIBUTION_MAX or number > NUMBER_MAX:
        raise WireError(Reason.MALFORMED, f"number {number} of distribution {distribution}")
    if (weights is not None) != (distribution > 0 and number == 0):
        raise WireError(Reason.MALFORMED, "weights come with the first of a distribution alone")
    if weights is not None and min(weights) < 1:
        raise WireError(Reason.MALFORMED, "a weight is at least 1")
    tag = Tag(distribution, number, count, weights)
    if flags & _PACKET:
        return Content(tag, decode_packet(data, at))
    if at != len(data):
        raise WireError(Reason.MALFORMED, f"{len(data) - at} bytes too many")
    return Content(tag)


CODEC: LinkCodec[Content] = LinkCodec(encode_content, decode_content)
