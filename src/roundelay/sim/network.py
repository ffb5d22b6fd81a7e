"""Networks: when does a frame that leaves now arrive, and where.

A network knows rates, distances and queues. It loses nothing of itself except where a finite
buffer overruns; loss, duplication and the rest are faults, drawn elsewhere.

    bus       shared Ethernet: one frame at a time on one wire, all hear it at its end
    switched  full-duplex links to a switch: queues per sender and per receiver
    lan       a fixed latency and jitter between any two nodes, no queues
    wan       a latency of its own for every pair
    channel   one broadcast channel: all, the sender too, see the same order; receivers overrun
    manual    nothing moves by itself: the scenario says what arrives and when
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from roundelay.core.ids import NodeId

ETHERNET_OVERHEAD_BYTES = 66
"""What UDP over Ethernet adds to a payload: preamble, headers, check sequence, gap, IP and UDP."""

_SECOND = 1_000_000_000


class Network(Protocol):
    """One instance per run: networks with queues remember what is on the wire."""

    @property
    def reflects(self) -> bool:
        """Whether a sender hears its own frames."""
        ...

    @property
    def jitter_ns(self) -> int:
        """Each copy takes up to this much longer, by chance."""
        ...

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        """When the frame arrives at each receiver; None where a buffer overran."""
        ...


@dataclass(slots=True)
class Bus:
    """First come, first served; collisions are not modelled, waiting is."""

    rate_bps: int = 10_000_000
    propagation_ns: int = 5_000
    overhead_bytes: int = ETHERNET_OVERHEAD_BYTES
    jitter_ns: int = 0
    reflects: bool = False
    _free: int = 0

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        start = max(now, self._free)
        self._free = start + (size + self.overhead_bytes) * 8 * _SECOND // self.rate_bps
        return [self._free + self.propagation_ns] * len(receivers)


@dataclass(slots=True)
class Switched:
    """Store and forward: a frame waits for its sender's link, then for each receiver's."""

    rate_bps: int = 100_000_000
    latency_ns: int = 10_000
    overhead_bytes: int = ETHERNET_OVERHEAD_BYTES
    jitter_ns: int = 0
    reflects: bool = False
    _up: dict[NodeId, int] = field(default_factory=dict)
    _down: dict[NodeId, int] = field(default_factory=dict)

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        duration = (size + self.overhead_bytes) * 8 * _SECOND // self.rate_bps
        at_switch = max(now, self._up.get(sender, 0)) + duration
        self._up[sender] = at_switch
        times: list[int | None] = []
        for receiver in receivers:
            end = max(at_switch + self.latency_ns, self._down.get(receiver, 0)) + duration
            self._down[receiver] = end
            times.append(end)
        return times


@dataclass(slots=True)
class Lan:
    """Latency without queues. Jitter reorders frames of different senders and of one sender."""

    latency_ns: int = 100_000
    jitter_ns: int = 0
    reflects: bool = False

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        return [now + self.latency_ns] * len(receivers)


@dataclass(slots=True)
class Wan:
    """A latency for every ordered pair; pairs not listed have the default."""

    latency_ns: int = 20_000_000
    jitter_ns: int = 0
    links_ns: Mapping[tuple[NodeId, NodeId], int] = field(default_factory=dict)
    reflects: bool = False

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        latency = self.links_ns.get
        return [now + latency((sender, receiver), self.latency_ns) for receiver in receivers]


@dataclass(slots=True)
class Channel:
    """One serial channel heard by all at one instant. Each receiver has `buffer_frames` places
    that it empties at one per `drain_ns`; a frame that finds none is lost to that receiver alone,
    never to its sender."""

    rate_bps: int = 100_000_000
    propagation_ns: int = 1_000
    overhead_bytes: int = 0
    buffer_frames: int = 0
    """0 means no limit."""
    drain_ns: int = 0
    jitter_ns: int = 0
    reflects: bool = True
    _free: int = 0
    _drained: dict[NodeId, int] = field(default_factory=dict)
    """When each receiver will have emptied its buffer."""

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        start = max(now, self._free)
        self._free = start + (size + self.overhead_bytes) * 8 * _SECOND // self.rate_bps
        heard = self._free + self.propagation_ns
        return [self._place(receiver, heard, receiver == sender) for receiver in receivers]

    def _place(self, receiver: NodeId, heard: int, own: bool) -> int | None:
        if not self.buffer_frames or own:
            return heard
        drained = max(heard, self._drained.get(receiver, 0))
        # A frame that is being read still has its place.
        if drained - heard > (self.buffer_frames - 1) * self.drain_ns:
            return None
        self._drained[receiver] = drained + self.drain_ns
        return heard


@dataclass(slots=True)
class Manual:
    """Holds every frame until the scenario delivers or drops it."""

    jitter_ns: int = 0
    reflects: bool = False

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        raise AssertionError("a manual network holds its frames")
