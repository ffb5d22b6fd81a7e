"""Runs of Totem on a model of the five workstations of [Totem95], section 9.

    the paper's machine                 here
    10 Mbit/s Ethernet                  `Bus`: one frame at a time, first come first served, no
                                        collisions
    0.90 ms of wire for a packet        `Bus.overhead_bytes`, chosen so that our frame with a
    with 1024 bytes                     message of 1024 bytes, headers and all, takes that long
    0.8 ms of processor to send         `Costs.send_ns`, for every frame, tokens too
    0.45 ms to receive                  `Costs.receive_ns`
    0.7 ms for a token                  `Costs.tag_ns`, instead of the 0.45 ms, for the regular
                                        token, the Commit token and that of a forming ring
    window_size, max_messages = 30      `window_packets`, `visit_packets`
    a message is a packet               `packet_messages=1`
    the token spins                     `idle_rotations` so large that it never rests

The paper gives none of these costs: they are assumed. What a token costs can be read in two ways,
and both are measured: 0.7 ms to take it in, so that a hop, with 0.8 ms for sending it, is 1.5 ms of
processor (`SLOW_HOP`); or 0.7 ms for the whole hop, so that sending it is free (`QUICK_HOP`).
Handing a message over, delivering it and writing to stable storage cost nothing.

A host does one thing at a time: a message that is handed over while the processor is busy with the
token waits for its next visit.

Chance is in the arrival of messages, in the moments at which tokens are lost, and, where everybody
is always ready, in the moment at which each sender begins.

`Cell` and `run` at the end put all of these runs behind one name, and those of `accelerated`, which
are on other machines.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from random import Random
from statistics import fmean
from typing import Any, Literal

from roundelay.core.contract import Boot, Core, EngineFactory
from roundelay.core.effects import Effect, Kind
from roundelay.core.ids import NodeId, Packet, Service, Span, View, ViewId
from roundelay.experiments.feed import FOREVER_NS, feed
from roundelay.experiments.meter import Meter
from roundelay.experiments.papers.totem import accelerated
from roundelay.experiments.results import Measures
from roundelay.group.body import pack
from roundelay.group.packer import GroupConfig
from roundelay.group.stack import Stack
from roundelay.group.static import StaticStack
from roundelay.membership.ring import Ring
from roundelay.protocols.totem import Config, Data, Message, TotemEngine
from roundelay.sim.costs import Costs
from roundelay.sim.faults import Choices
from roundelay.sim.load import Load
from roundelay.sim.network import Bus
from roundelay.sim.transmission import Transmission
from roundelay.sim.world import Observer, World
from roundelay.trace.recorder import Append
from roundelay.trace.schema import Row
from roundelay.wire.endpoint import Endpoint

NODES = ("a", "b", "c", "d", "e")
MS = 1_000_000
S = 1_000_000_000

WIRE_BYTES = 1125
"""What a message of 1024 bytes is on the wire: 0.90 ms at 10 Mbit/s."""
TOKENS = ("TOKEN", "COMMIT", "RTOKEN")
SLOW_HOP = Costs(send_ns=800_000, receive_ns=450_000, tag_ns=dict.fromkeys(TOKENS, 700_000))
QUICK_HOP = replace(SLOW_HOP, send_tag_ns=dict.fromkeys(TOKENS, 0))
CONFIG = Config(window_packets=30, visit_packets=30, idle_rotations=1_000_000_000)
GROUP = GroupConfig(packet_messages=1)

SMALL_BYTES = 100
BACKLOG_MESSAGES = 600
"""Messages that wait at a sender that is always ready: twenty windows."""
WARM_UP_NS = 1 * S
"""Virtual time at the beginning of each run that is not measured."""


class LiteralRing(Ring[Packet]):
    """Flow control as §8.2 has it: what this node sent in its last visit counts against it."""

    def _allowed(self, others: int) -> int:
        config = self.config
        return max(0, min(config.visit_packets, config.window_packets - others - self.sent))


class LiteralEngine(TotemEngine):
    """Totem on such a ring."""

    def start(self, view: View) -> list[Effect[Message]]:
        effects = super().start(view)
        # The first visit is over by now. Nothing had been sent, so both rules allowed the same.
        ring = LiteralRing(self.ring.me, self.ring.size, self.ring.config)
        vars(ring).update(vars(self.ring))
        self.ring = ring
        return effects


# Runs


def a_world(
    seed: int,
    append: Append,
    *,
    engine: type[TotemEngine] = TotemEngine,
    config: Config = CONFIG,
    costs: Costs = SLOW_HOP,
    views: bool = False,
    observer: Observer | None = None,
) -> World:
    """The five workstations; with `views` they form their ring by themselves."""

    def core(boot: Boot) -> Core[Any]:
        factory: EngineFactory = partial(engine, config=config)
        if views:
            return Stack(boot, NODES, factory, group=GROUP)
        return StaticStack(boot, NODES, factory, GROUP)

    return World(
        NODES,
        core,
        Bus(overhead_bytes=WIRE_BYTES - _frame_bytes(1024)),
        append,
        choices=Choices(seed, record=False),
        costs=costs,
        net_rows=False,
        observer=observer,
    )


def _frame_bytes(size: int) -> int:
    """How long our frame is that carries one message of this size."""
    endpoint = Endpoint(Boot("sim", NODES[0]), TotemEngine.codec)
    packet = Packet(Span(NODES[0], 0, 0), Service.AGREED, pack([bytes(size)]))
    return len(endpoint.encode(Data(1, packet), ViewId(0, NODES[0]))[1])


def saturated(
    seed: int,
    seconds: int,
    *,
    size: int = 1024,
    senders: Sequence[NodeId] = NODES,
    engine: type[TotemEngine] = TotemEngine,
    costs: Costs = SLOW_HOP,
    append: Append | None = None,
) -> float:
    """Messages ordered per second while these senders always have some waiting. Rows go to
    `append` too."""
    start, end = WARM_UP_NS, WARM_UP_NS + seconds * S
    meter = Meter(len(NODES), start, end)
    payload = bytes(size)

    def submit(node: NodeId) -> None:
        world.submit(node, payload)

    def again(node: NodeId, verb: str, what: Any) -> None:
        if verb == "receipt":
            # Not at once: the node is in the midst of its effects.
            world.loop.at(world.loop.now, submit, node)

    def begin(node: NodeId) -> None:
        for _ in range(BACKLOG_MESSAGES):
            submit(node)

    world = a_world(seed, _both(meter.append, append), engine=engine, costs=costs, observer=again)
    world.start()
    random = Random(f"roundelay/{seed}/claims/begin")
    for node in senders:
        world.loop.at(random.randrange(WARM_UP_NS // 10), begin, node)
    world.run(end)
    return meter.deliveries / len(NODES) / seconds


@dataclass(frozen=True, slots=True)
class Latency:
    """Means of one run, in milliseconds."""

    latency_ms: float
    wait_ms: float
    """For the token: the part of it before the message is first broadcast."""
    rotation_ms: float

    @property
    def rotations(self) -> float:
        return self.latency_ms / self.rotation_ms


def poisson(
    seed: int, seconds: int, *, rate: float, service: Service, costs: Costs = SLOW_HOP
) -> Latency:
    """Latency when messages of 1024 bytes come at random, so many a second over all nodes."""
    start, end = WARM_UP_NS, WARM_UP_NS + seconds * S
    meter = Meter(len(NODES), start, end)
    world = a_world(seed, meter.append, costs=costs)
    world.start()
    _feed(world, seed, rate, service, end_ns=end, meter=meter)
    world.run(end)
    while meter.flying:
        world.run(S)
    return Latency(fmean(meter.latency_ns) / MS, fmean(meter.wait_ns) / MS, meter.rotation_ns / MS)


def token_losses(
    seed: int, count: int, *, rate: float = 400, costs: Costs = SLOW_HOP
) -> list[float]:
    """Milliseconds from the loss of a token on the wire to its acceptance where it was to go."""
    lost = TokenLoss()
    times: list[float] = []

    def append(row: Row) -> None:
        if row.kind == Kind.TOKEN and row.tag == "acquire" and lost.at is not None:
            times.append((row.t_ns - lost.at) / MS)
            lost.at = None

    world = a_world(seed, append, costs=costs)
    world.start()
    lost.watch(world)
    _feed(world, seed, rate, Service.AGREED)
    _lose_tokens(world, seed, count, lost, lambda: len(times))
    return times


@dataclass(frozen=True, slots=True)
class Reformation:
    """One new ring after the loss of a token that nobody sends again."""

    total_ms: float
    """From the loss to the last installation of the new view."""
    forming_ms: float
    """Of that, what came after the first node had missed the token."""
    hops: int
    """Of the Commit token and that of the forming ring, meanwhile."""


def reformations(
    seed: int, count: int, *, rate: float = 400, costs: Costs = SLOW_HOP
) -> list[Reformation]:
    """Destroy tokens of a ring that does not retransmit them, all nodes alive."""
    done: list[Reformation] = []
    lost = TokenLoss()
    suspected: list[int] = []
    installed: list[NodeId] = []
    hops = 0

    def observe(node: NodeId, verb: str, what: Any) -> None:
        nonlocal hops
        if lost.at is None:
            return
        now = world.loop.now
        if verb == "suspects":
            suspected.append(now)
        elif verb == "sends" and what.tag in ("COMMIT", "RTOKEN"):
            hops += 1
        elif verb == "installs" and what.members == NODES and not what.transitional:
            installed.append(node)
            if len(installed) == len(NODES):
                total, forming = now - lost.at, now - suspected[0]
                done.append(Reformation(total / MS, forming / MS, hops))
                suspected.clear()
                installed.clear()
                hops, lost.at = 0, None

    config = replace(CONFIG, token_retransmit_s=3600.0)
    world = a_world(
        seed, lambda row: None, config=config, costs=costs, views=True, observer=observe
    )
    world.start()
    lost.watch(world)
    world.run(WARM_UP_NS)
    _feed(world, seed, rate, Service.AGREED)
    _lose_tokens(world, seed, count, lost, lambda: len(done))
    return done


class TokenLoss:
    """Loses one token on the wire whenever it is asked to, and remembers when."""

    def __init__(self) -> None:
        self.at: int | None = None
        """When a token was lost, in nanoseconds; None once the ring has got over it, which the
        observer of the run decides."""
        self.asked = False

    def watch(self, world: World) -> None:
        """Look at every frame of a world; to be called once."""

        def loses(transmission: Transmission, receiver: NodeId) -> bool:
            if not self.asked or transmission.tag != "TOKEN":
                return False
            self.asked = False
            self.at = world.loop.now
            return True

        world.filters.append(loses)


def _lose_tokens(
    world: World, seed: int, count: int, loss: TokenLoss, done: Callable[[], int]
) -> None:
    """Lose `count` tokens, each some random time after the ring has got over the last one."""
    random = Random(f"roundelay/{seed}/claims/losses")
    world.run(WARM_UP_NS)
    for i in range(count):
        world.run(random.randrange(S // 2, S))
        loss.asked = True
        for _ in range(100):
            world.run(S // 100)
            if done() > i:
                break
        assert done() == i + 1, "the ring did not come back within a second"


def _feed(
    world: World,
    seed: int,
    rate: float,
    service: Service,
    *,
    end_ns: int = FOREVER_NS,
    meter: Meter | None = None,
) -> None:
    """Let Poisson arrivals reach all nodes until `end_ns`."""
    safe = float(service is Service.SAFE)
    load = Load(NODES, 1 << 62, rate / len(NODES), 1024, safe=safe)
    feed(world, load.draw(seed, world.loop.now, NODES), meter, end_ns)


def _both(first: Append, second: Append | None) -> Append:
    if second is None:
        return first

    def append(row: Row) -> None:
        first(row)
        second(row)

    return append


# Cells

HOPS: Mapping[float, Costs] = {1.5: SLOW_HOP, 0.7: QUICK_HOP}
"""The two readings, by the milliseconds of processor that a token hop takes."""

Workload = Literal[
    "saturated", "poisson", "token loss", "new ring", "switched saturated", "switched poisson"
]


@dataclass(frozen=True, slots=True)
class Cell:
    """The parameters of a run, without its seed."""

    workload: Workload
    hop_ms: float
    """What a token hop costs: a key of `HOPS`. 0 for the two switched ones, which are of
    `accelerated`."""
    seconds: int = 0
    """How long `saturated` and `poisson` are measured, in virtual time."""
    losses: int = 0
    """Tokens that are lost, one after the other, in the two others."""
    senders: int = len(NODES)
    """Of `saturated`."""
    size_bytes: int = 1024
    """Of its messages."""
    flow: Literal["corrected", "printed"] = "corrected"
    """Its rule of flow control."""
    rate_per_s: float = 400.0
    """Messages over all nodes, in the three others."""
    service: Literal["agreed", "safe"] = "agreed"
    """Of `poisson`."""
    link_bps: int = 1_000_000_000
    """Of the switched ones: a key of `LATENCY_NS`."""
    accelerated: int = 0
    """Of the same: packets that follow the token."""
    length_ms: int = 0
    """How long they are measured, in virtual time."""

    def __post_init__(self) -> None:
        if self.workload.startswith("switched"):
            self._check_switched()
            return
        if self.hop_ms not in HOPS:
            raise ValueError(f"hop_ms is {' or '.join(map(str, HOPS))}, not {self.hop_ms}")
        if not 1 <= self.senders <= len(NODES):
            raise ValueError(f"senders are 1 to {len(NODES)}, not {self.senders}")
        if (self.seconds if self.workload in ("saturated", "poisson") else self.losses) < 1:
            raise ValueError(f"{self.workload} needs a length: seconds or losses, at least 1")

    def _check_switched(self) -> None:
        if self.hop_ms:
            raise ValueError(f"hop_ms is 0 for {self.workload}, not {self.hop_ms}")
        if self.link_bps not in accelerated.LATENCY_NS:
            rates = " or ".join(map(str, accelerated.LATENCY_NS))
            raise ValueError(f"link_bps is {rates}, not {self.link_bps}")
        if self.length_ms < 1:
            raise ValueError(f"{self.workload} needs a length: length_ms, at least 1")

    @property
    def cost(self) -> float:
        """Virtual seconds: the token never rests. Where all are always ready there are messages
        besides, as many as the wire can carry. Of switched networks as many as take about as
        long."""
        if self.length_ms:
            return self.length_ms * self.link_bps / 1e9
        busy = 2.5 if self.workload == "saturated" else 1.0
        return 1.0 + busy * self.seconds + self.losses


def run(cell: Cell, seed: int) -> Measures:
    """What comes of a cell, by name; of lost tokens, means over them."""
    if cell.workload.startswith("switched"):
        return _switched(cell, seed)
    costs = HOPS[cell.hop_ms]
    if cell.workload == "saturated":
        rate = saturated(
            seed,
            cell.seconds,
            size=cell.size_bytes,
            senders=NODES[: cell.senders],
            engine=LiteralEngine if cell.flow == "printed" else TotemEngine,
            costs=costs,
        )
        return {"rate_per_s": rate}
    if cell.workload == "poisson":
        service = Service.SAFE if cell.service == "safe" else Service.AGREED
        return asdict(
            poisson(seed, cell.seconds, rate=cell.rate_per_s, service=service, costs=costs)
        )
    if cell.workload == "token loss":
        times = token_losses(seed, cell.losses, rate=cell.rate_per_s, costs=costs)
        return {"loss_ms": fmean(times)}
    formed = reformations(seed, cell.losses, rate=cell.rate_per_s, costs=costs)
    return {
        "total_ms": fmean(r.total_ms for r in formed),
        "forming_ms": fmean(r.forming_ms for r in formed),
        "hops": fmean(r.hops for r in formed),
    }


def _switched(cell: Cell, seed: int) -> Measures:
    """A cell of the machines of [BabayAmir16]."""
    ring = (cell.link_bps, cell.accelerated, cell.length_ms)
    if cell.workload == "switched saturated":
        return {"rate_per_s": accelerated.saturated(seed, *ring)}
    safe = cell.service == "safe"
    return asdict(accelerated.poisson(seed, *ring, per_s=cell.rate_per_s, safe=safe))
