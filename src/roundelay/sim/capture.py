"""What somebody who listens has recorded of a network: every datagram, and when it was sent."""

from typing import NamedTuple

from roundelay.core.ids import NodeId
from roundelay.sim.transmission import Transmission

HEADER_BYTES = 36
"""Of a sealed datagram: no two that hosts send begin alike."""


class Captured(NamedTuple):
    """A datagram that was sent."""

    time_ns: int
    transmission: Transmission
    receivers: tuple[NodeId, ...]

    @property
    def life(self) -> tuple[NodeId, int]:
        """Who sent it, in which incarnation."""
        return self.transmission.sender, self.transmission.incarnation


class Capture:
    """All datagrams that hosts have sent since the recording began, in order."""

    def __init__(self) -> None:
        self.all: list[Captured] = []
        self.lives: dict[tuple[NodeId, int], list[int]] = {}
        """By sender and incarnation: the places of their datagrams."""
        self._headers: dict[bytes, int] = {}

    def record(
        self, time_ns: int, transmission: Transmission, receivers: tuple[NodeId, ...]
    ) -> None:
        captured = Captured(time_ns, transmission, receivers)
        self.lives.setdefault(captured.life, []).append(len(self.all))
        self._headers[transmission.data[:HEADER_BYTES]] = len(self.all)
        self.all.append(captured)

    def sent(self, data: bytes) -> Captured | None:
        """What was sent with exactly these bytes; None if nothing was."""
        at = self._headers.get(data[:HEADER_BYTES])
        captured = None if at is None else self.all[at]
        return captured if captured is not None and captured.transmission.data == data else None
