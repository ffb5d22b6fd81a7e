"""Packets to messages: unpacks what arrived in order, and puts large messages together again."""

from roundelay.core.checksum import crc32
from roundelay.core.ids import NodeId, Packet, Span
from roundelay.group.body import Piece, unpack
from roundelay.wire.primitives import WireError


class Assembler:
    """Is given the delivered packets in order. A sender has at most one incomplete large message,
    since its pieces follow each other."""

    def __init__(self, message_bytes_max: int) -> None:
        self.bytes = 0
        """Size of all pieces that wait for the rest of their message."""
        self._limit = message_bytes_max
        self._parts: dict[NodeId, tuple[Span, list[bytes]]] = {}
        """By sender: which of its messages it is, and the pieces so far."""

    def messages_of(self, packet: Packet) -> tuple[bytes, ...]:
        """The messages that this packet completes; none if it is a piece, or makes no sense."""
        try:
            content = unpack(packet.body, packet.span.count)
        except WireError:
            return ()  # A forged packet got past its sender's engine: all of us drop it alike.
        return self._join(packet, content) if isinstance(content, Piece) else content

    def forget(self) -> None:
        """Drop the pieces of the old view, as every other member does; they are sent again."""
        self._parts.clear()
        self.bytes = 0

    def _join(self, packet: Packet, piece: Piece) -> tuple[bytes, ...]:
        message = packet.span._replace(count=0)
        begun, parts = self._parts.pop(message.node, (message, []))
        self.bytes -= _size(parts)
        if piece.index == 0:
            begun, parts = message, []
        if begun != message or piece.index != len(parts):
            return ()  # Its beginning was lost with an old view.
        parts.append(piece.data)
        first = len(parts[0])
        if not 0 < len(piece.data) <= first or piece.pieces * first > self._limit + first:
            return ()  # No honest sender cuts like this, or begins a message past the limit.
        if not piece.last:
            self._parts[message.node] = (message, parts)
            self.bytes += _size(parts)
            return ()
        whole = b"".join(parts)
        return (whole,) if crc32(whole) == piece.crc else ()


def _size(parts: list[bytes]) -> int:
    """Size of pieces, which all have the size of the first; adding them up would take long."""
    return len(parts) * len(parts[0]) if parts else 0
