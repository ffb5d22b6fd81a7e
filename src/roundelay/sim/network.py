"""Networks: when a frame that is sent now arrives at each receiver.

A network knows rates, distances and queues. It loses a frame only where a finite buffer overruns;
loss, duplication and other faults are drawn in `faults`.

    bus       shared Ethernet: one frame at a time on one wire; all receive it when it ends
    switched  full-duplex links to a switch: queues per sender and per receiver
    lan       a fixed latency and jitter between any two nodes, no queues
    wan       a latency of its own for every pair
    channel   one broadcast channel: all nodes, the sender too, receive frames in one order; a
              receiver that is too slow loses frames
    manual    no frame arrives by itself: the scenario delivers each one
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from roundelay.core.ids import NodeId

ETHERNET_OVERHEAD_BYTES = 66
"""What UDP over Ethernet adds to a payload: preamble, headers, check sequence, gap, IP and UDP."""

_SECOND = 1_000_000_000


class Network(Protocol):
    """Make one instance for each run: a network with queues remembers what is on the wire."""

    @property
    def reflects(self) -> bool:
        """Whether a sender receives its own frames."""
        ...

    @property
    def jitter_ns(self) -> int:
        """Each copy takes up to this many nanoseconds longer, by chance."""
        ...

    @property
    def by_size(self) -> bool:
        """Whether a larger frame takes longer; if not, `size` is not read."""
        ...

    def arrival(self, now: int, sender: NodeId, receiver: NodeId, size: int) -> int | None:
        """When a frame that is for one receiver arrives there; None if a buffer overran."""
        ...

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        """When the frame arrives at each receiver; None where a buffer overran."""
        ...


@dataclass(slots=True)
class Bus:
    """Frames wait for the wire and are sent in the order of their requests. Collisions are not
    modelled."""

    rate_bps: int = 10_000_000
    propagation_ns: int = 5_000
    overhead_bytes: int = ETHERNET_OVERHEAD_BYTES
    jitter_ns: int = 0
    reflects: bool = False
    by_size: ClassVar[bool] = True
    _free: int = 0

    def arrival(self, now: int, sender: NodeId, receiver: NodeId, size: int) -> int | None:
        return self.arrivals(now, sender, (receiver,), size)[0]

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        start = max(now, self._free)
        self._free = start + (size + self.overhead_bytes) * 8 * _SECOND // self.rate_bps
        return [self._free + self.propagation_ns] * len(receivers)


@dataclass(slots=True)
class Switched:
    """A switch that stores and forwards: a frame waits for the link of its sender, then for the
    link of each receiver."""

    rate_bps: int = 100_000_000
    latency_ns: int = 10_000
    overhead_bytes: int = ETHERNET_OVERHEAD_BYTES
    jitter_ns: int = 0
    reflects: bool = False
    by_size: ClassVar[bool] = True
    _up: dict[NodeId, int] = field(default_factory=dict)
    _down: dict[NodeId, int] = field(default_factory=dict)

    def arrival(self, now: int, sender: NodeId, receiver: NodeId, size: int) -> int | None:
        return self.arrivals(now, sender, (receiver,), size)[0]

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
    """A latency without queues. Jitter reorders frames, also those of one sender."""

    latency_ns: int = 100_000
    jitter_ns: int = 0
    reflects: bool = False
    by_size: ClassVar[bool] = False

    def arrival(self, now: int, sender: NodeId, receiver: NodeId, size: int) -> int | None:
        return now + self.latency_ns

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        return [now + self.latency_ns] * len(receivers)


@dataclass(slots=True)
class Wan:
    """A latency for every ordered pair of nodes; a pair that is not listed has `latency_ns`."""

    latency_ns: int = 20_000_000
    jitter_ns: int = 0
    links_ns: Mapping[tuple[NodeId, NodeId], int] = field(default_factory=dict)
    reflects: bool = False
    by_size: ClassVar[bool] = False

    def arrival(self, now: int, sender: NodeId, receiver: NodeId, size: int) -> int | None:
        return now + self.links_ns.get((sender, receiver), self.latency_ns)

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        latency = self.links_ns.get
        return [now + latency((sender, receiver), self.latency_ns) for receiver in receivers]


@dataclass(slots=True)
class Channel:
    """One serial channel, whose frames reach all nodes at the same instant. Each receiver has a
    buffer for `buffer_frames` frames and reads one frame in `drain_ns`. A frame that finds the
    buffer full is lost for that receiver; a sender never loses its own frame."""

    rate_bps: int = 100_000_000
    propagation_ns: int = 1_000
    overhead_bytes: int = 0
    buffer_frames: int = 0
    """0 means no limit."""
    drain_ns: int = 0
    jitter_ns: int = 0
    reflects: bool = True
    by_size: ClassVar[bool] = True
    _free: int = 0
    _drained: dict[NodeId, int] = field(default_factory=dict)
    """When each receiver will have emptied its buffer."""

    def arrival(self, now: int, sender: NodeId, receiver: NodeId, size: int) -> int | None:
        return self.arrivals(now, sender, (receiver,), size)[0]

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
        # A frame that is being read still takes up room in the buffer.
        if drained - heard > (self.buffer_frames - 1) * self.drain_ns:
            return None
        self._drained[receiver] = drained + self.drain_ns
        return heard


@dataclass(slots=True)
class Manual:
    """Holds every frame until the scenario delivers or drops it."""

    jitter_ns: int = 0
    reflects: bool = False
    by_size: ClassVar[bool] = False

    def arrival(self, now: int, sender: NodeId, receiver: NodeId, size: int) -> int | None:
        raise AssertionError("a manual network holds its frames")

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        raise AssertionError("a manual network holds its frames")
