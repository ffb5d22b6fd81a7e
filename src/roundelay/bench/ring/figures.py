"""Computes figures from many runs: medians, spreads, and ratios to peers within a round."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from roundelay.bench.ring import runs
from roundelay.bench.ring.cluster import SplitError
from roundelay.bench.ring.jobs import Cell, Sizes, Verify
from roundelay.bench.ring.systems import OURS, System

Report = Callable[[int, int], None]
"""Called with the steps that are done and the steps in all."""

QUICK: tuple[Cell, ...] = (
    Cell(),
    Cell(sizes="uniform"),
    Cell(size=500, sizes="lognormal"),
    Cell(reading="messages"),
    Cell(size=1000),
    Cell(nodes=5),
    Cell(datagram=1400),
)
"""The cells that are measured by default. Messages of different sizes are among them: equal sizes
are the easiest to pack and unpack, and applications rarely have them."""

MIXES: tuple[tuple[Sizes, int], ...] = (("uniform", 100), ("lognormal", 500))
"""Sizes that differ, and their mean in bytes."""


def full() -> tuple[Cell, ...]:
    """Every size of messages, in both sizes of groups and of datagrams; then cells in which one
    setting differs."""
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
            Cell(size=size, nodes=n, datagram=d, sizes=sizes)
            for sizes, size in MIXES
            for d, n in itertools.product((60_000, 1400), (3, 5))
        ),
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
    """Our rate divided by the peer's, the median over rounds."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Over rounds."""

    median: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class Compared:
    """One cell divided by another one, within a round."""

    first: Cell
    """What it is divided by."""
    rounds: int
    """Those in which no node of either lost sight of another."""
    rate: Ratio
    cpu: Ratio
    """Of the CPU time per message."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """One cell over all rounds; medians, and the lowest and highest rate."""

    cell: Cell
    msgs_per_s: float
    lowest: float
    highest: float
    cpu_us_per_msg: float
    """CPU time of all nodes together. On a machine that does other work too, it says more than the
    rate."""
    peak_mb: float
    """Peak memory of the largest node."""
    suspicions: int
    """False suspicions in all rounds; there should be none."""
    splits: int
    """Rounds that failed because nodes suspected others that were running. If all rounds failed,
    the other figures are 0."""
    peers: Mapping[str, Rival]
    compared: Compared | None
    """With the first cell that has the same to do; None for that one."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Times from submit to delivery, over all nodes and rounds."""

    system: str
    engine: str | None
    """The engine of our nodes; None for peers."""
    nodes: int
    pattern: str
    per_s: float
    samples: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Idle:
    """The share of a core that an idle node takes: the mean over nodes, and the highest."""

    engine: str
    nodes: int
    cpu_share: float
    highest: float


@dataclass(frozen=True, slots=True)
class Recoveries:
    """Crashes and restarts of different nodes: medians, and the longest in `_max`."""

    engine: str
    nodes: int
    timeout_s: float | None
    """The token timeout in seconds; None for the default."""
    crashes: int
    crash_s: float
    crash_s_max: float
    pause_s: float
    """The longest pause in deliveries at a survivor."""
    pause_s_max: float
    rejoin_s: float
    rejoin_s_max: float
    restart_s: float


@dataclass(frozen=True, slots=True)
class Formation:
    """The first view of all nodes, over rounds: the median, and the longest."""

    engine: str
    nodes: int
    timeout_s: float | None
    """The token timeout in seconds; None for the default."""
    rounds: int
    formation_s: float
    """From the last node's `join` until the last node has the view of all."""
    formation_s_max: float


def throughput(
    cells: Sequence[Cell],
    peers: Sequence[System],
    seconds: float,
    rounds: int,
    report: Report,
    verify: Verify = "last",
) -> list[Throughput]:
    """Measure every cell, and every peer with the settings of the cell that it has too, in turn.
    Cells that are compared run one right after the other, and every other round in the opposite
    order, so that a machine that becomes slower or faster meanwhile favours none."""
    firsts = {cell: next(c for c in cells if _asked(c) == _asked(cell)) for cell in cells}
    plan: list[tuple[System, Cell]] = []
    for cell in sorted(cells, key=lambda cell: cells.index(firsts[cell])):
        plan += [(peer, common(cell)) for peer in peers if (peer, common(cell)) not in plan]
        plan.append((OURS, cell))
    found: dict[tuple[str, Cell], list[runs.Load | None]] = {(s.name, cell): [] for s, cell in plan}
    for i in range(rounds):
        for j, (system, cell) in enumerate(plan if i % 2 == 0 else reversed(plan)):
            try:
                load = runs.load(system, cell, seconds, verify=verify)
            except SplitError:
                load = None
            found[system.name, cell].append(load)
            report(i * len(plan) + j + 1, rounds * len(plan))
    return [
        _throughput(
            cell,
            found[OURS.name, cell],
            {peer.name: found[peer.name, common(cell)] for peer in peers},
            _compared(first, found[OURS.name, cell], found[OURS.name, first])
            if first != cell
            else None,
        )
        for cell, first in firsts.items()
    ]


