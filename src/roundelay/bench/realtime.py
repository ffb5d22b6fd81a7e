"""Measures how many times faster than real time the simulator runs a Totem ring.

Five nodes with views on a network of 100 us latency submit a thousand messages of 1 KB a second in
all. The ring is run in five ways in turn: without a trace, with a trace in memory, with the online
checker as well, with rows for the token's hops as well, and with rows for every frame as well. The
token makes some ten thousand hops a second, which are most of the work. Where frames have no rows,
one of fifty goes through its bytes, and the others are handed over as objects.
"""

import cProfile
import pstats
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from roundelay.check.online import OnlineChecker
from roundelay.core.contract import Boot
from roundelay.group.engines import engine_factory
from roundelay.group.stack import Stack
from roundelay.sim.collection import rare_collection
from roundelay.sim.faults import Choices
from roundelay.sim.load import Load
from roundelay.sim.network import Lan
from roundelay.sim.world import World
from roundelay.trace.recorder import Append
from roundelay.trace.schema import Row

NODES = ("a", "b", "c", "d", "e")
LATENCY_NS = 100_000
MESSAGES_PER_S = 1000
MESSAGE_BYTES = 1024
BYTES_EVERY = 50
"""As the swarm has it for most of its seeds."""
FORMING_NS = 1_000_000_000
"""Virtual time before the measurement begins, in which all five nodes form one view."""

WAYS = (
    "bare",
    "trace",
    "trace and checker",
    "and rows for the token's hops",
    "and rows for frames (swarm)",
    "and all by bytes (sim run)",
)
"""Each has what the one before has, and more."""
Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Pace:
    """One way of running the ring, over all rounds; medians."""

    way: str
    virtual_s: float
    cpu_s: float
    times_real_time: float
    events_per_s: float
    rows: int


@dataclass(frozen=True, slots=True)
class _Measurement:
    cpu_s: float
    events: int
    rows: int


def compare(virtual_s: float, rounds: int, report: Report) -> list[Pace]:
    """Run the ring in each way, in turn."""
    runs: dict[str, list[_Measurement]] = {way: [] for way in WAYS}
    for i in range(rounds):
        for j, way in enumerate(WAYS):
            runs[way].append(_run(way, virtual_s))
            report(i * len(WAYS) + j + 1, rounds * len(WAYS))
    return [_pace(way, virtual_s, runs[way]) for way in WAYS]


def a_core(boot: Boot) -> Stack:
    """The core of a node of the ring."""
    return Stack(boot, NODES, engine_factory("totem"))


def ring(
    append: Append,
    virtual_s: float,
    *,
    net_rows: bool,
    token_rows: bool,
    bytes_every: int = BYTES_EVERY,
) -> tuple[World, Callable[[], None]]:
    """A ring that has formed, and a function that lets `virtual_s` pass on it under load."""
    choices = Choices(0, record=False)
    world = World(
        NODES,
        a_core,
        Lan(LATENCY_NS),
        append,
        choices=choices,
        net_rows=net_rows,
        token_rows=token_rows,
        bytes_every=bytes_every,
    )
    world.start()
    world.run(FORMING_NS)
    each = MESSAGES_PER_S / len(NODES)
    load = Load(NODES, round(MESSAGES_PER_S * virtual_s), each, MESSAGE_BYTES)
    submissions = list(load.draw(0, world.loop.now, NODES))

    def go() -> None:
        end_ns = world.loop.now + round(virtual_s * 1e9)
        for submission in submissions:
            world.loop.run(submission.time_ns)
            world.submit(*submission[1:])
        world.loop.run(end_ns)

    return world, go


def _run(way: str, virtual_s: float) -> _Measurement:
    rows: list[Row] = []
    checker = OnlineChecker(NODES)
    sinks = dict.fromkeys(WAYS, checked(rows.append, checker.append))
    sinks |= {"bare": lambda row: None, "trace": rows.append}
    world, go = ring(
        sinks[way],
        virtual_s,
        net_rows=way in WAYS[4:],
        token_rows=way in WAYS[3:],
        bytes_every=1 if way in WAYS[5:] else BYTES_EVERY,
    )
    before = world.loop.events
    start = time.process_time()
    with rare_collection():
        go()
    cpu_s = time.process_time() - start
    assert not checker.violations, checker.violations
    return _Measurement(cpu_s, world.loop.events - before, len(rows))


@dataclass(frozen=True, slots=True)
class Share:
    """The share of time that one of our packages takes, including the built-in functions it
    calls."""

    package: str
    share: float
    calls_per_event: float


def profile(virtual_s: float) -> list[Share]:
    """Where the time goes with trace and checker, the most expensive package first. A profiler
    makes calls slower than they are, so these are shares and not times."""
    rows: list[Row] = []
    checker = OnlineChecker(NODES)
    append = checked(rows.append, checker.append)
    world, go = ring(append, virtual_s, net_rows=False, token_rows=False)
    before = world.loop.events
    profiler = cProfile.Profile(builtins=False)
    profiler.runcall(go)
    events = world.loop.events - before
    times: dict[str, float] = {}
    calls: dict[str, int] = {}
    for (file, _, _), (_, count, own, _, _) in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        _, ours, inside = file.partition("/roundelay/")
        package = inside.partition("/")[0] if ours else "Python"
        times[package] = times.get(package, 0.0) + own
        calls[package] = calls.get(package, 0) + count
    total = sum(times.values())
    shares = [Share(name, own / total, calls[name] / events) for name, own in times.items()]
    return sorted(shares, key=lambda share: -share.share)


def checked(keep: Append, check: Append) -> Append:
    """What keeps each row and then has it judged."""

    def append(row: Row) -> None:
        keep(row)
        check(row)

    return append


def _pace(way: str, virtual_s: float, runs: list[_Measurement]) -> Pace:
    return Pace(
        way,
        virtual_s,
        cpu_s=median(run.cpu_s for run in runs),
        times_real_time=median(virtual_s / run.cpu_s for run in runs),
        events_per_s=median(run.events / run.cpu_s for run in runs),
        rows=runs[-1].rows,
    )
