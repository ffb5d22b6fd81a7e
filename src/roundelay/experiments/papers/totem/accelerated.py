"""Runs of rings, accelerated and not, on a model of the machines of [BabayAmir16].

    the paper's machines                here
    8 servers and a switch              `Switched`: a queue for each link to the switch and from it
    1 and 10 Gbit/s                     `rate_bps` of the links
    switch, cards, interrupts           `LATENCY_NS`, by the rate
    a single-threaded daemon            `COSTS`: processor for each frame; a token takes more
    messages of 1350 bytes              the same, each a packet of its own
    windows, tuned for each network     those of a ring by default: 80 packets in a rotation, 20 of
                                        them in a visit
    the accelerated window              all packets of a visit

What the paper's machines took for a frame, and their windows, are assumed. Nothing is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean
from typing import Any

from roundelay.core.contract import Boot, Core
from roundelay.core.ids import NodeId
from roundelay.experiments.feed import feed
from roundelay.experiments.meter import Meter
from roundelay.group.packer import GroupConfig
from roundelay.group.static import StaticStack
from roundelay.protocols.totem import Config, TotemEngine
from roundelay.sim.costs import Costs
from roundelay.sim.faults import Choices
from roundelay.sim.load import Load
from roundelay.sim.network import Switched
from roundelay.sim.world import Observer, World
from roundelay.trace.recorder import Append

NODES = tuple("abcdefgh")
US = 1_000
MS = 1_000_000
MESSAGE_BYTES = 1350
GROUP = GroupConfig(packet_messages=1, packet_bytes=1400)
LATENCY_NS: Mapping[int, int] = {1_000_000_000: 20 * US, 10_000_000_000: 10 * US}
"""Besides the links themselves, by their rate."""
COSTS = Costs(send_ns=1500, receive_ns=1500, tag_ns={"TOKEN": 4000})
BACKLOG_MESSAGES = 200
"""Messages that wait at a sender that is always ready: ten visits."""
BUFFER_FRAMES = 4096
WARM_UP_NS = 20 * MS
"""Virtual time at the beginning of each run that is not measured."""


def mbit_per_s(messages_per_s: float) -> float:
    """So many messages a second, without headers."""
    return messages_per_s * MESSAGE_BYTES * 8 / 1e6


def saturated(seed: int, rate_bps: int, accelerated: int, length_ms: int) -> float:
    """Messages ordered per second while all senders always have some waiting."""
    end = WARM_UP_NS + length_ms * MS
    meter = Meter(len(NODES), WARM_UP_NS, end)

    def submit(node: NodeId) -> None:
        world.submit(node, bytes(MESSAGE_BYTES))

    def again(node: NodeId, verb: str, what: Any) -> None:
        if verb == "receipt":
            world.loop.at(world.loop.now, submit, node)

    def begin(node: NodeId) -> None:
        for _ in range(BACKLOG_MESSAGES):
            submit(node)

    world = _world(seed, meter.append, rate_bps, accelerated, again)
    world.start()
    random = Random(f"roundelay/{seed}/claims/begin")
    for node in NODES:
        world.loop.at(random.randrange(WARM_UP_NS // 4), begin, node)
    world.run(end)
    return meter.deliveries / len(NODES) / (length_ms / 1000)


@dataclass(frozen=True, slots=True)
class Delay:
    """Means of one run, in milliseconds."""

    latency_ms: float
    rotation_ms: float


def poisson(
    seed: int, rate_bps: int, accelerated: int, length_ms: int, *, per_s: float, safe: bool
) -> Delay:
    """Latency when messages come at random, so many a second over all nodes."""
    end = WARM_UP_NS + length_ms * MS
    meter = Meter(len(NODES), WARM_UP_NS, end)
    world = _world(seed, meter.append, rate_bps, accelerated)
    world.start()
    load = Load(NODES, 1 << 62, per_s / len(NODES), MESSAGE_BYTES, safe=float(safe))
    feed(world, load.draw(seed, world.loop.now, NODES), meter, end)
    world.run(end)
    while meter.flying:
        world.run(10 * MS)
    return Delay(fmean(meter.latency_ns) / MS, meter.rotation_ns / MS)


def _world(
    seed: int, append: Append, rate_bps: int, accelerated: int, observer: Observer | None = None
) -> World:
    """The eight servers."""
    config = Config(accelerated=accelerated, idle_rotations=1_000_000_000)

    def core(boot: Boot) -> Core[Any]:
        return StaticStack(boot, NODES, partial(TotemEngine, config=config), GROUP)

    return World(
        NODES,
        core,
        Switched(rate_bps, LATENCY_NS[rate_bps]),
        append,
        choices=Choices(seed, record=False),
        costs=COSTS,
        net_rows=False,
        buffer_frames=BUFFER_FRAMES,
        observer=observer,
    )
