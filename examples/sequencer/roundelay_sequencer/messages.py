"""What members send each other: packets, and their order. A link (`roundelay.links`) carries both.

Members are numbered by their place in the view, from 0 on the wire and from 1 where people read.
"""

from typing import TypeAlias

from roundelay.core.ids import Packet
from roundelay.core.value import value
from roundelay.links.messages import Data, LinkCodec
from roundelay.links.messages import Message as LinkMessage
from roundelay.wire.packet import read_packet, write_packet
from roundelay.wire.primitives import U16_MAX, Reader, Writer

ORDER_PACKETS_MAX = 256
"""Most packets that one Order gives a number. More would not fit into a small datagram."""


@value
class Order:
    """The next numbers of the view: each goes to the next packet of the sender that is named."""

    senders: tuple[int, ...]

    def __str__(self) -> str:
        return f"order {' '.join(str(sender + 1) for sender in self.senders)}"


Content: TypeAlias = Packet | Order
Message: TypeAlias = LinkMessage[Content]


def _encode(content: Content, before: bytes) -> bytes:
    w = Writer()
    w.flag(isinstance(content, Order))
    if isinstance(content, Order):
        w.u16(len(content.senders))
        for sender in content.senders:
            w.u16(sender)
    else:
        write_packet(w, content)
    return before + w.done()


def _decode(data: bytes, start: int) -> Content:
    r = Reader(data, start)
    content: Content
    if r.flag():
        content = Order(r.many(lambda: r.u16(U16_MAX), ORDER_PACKETS_MAX))
    else:
        content = read_packet(r)
    r.done()
    return content


CODEC: LinkCodec[Content] = LinkCodec(_encode, _decode)


def packets_in(message: Message) -> int:
    """How many packets a message brings."""
    return type(message) is Data and type(message.content) is Packet
