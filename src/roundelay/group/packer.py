"""Where messages wait until the engine may send them: small ones together, large ones in pieces."""

from collections import deque
from typing import Protocol

from roundelay.core.contract import QueueFullError
from roundelay.core.ids import NodeId, Packet, Service, Span
from roundelay.core.value import value
from roundelay.group.body import (
    MESSAGE_OVERHEAD_BYTES,
    PIECE_OVERHEAD_BYTES,
    checksum,
    is_log_body,
    pack,
    pack_piece,
)


@value
class GroupConfig:
    """Sizes and limits of the group layer."""

    packet_bytes: int = 1200
    """Largest body of a packet. The packet, its headers and the wrapper that recovery adds must fit
    one datagram: 1200 bytes suit Ethernet, 60,000 the loopback interface. Too large, and the
    network fragments or drops datagrams; too small, and the cost per packet dominates."""
    packet_messages: int = 0xFFFF
    """Most messages in one packet; 1 switches packing off."""
    message_bytes_max: int = 64 * 1024 * 1024
    """Largest message that is accepted. A message that does not fit a packet is sent in pieces."""
    queue_bytes: int = 128 * 1024 * 1024
    """Bytes of messages that may wait before `accept` raises QueueFullError. Too small, and a burst
    is refused that the next visit of the token would carry; too large, and a group that is too slow
    for its load fills the memory before anybody notices."""
    queue_messages: int = 1_000_000
    """Messages that may wait, likewise: it bounds the memory that many small messages take."""


class LogSource(Protocol):
    """Where packets of the replicated log come from."""

    @property
    def waiting(self) -> int:
        """How many more there are."""
        ...

    def refill(self) -> None:
        """One has left the queue: put more in."""
        ...


@value
class _Large:
    """A message that is sent in pieces, kept until its last piece is delivered here."""

    span: Span
    service: Service
    payload: bytes
    destinations: tuple[NodeId, ...] | None
    crc: int


