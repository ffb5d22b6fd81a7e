"""Figures out of many runs: medians, spreads, and ratios to peers within a round."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from roundelay.bench.ring import runs
from roundelay.bench.ring.cluster import SplitError
from roundelay.bench.ring.jobs import Cell
from roundelay.bench.ring.systems import OURS, System

Report = Callable[[int, int], None]
"""Told of progress: steps done, steps in all."""

QUICK: tuple[Cell, ...] = (
    Cell(),
    Cell(reading="messages"),
    Cell(size=1000),
    Cell(nodes=5),
    Cell(datagram=1400),
)
"""What is measured unless more is asked for."""


def full() -> tuple[Cell, ...]:
    """Every size at both sizes of groups and datagrams; and then one thing changed at a time."""
    plain = [
        Cell(size=size, nodes=nodes, datagram=datagram)
        for datagram, nodes, size in itertools.product((60_000, 1400), (3, 5), (100, 1000, 10_000))
    ]
    groups = list(itertools.product((3, 5), (100, 1000, 10_000)))
    return (
        *plain,
        *(Cell(size=size, nodes=nodes, reading="messages") for nodes, size in groups),
        *(Cell(size=size, nodes=nodes, service="safe") for nodes, size in groups),
        *(Cell(size=size, nodes=nodes, senders="one") for nodes, size in groups),
        *(
            Cell(nodes=n, datagram=d, trace=True)
            for n, d in itertools.product((3, 5), (60_000, 1400))
        ),
    )


@dataclass(frozen=True, slots=True)
class Rival:
    """A peer in the same rounds."""

    msgs_per_s: float
    ratio: float
    """Ours to its, the median over rounds."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """One cell over all rounds; medians, and the lowest and highest rate."""

    cell: Cell
    msgs_per_s: float
    lowest: float
    highest: float
    cpu_us_per_msg: float
    """Of all nodes together: where the machine does other work too, this tells more."""
    peak_mb: float
    """Of the largest node."""
    suspicions: int
    """In all rounds: there should be none."""
    splits: int
    """Rounds that came to nothing, as nodes lost sight of others that were running. If all did,
    the figures are 0."""
    peers: Mapping[str, Rival]


@dataclass(frozen=True, slots=True)
class Latency:
    """From handing over to delivery, over all nodes and rounds."""

    system: str
    engine: str | None
    """None for peers."""
    nodes: int
    per_s: float
    samples: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Idle:
    """What a node with nothing to do takes of a processor: the mean over nodes, and the most."""

    engine: str
    nodes: int
    cpu_share: float
    highest: float


@dataclass(frozen=True, slots=True)
class Recoveries:
    """Crashes and returns of different nodes; medians, and the longest in `_max`."""

    engine: str
    nodes: int
    timeout_s: float | None
    """None: the default."""
    crashes: int
    crash_s: float
    crash_s_max: float
    rejoin_s: float
    rejoin_s_max: float
    restart_s: float


def throughput(
    cells: Sequence[Cell], peers: Sequence[System], seconds: float, rounds: int, report: Report
) -> list[Throughput]:
    """Every cell, and every peer where it has something to compare with, in turn."""
    plan: list[tuple[System, Cell]] = []
    for cell in cells:
        plan += [(peer, _common(cell)) for peer in peers if (peer, _common(cell)) not in plan]
        plan.append((OURS, cell))
    found: dict[tuple[str, Cell], list[runs.Load | None]] = {(s.name, cell): [] for s, cell in plan}
    for i in range(rounds):
        for j, (system, cell) in enumerate(plan):
            try:
                load = runs.load(system, cell, seconds)
            except SplitError:
                load = None
            found[system.name, cell].append(load)
            report(i * len(plan) + j + 1, rounds * len(plan))
    return [
        _throughput(
            cell,
            found[OURS.name, cell],
            {peer.name: found[peer.name, _common(cell)] for peer in peers},
        )
        for cell in cells
    ]


def _common(cell: Cell) -> Cell:
    """What of a cell means something to a peer."""
    return Cell(size=cell.size, nodes=cell.nodes, senders=cell.senders)


def _throughput(
    cell: Cell,
    rounds: Sequence[runs.Load | None],
    peers: Mapping[str, Sequence[runs.Load | None]],
) -> Throughput:
    loads = [load for load in rounds if load is not None]
    if not loads:
        return Throughput(cell, 0.0, 0.0, 0.0, 0.0, 0.0, 0, len(rounds), {})
    rates = [load.msgs_per_s for load in loads]
    rivals = {}
    for name, theirs in peers.items():
        pairs = [(a, b) for a, b in zip(rounds, theirs, strict=True) if a and b]
        if pairs:
            rivals[name] = Rival(
                median(b.msgs_per_s for _, b in pairs),
                median(a.msgs_per_s / b.msgs_per_s for a, b in pairs),
            )
    return Throughput(
        cell,
        msgs_per_s=median(rates),
        lowest=min(rates),
        highest=max(rates),
        cpu_us_per_msg=median(load.cpu_s / load.messages * 1e6 for load in loads),
        peak_mb=max(load.peak_mb for load in loads),
        suspicions=sum(load.suspicions for load in loads),
        splits=len(rounds) - len(loads),
        peers=rivals,
    )


def latency(
    systems: Sequence[System],
    cell: Cell,
    per_s: float,
    seconds: float,
    rounds: int,
    report: Report,
) -> list[Latency]:
    """The senders at a slow pace, in each system in turn."""
    samples: dict[str, list[float]] = {system.name: [] for system in systems}
    for i in range(rounds):
        for j, system in enumerate(systems):
            samples[system.name] += runs.latencies(system, cell, per_s, seconds)
            report(i * len(systems) + j + 1, rounds * len(systems))
    return [
        Latency(
            name,
            cell.engine if name == OURS.name else None,
            cell.nodes,
            per_s,
            len(times),
            p50_ms=quantile(times, 0.5) * 1e3,
            p99_ms=quantile(times, 0.99) * 1e3,
        )
        for name, times in samples.items()
    ]


def idle(cell: Cell, seconds: float) -> Idle:
    shares = runs.idle(cell, seconds)
    return Idle(cell.engine, cell.nodes, sum(shares) / len(shares), max(shares))


def recovery(cell: Cell, crashes: int) -> Recoveries:
    """Crash one node after the other, the ring's first one among them."""
    found = runs.recovery(cell, range(crashes))
    return Recoveries(
        cell.engine,
        cell.nodes,
        cell.timeout_s,
        crashes,
        crash_s=median(r.crash_s for r in found),
        crash_s_max=max(r.crash_s for r in found),
        rejoin_s=median(r.rejoin_s for r in found),
        rejoin_s_max=max(r.rejoin_s for r in found),
        restart_s=median(r.restart_s for r in found),
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