def _asked(cell: Cell) -> tuple[object, ...]:
    """What a group has to do. Cells in which it is the same are compared: they differ in how."""
    return (cell.nodes, cell.senders, cell.size, cell.datagram)


def _compared(
    first: Cell, mine: Sequence[runs.Load | None], base: Sequence[runs.Load | None]
) -> Compared | None:
    """None if no round has both."""
    pairs = [(a, b) for a, b in zip(mine, base, strict=True) if a and b]
    if not pairs:
        return None
    return Compared(
        first,
        len(pairs),
        _ratio([a.msgs_per_s / b.msgs_per_s for a, b in pairs]),
        _ratio([a.cpu_us_per_msg / b.cpu_us_per_msg for a, b in pairs]),
    )


def _ratio(values: Sequence[float]) -> Ratio:
    return Ratio(median(values), min(values), max(values))


def common(cell: Cell) -> Cell:
    """The cell with only those settings that a peer has too."""
    return Cell(size=cell.size, nodes=cell.nodes, senders=cell.senders, sizes=cell.sizes)


def _throughput(
    cell: Cell,
    rounds: Sequence[runs.Load | None],
    peers: Mapping[str, Sequence[runs.Load | None]],
    compared: Compared | None,
) -> Throughput:
    loads = [load for load in rounds if load is not None]
    if not loads:
        return Throughput(cell, 0.0, 0.0, 0.0, 0.0, 0.0, 0, len(rounds), {}, None)
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
        cpu_us_per_msg=median(load.cpu_us_per_msg for load in loads),
        peak_mb=max(load.peak_mb for load in loads),
        suspicions=sum(load.suspicions for load in loads),
        splits=len(rounds) - len(loads),
        peers=rivals,
        compared=compared,
    )


def latency(
    plan: Sequence[tuple[System, Cell]],
    per_s: float,
    seconds: float,
    rounds: int,
    report: Report,
) -> list[Latency]:
    """Measure each system with its cell, in turn, with a sender at a slow rate."""
    samples: list[list[float]] = [[] for _ in plan]
    for i in range(rounds):
        for j, (system, cell) in enumerate(plan):
            samples[j] += runs.latencies(system, cell, per_s, seconds)
            report(i * len(plan) + j + 1, rounds * len(plan))
    return [
        Latency(
            system.name,
            cell.engine if system is OURS else None,
            cell.nodes,
            cell.pattern,
            per_s,
            len(times),
            p50_ms=quantile(times, 0.5) * 1e3,
            p99_ms=quantile(times, 0.99) * 1e3,
        )
        for (system, cell), times in zip(plan, samples, strict=True)
    ]


def idle(cell: Cell, seconds: float) -> Idle:
    shares = runs.idle(cell, seconds)
    return Idle(cell.engine, cell.nodes, sum(shares) / len(shares), max(shares))


def recovery(cell: Cell, crashes: int) -> Recoveries:
    """Crash one node after the other, beginning with the first of the ring."""
    found = runs.recovery(cell, range(crashes))
    return Recoveries(
        cell.engine,
        cell.nodes,
        cell.timeout_s,
        crashes,
        crash_s=median(r.crash_s for r in found),
        crash_s_max=max(r.crash_s for r in found),
        pause_s=median(r.pause_s for r in found),
        pause_s_max=max(r.pause_s for r in found),
        rejoin_s=median(r.rejoin_s for r in found),
        rejoin_s_max=max(r.rejoin_s for r in found),
        restart_s=median(r.restart_s for r in found),
    )


def formation(cell: Cell, rounds: int, report: Report) -> Formation:
    found = []
    for i in range(rounds):
        found.append(runs.formation(cell))
        report(i + 1, rounds)
    return Formation(cell.engine, cell.nodes, cell.timeout_s, rounds, median(found), max(found))


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