class Packer:
    """Numbers the node's messages and hands them to its engine as packets.

    Messages that are asked for the same service and go to the same destinations share a packet; it
    is closed when the next one does not fit, or when the engine pulls it.
    """

    def __init__(self, node: NodeId, incarnation: int, config: GroupConfig | None = None) -> None:
        self._node = node
        self._incarnation = incarnation
        self._config = config or GroupConfig()
        if self._config.packet_bytes <= PIECE_OVERHEAD_BYTES:
            raise ValueError(
                f"packet_bytes={self._config.packet_bytes} leaves no room for a message; "
                f"it must be more than {PIECE_OVERHEAD_BYTES}"
            )
        self._piece_bytes = self._config.packet_bytes - PIECE_OVERHEAD_BYTES
        self.traced = True
        """Whether anybody reads records: see `Outlet.traced`."""
        self.selective = False
        """Whether messages may have destinations."""
        self.next = 0
        """The number of the next message."""
        self._recorded = 0
        """Messages below this number are in a record already: see `unrecorded`."""
        self._changes: list[tuple[int, Service, tuple[NodeId, ...] | None]] = []
        """From which message on another service or other destinations are asked for ..."""
        self._noted: tuple[Service | None, tuple[NodeId, ...] | None] = (None, None)
        """... and those of the last change."""
        self._queue: deque[Packet | _Large] = deque()
        self._open: list[bytes] = []
        """The messages of the open packet, which is being filled."""
        self._service: Service | None = None
        self._destinations: tuple[NodeId, ...] | None = None
        self._room = -1
        """Bytes of the largest message that the open packet still has room for; -1 if none is
        open."""
        self._slots = 0
        """How many messages the open packet may hold."""
        self._whole_bytes = self._config.packet_bytes - 1 - MESSAGE_OVERHEAD_BYTES
        """The largest message that goes in one packet."""
        self._contents: dict[int, tuple[bytes, ...]] = {}
        """The messages of packets that were not delivered yet, by the number of the first."""
        self._piece = 0
        """Pieces already pulled of the large message at the head of the queue."""
        self._sent_large: dict[int, _Large] = {}
        """Large messages all of whose pieces were pulled and that were not delivered yet."""
        self._withdrawn: list[Packet] = []
        self.log_packets = 0
        """Packets of the replicated log in the queue."""
        self.log_source: LogSource | None = None
        """Where more of them come from."""
        self._packets = 0
        """How many packets the queue holds; each piece of a large message counts as one."""
        self._bytes = 0
        self._messages = 0
        """Messages in the queue, without those of the open packet."""

    def accept(
        self,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> int:
        """Queue a message and return its number; raises as `Core.accept` says."""
        number, content = self.next, self._open
        if (
            type(payload) is bytes
            and (room := self._room - len(payload)) >= 0
            and service is self._service
            and destinations == self._destinations
            and len(content) < self._slots
        ):
            content.append(payload)
            self._room = room - MESSAGE_OVERHEAD_BYTES
        else:
            self._accept_apart(payload, service, destinations)
        self.next = number + 1
        return number

    def _accept_apart(
        self, payload: bytes, service: Service, destinations: tuple[NodeId, ...] | None
    ) -> None:
        """Begin a packet with a message, or cut it into pieces; the limits are tested here."""
        if type(payload) is not bytes:
            kind = type(payload).__name__
            raise TypeError(f"a message is of type bytes, not {kind}; encode or copy it first")
        config, size = self._config, len(payload)
        if destinations is not None and not self.selective:
            raise ValueError("this engine delivers to everybody; submit without destinations")
        if size > config.message_bytes_max:
            raise ValueError(f"a message of {size} bytes; the limit is {config.message_bytes_max}")
        messages = self._messages + len(self._open)
        waits = self._bytes + self._open_bytes
        if messages >= config.queue_messages or (waits and waits + size > config.queue_bytes):
            raise QueueFullError(f"{messages} messages, {waits} bytes wait to be sent")
        self._close()
        if service is not self._noted[0] or destinations != self._noted[1]:
            self._note_change(service, destinations)
        if size <= self._whole_bytes:
            self._open = [payload]
            self._service, self._destinations = service, destinations
            self._room = self._whole_bytes - size - MESSAGE_OVERHEAD_BYTES
            self._slots = min(config.packet_messages, config.queue_messages - messages)
            return
        span = Span(self._node, self._incarnation, self.next)
        large = _Large(span, service, payload, destinations, checksum(payload))
        self._queue.append(large)
        self._packets += self._pieces(large)
        self._messages += 1
        self._bytes += size

    def _note_change(self, service: Service, destinations: tuple[NodeId, ...] | None) -> None:
        """Remember where messages of another kind begin, for their record."""
        if self.traced:
            self._noted = (service, destinations)
            self._changes.append((self.next, service, destinations))

    def unrecorded(self) -> list[Packet]:
        """The messages accepted since the last call, in order: one packet without a body for each
        stretch of them with the same service and destinations."""
        first, end = self._recorded, self.next
        if first == end or not self._changes:
            return []
        self._recorded = end
        if len(self._changes) == 1:  # As usual: all messages are of one kind.
            _, service, destinations = self._changes[0]
            span = Span(self._node, self._incarnation, first, end - first)
            return [Packet(span, service, b"", destinations)]
        return self._stretches(first)

    def _stretches(self, first: int) -> list[Packet]:
        stretches: list[Packet] = []
        ends = [*(begin for begin, _, _ in self._changes[1:]), self.next]
        for (begin, service, destinations), end in zip(self._changes, ends, strict=True):
            begin = max(begin, first)
            if begin < end:
                span = Span(self._node, self._incarnation, begin, end - begin)
                stretches.append(Packet(span, service, b"", destinations))
        del self._changes[:-1]  # The last one holds for the messages to come.
        return stretches

    @property
    def _open_bytes(self) -> int:
        """Of the messages in the packet being filled: what is gone of its room."""
        count = len(self._open)
        return self._whole_bytes - self._room - count * MESSAGE_OVERHEAD_BYTES if count else 0

    @property
    def waiting(self) -> int:
        source = self.log_source
        more = 0 if source is None else source.waiting
        return self._packets - self._piece + bool(self._open) + more

    def pull(self) -> Packet | None:
        if not self._queue and not self._open and self.log_source is not None:
            self.log_source.refill()
        if not self._queue:
            self._close()
            if not self._queue:
                return None
        head = self._queue[0]
        if isinstance(head, _Large):
            return self._pull_piece(head)
        self._queue.popleft()
        self._packets -= 1
        self._messages -= head.span.count
        self._bytes -= len(head.body)
        if self.log_packets and is_log_body(head.body):
            self.log_packets -= 1
            if self.log_source is not None:
                self.log_source.refill()
        return head

    def enqueue(self, bodies: list[bytes], count: int) -> None:
        """Queue packets of the replicated log, behind the messages accepted so far; the last one
        completes so many messages, which get the next numbers."""
        self._close()
        if self._noted != (Service.AGREED, None):
            self._note_change(Service.AGREED, None)
        first, last = self.next, len(bodies) - 1
        for i, body in enumerate(bodies):
            span = Span(self._node, self._incarnation, first, count if i == last else 0)
            self._queue.append(Packet(span, Service.AGREED, body))
            self._packets += 1
            self._messages += span.count
            self._bytes += len(body)
        self.next += count
        self.log_packets += len(bodies)

    def drop_log_packets(self) -> list[Packet]:
        """Take the packets of the replicated log out of the queue."""
        dropped: list[Packet] = []
        if self.log_packets:
            kept: deque[Packet | _Large] = deque()
            for entry in self._queue:
                if isinstance(entry, Packet) and is_log_body(entry.body):
                    dropped.append(entry)
                    self._packets -= 1
                    self._messages -= entry.span.count
                    self._bytes -= len(entry.body)
                else:
                    kept.append(entry)
            self._queue = kept
            self.log_packets = 0
        return dropped

    def release(self, span: Span) -> tuple[bytes, ...] | None:
        """Forget own messages, which were delivered, and return them. None for a message that was
        sent in pieces: the pieces have to be put together."""
        self._sent_large.pop(span.first, None)
        return self._contents.pop(span.first, None)

    def put_back(self, packet: Packet) -> None:
        """Take back an own packet that the old view did not deliver, for `start_view`. Those of the
        replicated log are made anew if they are needed again."""
        if is_log_body(packet.body):
            return
        large = packet.span.count == 0 or packet.span.first in self._sent_large
        if not large:  # Of a large message all pieces go again: see `start_view`.
            self._withdrawn.append(packet)

    def start_view(self) -> None:
        """Queue again, first and in their order, the messages that the old view did not deliver. A
        large message that was under way is sent again from its first piece, since receivers forget
        the pieces of the old view."""
        self._piece = 0
        again: list[Packet | _Large] = [*self._withdrawn, *self._sent_large.values()]
        again.sort(key=lambda entry: entry.span.first)
        for entry in again:
            self._packets += self._pieces(entry) if isinstance(entry, _Large) else 1
            self._messages += entry.span.count
            self._bytes += len(entry.payload if isinstance(entry, _Large) else entry.body)
        self._queue.extendleft(reversed(again))
        self._withdrawn = []
        self._sent_large = {}

    def _close(self) -> None:
        """Encode the open packet; its first message is as many back as it holds."""
        if not self._open:
            return
        assert self._service is not None
        count = len(self._open)
        first = self.next - count
        body = pack(self._open)
        span = Span(self._node, self._incarnation, first, count)
        self._queue.append(Packet(span, self._service, body, self._destinations))
        self._contents[first] = tuple(self._open)
        self._packets += 1
        self._messages += count
        self._bytes += len(body)
        self._open = []
        self._room = -1

    def _pieces(self, large: _Large) -> int:
        return -(-len(large.payload) // self._piece_bytes)

    def _pull_piece(self, large: _Large) -> Packet:
        index, pieces = self._piece, self._pieces(large)
        last = index == pieces - 1
        body = pack_piece(large.payload, index, pieces, self._piece_bytes, large.crc)
        if last:
            self._queue.popleft()
            self._packets -= pieces
            self._piece = 0
            self._messages -= 1
            self._bytes -= len(large.payload)
            self._sent_large[large.span.first] = large
        else:
            self._piece += 1
        span = Span(self._node, self._incarnation, large.span.first, int(last))
        return Packet(span, large.service, body, large.destinations)
