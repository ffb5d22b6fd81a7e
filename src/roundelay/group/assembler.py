"""Packets to messages: unpacks what arrived in order, and puts large messages together again."""

from roundelay.core.checksum import crc32
from roundelay.core.ids import NodeId, Packet
from roundelay.group.body import Piece, unpack
from roundelay.wire.primitives import WireError


class Assembler:
    """Sees delivered packets in order. One large message per sender can be under way, since a
    sender's pieces follow each other."""

    def __init__(self, message_bytes_max: int) -> None:
        self.bytes = 0
        """Of the pieces that wait for others."""
        self._limit = message_bytes_max
        self._parts: dict[tuple[NodeId, int], tuple[int, list[bytes]]] = {}
        """By sender and incarnation: the number of its message, and the pieces so far."""

    def take(self, packet: Packet) -> tuple[bytes, ...]:
        """The messages that this packet completes; none if it is a piece, or makes no sense."""
        try:
            content = unpack(packet.body, packet.span.count)
        except WireError:
            return ()  # A forged packet got past its sender's engine: all of us drop it alike.
        return self._join(packet, content) if isinstance(content, Piece) else content

    def forget(self) -> None:
        """A new view: pieces of the old one complete nothing, here as at everybody else."""
        self._parts.clear()
        self.bytes = 0

    def _join(self, packet: Packet, piece: Piece) -> tuple[bytes, ...]:
        sender = (packet.span.node, packet.span.incarnation)
        number, parts = self._parts.pop(sender, (packet.span.first, []))
        self.bytes -= _size(parts)
        if piece.index == 0:
            number, parts = packet.span.first, []
        if number != packet.span.first or piece.index != len(parts):
            return ()  # Its beginning was lost with an old view.
        parts.append(piece.data)
        if piece.pieces * len(parts[0]) > self._limit + len(parts[0]):
            return ()  # No honest sender begins a message past the limit.
        if not piece.last:
            self._parts[sender] = (number, parts)
            self.bytes += _size(parts)
            return ()
        whole = b"".join(parts)
        return (whole,) if crc32(whole) == piece.crc else ()


def _size(parts: list[bytes]) -> int:
    """Of pieces, all of one size: to add them up each time would take long."""
    return len(parts) * len(parts[0]) if parts else 0
