"""Runs of DTP, CM, Pinwheel and Totem on the Ethernet of [DTP97], section 5.

    the paper's model                   here
    10 Mbit/s Ethernet                  `Bus`: one frame at a time, first come first served, no
                                        collisions, 5 us of propagation
    messages of 500 bytes               566 bytes of wire: 66 for preamble, headers and gap. What
                                        our frames carry beyond the message is not counted, since
                                        the paper's are not given
    ACK, token                          frames of the least size, 84 bytes of wire
    the processor takes no time         no `Costs`
    Poisson arrivals of rate lambda     a random source for each member, the same for every protocol
    T = 100 ms                          `silence_s`
    10,000 messages, no loss            those that are handed over in the measured time; arrivals go
                                        on until the last of them is stable
    a message is a packet               `packet_messages=1`
    Totem's token spins                 `idle_rotations` so large that it never rests

The paper gives neither frame sizes nor propagation nor what it did at both ends of a run. Here the
first messages, two for each member, do not count, and nothing waits for a silence period just
because the run is over.

*Delivery time* and *stability time* are as in `lifetimes`. *Buffer* is what a member holds of
messages and acknowledgments that it does not know to be stable, sampled as often as messages come.
*Overhead* is every frame that is not the first broadcast of a message, divided by the messages.
*Rotation* is the mean time between two transfers of the token by one member.
*Variation* is the standard deviation over the members, divided by their mean.
"""

from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean, pstdev
from typing import Any

from roundelay.core.contract import Boot, Core, EngineFactory
from roundelay.core.ids import NodeId, Packet, Service, Span, ViewId
from roundelay.experiments.lifetimes import Lifetimes
from roundelay.experiments.results import Measures
from roundelay.group.body import pack
from roundelay.group.engines import engine_factory
from roundelay.group.packer import GroupConfig
from roundelay.group.static import StaticStack
from roundelay.protocols.dtp.engine import DtpEngine
from roundelay.protocols.dtp.messages import Msg
from roundelay.protocols.totem import Data, TotemEngine
from roundelay.sim.faults import Choices
from roundelay.sim.network import ETHERNET_OVERHEAD_BYTES, Bus
from roundelay.sim.world import World
from roundelay.wire.endpoint import Endpoint

MS = 1_000_000
S = 1_000_000_000

LEAST_BYTES = 84
"""The shortest frame of an Ethernet, with its preamble and the gap behind it."""
GROUP = GroupConfig(packet_messages=1)
SILENCE_MS = 100.0
WARM_UP_MESSAGES = 2
"""For each member, at the beginning, that do not count."""
BACKLOG_MESSAGES = 100
"""What waits at a member that is always ready."""
PROTOCOLS = ("dtp", "cm", "pinwheel", "totem")


@dataclass(frozen=True, slots=True)
class Cell:
    """One run but for its seed: values that other processes can be given."""

    protocol: str
    nodes: int
    gap_ms: float
    """1/lambda: the mean time between two messages of a member. 0: it always has one ready."""
    messages: int
    """That count."""
    size_bytes: int = 500
    silence_ms: float = SILENCE_MS
    activity: tuple[float, ...] = ()
    """By member: how many times as often as `gap_ms` says it has a message. Empty: once."""
    batch: int = 0
    """Of Pinwheel: most messages that one acknowledgment orders. 0: all that wait."""

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"protocol is one of {', '.join(PROTOCOLS)}, not {self.protocol!r}")
        if self.nodes < 2 or self.messages < 1:
            raise ValueError("a run needs 2 nodes and 1 message at least")
        if self.gap_ms < 0 or min(self.activity, default=1) <= 0:
            raise ValueError("gap_ms is 0 or more, and an activity more than 0")
        if self.activity and len(self.activity) != self.nodes:
            raise ValueError(f"{len(self.activity)} activities for {self.nodes} nodes; give all")
        if self.batch and self.protocol != "pinwheel":
            raise ValueError("batch is an option of pinwheel alone")

    @property
    def rates(self) -> tuple[float, ...]:
        """By member: messages a second."""
        return tuple(a * 1000 / self.gap_ms for a in self.activity or (1.0,) * self.nodes)

    @property
    def cost(self) -> float:
        """About how many frames arrive: what the run costs, next to others."""
        frames = 2.0 * self.messages * self.nodes
        if self.protocol == "totem" and self.gap_ms:
            frames += self.messages / sum(self.rates) * 1e4  # The token never rests.
        return frames


class Ethernet(Bus):
    """A bus on which short frames take as long as the shortest allowed."""

    __slots__ = ()

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        size = max(size, LEAST_BYTES - self.overhead_bytes)
        return Bus.arrivals(self, now, sender, receivers, size)


def run(cell: Cell, seed: int) -> Measures:
    """What comes of a cell, by name. A pure function."""
    return _Run(cell, seed).measure()


