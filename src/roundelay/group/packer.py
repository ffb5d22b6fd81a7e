"""Where messages wait until the engine may send them."""

from collections import deque

from roundelay.core.contract import QueueFullError
from roundelay.core.ids import NodeId, Packet, Service, Span
from roundelay.wire.frame import FRAME_BYTES_MAX

PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX - 4096
"""Largest payload of a packet: what a frame leaves after headers and a long list of names."""


class Packer:
    """Numbers the node's messages and hands them to its engine, one message a packet.

    `queue_max` bounds the messages that wait: too small and a burst is refused that the next
    visit of a token would have carried, too large and a slow group hides in memory.
    """

    def __init__(self, node: NodeId, incarnation: int, queue_max: int = 100_000) -> None:
        self._node = node
        self._incarnation = incarnation
        self._queue_max = queue_max
        self._next = 0
        self._queue: deque[Packet] = deque()
        self._back = 0
        """Packets at the front of the queue that were put back, in their order."""

    def put(
        self, payload: bytes, service: Service, destinations: tuple[NodeId, ...] | None
    ) -> Packet:
        """Accept a message; its packet waits to be pulled."""
        if len(self._queue) >= self._queue_max:
            raise QueueFullError(f"{self._queue_max} messages wait to be sent")
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise ValueError(f"a payload of {len(payload)} bytes; at most {PAYLOAD_BYTES_MAX}")
        span = Span(self._node, self._incarnation, self._next)
        packet = Packet(span, service, payload, destinations)
        self._next += 1
        self._queue.append(packet)
        return packet

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def pull(self) -> Packet | None:
        self._back = max(0, self._back - 1)
        return self._queue.popleft() if self._queue else None

    def put_back(self, packet: Packet) -> None:
        """A packet that its view did not deliver goes before everything that was never sent."""
        self._queue.insert(self._back, packet)
        self._back += 1
