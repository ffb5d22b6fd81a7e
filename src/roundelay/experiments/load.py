"""Any engine under a load, on a network with loss: the experiment for plans of one's own.

Nodes on a `Lan` are handed messages at random, each at the same rate. When the last has been handed
over the faults end, and whatever can still be delivered has `QUIET_NS` of virtual time for it.
"""

from dataclasses import asdict, dataclass
from statistics import fmean, quantiles
from typing import Any, Literal

from roundelay import __version__
from roundelay.core.contract import Boot, Core
from roundelay.experiments.feed import feed
from roundelay.experiments.meter import Meter
from roundelay.experiments.results import Measures
from roundelay.group.engines import engine_config, engine_factory, envelope, without_views
from roundelay.group.stack import Stack
from roundelay.group.static import StaticStack
from roundelay.sim.faults import Choices, Rates
from roundelay.sim.load import Load
from roundelay.sim.network import Lan
from roundelay.sim.world import World
from roundelay.trace.manifest import Manifest
from roundelay.trace.recorder import Append
from roundelay.trace.schema import Row

MS = 1_000_000
S = 1_000_000_000
FORMING_NS = 1 * S
"""Virtual time in which a group with views forms its first view, before the load begins. Were it
too short, the first messages would wait for the view and count as slow."""
QUIET_NS = 2 * S
"""Virtual time without faults at the end, for what is still to be delivered. Were it too short,
`delivered_share` would be below 1 for an engine that loses nothing."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The parameters of a run, without its seed."""

    protocol: str
    nodes: int = 3
    messages: int = 1000
    """In all."""
    rate_per_s: float = 100.0
    """Messages of each node."""
    size_bytes: int = 64
    loss_share: float = 0.0
    """Of the copies of frames."""
    safe_share: float = 0.0
    """Of the messages."""
    latency_us: float = 100.0
    """Between any two nodes."""
    mode: Literal["static", "views"] = "static"

    def __post_init__(self) -> None:
        if self.nodes < 2 or self.messages < 2 or self.rate_per_s <= 0:
            raise ValueError("nodes and messages are at least 2, and the rate is more than 0")
        if self.mode == "views" and (why := without_views(self.protocol)):
            raise ValueError(f"{why}; write mode = 'static'")
        engine_config(self.protocol)

    @property
    def cost(self) -> float:
        """About how many frames arrive; those of loss are sent again."""
        return self.messages * self.nodes / (1.0 - min(0.9, self.loss_share))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"n{i:02}" for i in range(self.nodes))


def manifest(cell: Cell, seed: int) -> Manifest:
    """What the trace of a run says of itself; its `run` is for the caller to name."""
    config = engine_config(cell.protocol)
    return Manifest(
        run="",
        nodes=cell.names,
        protocol=cell.protocol,
        resilience=getattr(config, "resilience", None),
        envelope=envelope(cell.protocol),
        mode=cell.mode,
        seed=seed,
        revision=__version__,
        config={"cell": asdict(cell)},
        bound_ns=QUIET_NS,
    )


def run(cell: Cell, seed: int, append: Append | None = None) -> Measures:
    """The measures of a cell, by name. Every row of the trace goes to `append` too."""
    meter = Meter(cell.nodes)

    def record(row: Row) -> None:
        meter.append(row)
        if append is not None:
            append(row)

    factory = engine_factory(cell.protocol)

    def core(boot: Boot) -> Core[Any]:
        stack = StaticStack if cell.mode == "static" else Stack
        return stack(boot, cell.names, factory)

    world = World(
        cell.names,
        core,
        Lan(latency_ns=round(cell.latency_us * 1000)),
        record,
        choices=Choices(seed, record=False),
        net_rows=append is not None,
    )
    world.start()
    world.run(0 if cell.mode == "static" else FORMING_NS)
    world.set_rates(Rates(loss=cell.loss_share))
    load = Load(
        cell.names, cell.messages, cell.rate_per_s, cell.size_bytes, safe=cell.safe_share
    ).draw(seed, world.loop.now, cell.names)
    frames = world.frames
    feed(world, load, meter)
    while sum(meter.submissions) < cell.messages:
        world.run(S // 10)
    frames = world.frames - frames
    world.heal()
    world.run(QUIET_NS)
    world.end()
    latency_ms = [latency_ns / MS for latency_ns in meter.latency_ns]
    cuts = quantiles(latency_ms, n=100) if len(latency_ms) > 1 else [float("nan")] * 99
    return {
        "delivered_share": len(latency_ms) / (cell.messages * cell.nodes),
        "latency_ms": fmean(latency_ms) if latency_ms else float("nan"),
        "latency_p50_ms": cuts[49],
        "latency_p99_ms": cuts[98],
        "frames_per_message": frames / cell.messages,
    }