class _Run:
    """One run: a group, what its applications do, and what is noted of it."""

    def __init__(self, cell: Cell, seed: int) -> None:
        self._cell = cell
        self._rates = cell.rates if cell.gap_ms else (1.0,) * cell.nodes
        self.lifetimes = Lifetimes(cell.nodes)
        names = tuple(f"{i:03}" for i in range(cell.nodes))
        self.world = World(
            names,
            partial(_stack, members=names, factory=_factory(cell)),
            Ethernet(overhead_bytes=ETHERNET_OVERHEAD_BYTES - framing_bytes(cell)),
            self.lifetimes.append,
            choices=Choices(seed, record=False),
            net_rows=False,
            observer=None if cell.gap_ms else self._again,
        )
        self._payload = bytes(cell.size_bytes)
        self._random = [Random(f"roundelay/{seed}/dtp/{name}") for name in names]
        self._numbers = [0] * cell.nodes
        """By member: messages handed over."""
        self._submitted = 0
        self._warm = WARM_UP_MESSAGES * cell.nodes
        self._begin = (0, 0)
        self._end = (0, 0)
        """Time, and frames on the wire, where the measured time begins and ends."""
        self._buffers = Buffers()

    def measure(self) -> Measures:
        cell, loop = self._cell, self.world.loop
        self.world.start()
        for member in range(cell.nodes):
            if cell.gap_ms:
                self._follow(member)
            else:
                begin = self._random[member].randrange(MS)
                loop.at(begin, self._stock_up, member)
        step = round(S / sum(self._rates)) if cell.gap_ms else MS
        while not self._end[0] or self.lifetimes.alive:
            self.world.run(step)
            if self.lifetimes.counting:
                self._buffers.sample(self.world)
        return self._measures()

    # The applications

    def _follow(self, member: int) -> None:
        gap_s = self._random[member].expovariate(self._rates[member])
        self.world.loop.at(self.world.loop.now + round(gap_s * S), self._arrive, member)

    def _arrive(self, member: int) -> None:
        self._submit(member)
        self._follow(member)

    def _stock_up(self, member: int) -> None:
        for _ in range(BACKLOG_MESSAGES):
            self._submit(member)

    def _again(self, node: NodeId, verb: str, what: Any) -> None:
        if verb == "receipt":
            # Not at once: the node is in the midst of its effects.
            self.world.loop.at(self.world.loop.now, self._submit, self.world.numbers[node])

    def _submit(self, member: int) -> None:
        now, number = self.world.loop.now, self._numbers[member]
        if self._submitted == self._warm:
            self._begin = now, self.world.frames
            self.lifetimes.counting = True
        elif self._submitted == self._warm + self._cell.messages:
            self._end = now, self.world.frames
            self.lifetimes.counting = False
        if self.lifetimes.counting:
            self.lifetimes.submitted(member, number, now)
        self._numbers[member] = number + 1
        self._submitted += 1
        self.world.submit(self.world.nodes[member], self._payload)

    # Figures

    def _measures(self) -> Measures:
        lives = self.lifetimes
        time_ns, frames = (b - a for a, b in zip(self._begin, self._end, strict=True))
        members = range(self._cell.nodes)
        sent = [lives.originated[member] for member in members]
        passed = [lives.released[member] for member in members]
        rates = self._rates
        return {
            "delivery_ms": lives.delivery_ns / lives.delivered / MS,
            "stability_ms": lives.stability_ns / lives.stable / MS,
            **self._buffers.measures(),
            "overhead": (frames - sum(sent)) / sum(sent),
            "rate_per_s": sum(sent) / time_ns * S,
            "rotation_ms": time_ns / fmean(passed) / MS,
            "ordering_variation": variation(passed),
            "work_variation": variation([a + b for a, b in zip(sent, passed, strict=True)]),
            "busiest_share": _share(passed, rates, max(rates)),
            "idlest_share": _share(passed, rates, min(rates)),
        }


class Buffers:
    """What members hold, sampled."""

    def __init__(self) -> None:
        self._samples = 0
        self._msgs = self._acks = 0
        self._msgs_max = self._acks_max = 0

    def sample(self, world: World) -> None:
        for host in world.hosts.values():
            msgs, acks = buffered(host.core)
            self._samples += 1
            self._msgs += msgs
            self._acks += acks
            self._msgs_max = max(self._msgs_max, msgs)
            self._acks_max = max(self._acks_max, acks)

    def measures(self) -> Measures:
        return {
            "buffer": (self._msgs + self._acks) / self._samples,
            "buffer_msgs_max": self._msgs_max,
            "buffer_acks_max": self._acks_max,
        }


def buffered(core: Core[Any]) -> tuple[int, int]:
    """Messages and acknowledgments that a member keeps for others. Totem has no acknowledgments."""
    assert isinstance(core, StaticStack)
    engine = core.engine
    if isinstance(engine, TotemEngine):
        return len(engine.ring.have), 0
    assert isinstance(engine, DtpEngine)
    return len(engine.ledger.msgs), len(engine.ledger.acks)


def framing_bytes(cell: Cell) -> int:
    """What our frame with one message has beyond that message."""
    factory = _factory(cell)
    core = _stack(Boot("sim", "000"), members=("000", "001"), factory=factory)
    packet = Packet(Span("000", 0, 0), Service.AGREED, pack([bytes(cell.size_bytes)]))
    message = Data(1, packet) if cell.protocol == "totem" else Msg(0, 1, 0, packet)
    frame = Endpoint(Boot("sim", "000"), core.codec).encode(message, ViewId(0, "000"))[1]
    return len(frame) - cell.size_bytes


def variation(counts: list[int]) -> float:
    return pstdev(counts) / fmean(counts)


def _share(passed: list[int], rates: tuple[float, ...], rate: float) -> float:
    """Of all transfers of the token, the part of a member that is so active, on average."""
    alike = [count for count, r in zip(passed, rates, strict=True) if r == rate]
    return fmean(alike) / sum(passed)


def _factory(cell: Cell) -> EngineFactory:
    if cell.protocol == "totem":
        return engine_factory("totem", {"idle_rotations": "1000000000"})
    silence_s = cell.silence_ms / 1000
    # Who is silent has not lost anything: repetitions come later than that.
    options = {"silence_s": str(silence_s), "ack_repeat_s": str(1.5 * silence_s)}
    if cell.batch:
        options["batch_packets"] = str(cell.batch)
    return engine_factory(cell.protocol, options)


def _stack(boot: Boot, *, members: tuple[NodeId, ...], factory: EngineFactory) -> StaticStack:
    return StaticStack(boot, members, factory, GROUP)
