"""Groups with journals next to groups without: what the log costs, by policy.

In every round the same cell runs without a journal and with each policy, one right after the other,
and ratios are taken within the round; every other round runs in the opposite order. Each round also
looks at the bare disk, so that figures can be compared with what it takes at that moment.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from roundelay.bench.ring import disk as bare
from roundelay.bench.ring import runs
from roundelay.bench.ring.cluster import SplitError
from roundelay.bench.ring.disk import Disk
from roundelay.bench.ring.figures import Report, quantile
from roundelay.bench.ring.jobs import Cell, Journal
from roundelay.bench.ring.systems import FLOOR, LOGGED, OURS, System

HEAD_BYTES = 90
"""Bytes that a journal writes with every packet, about. They are few next to large datagrams."""


@dataclass(frozen=True, slots=True)
class Journaled:
    """One cell with one policy, next to the same cell without a journal: medians over rounds."""

    cell: Cell
    plain_msgs_per_s: float
    msgs_per_s: float
    ratio: float
    """The rate with the journal divided by that without."""
    lowest: float
    highest: float
    """The lowest and the highest ratio of a round."""
    cpu_ratio: float
    """CPU time per message with the journal, divided by that without."""
    disk_msgs_per_s: float
    """How many messages a second the bare disk takes in a row if all nodes write each of them."""
    disk_share: float
    """The rate with the journal divided by that."""
    ratio_at_most: float
    """The ratio of a group that shares the processors of this machine, if its journals cost nothing
    but the time that the kernel takes for the bytes."""
    suspicions: int
    """False suspicions of both groups in all rounds; there should be none."""
    splits: int
    """Rounds that failed because nodes suspected others that were running. If all rounds failed,
    the other figures are 0."""
    peer_msgs_per_s: float | None = None
    """The rate of the peer with its own journal in the same rounds; None without a peer."""


@dataclass(frozen=True, slots=True)
class Commits:
    """Times from append until an entry is known to be committed, over all nodes: medians over
    rounds, next to agreed delivery without a journal."""

    cell: Cell
    per_s: float
    plain_p50_ms: float
    p50_ms: float
    p99_ms: float
    more_ms: float
    """By how much half of the entries are later than half of the agreed messages."""
    fdatasync_p50_ms: float
    """A bare `fdatasync` on the same disk in the same rounds."""
    hop_p50_ms: float
    """A bare UDP hop in the same rounds. No commit is faster than two: there and back."""
    peer_p50_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Reads:
    """Linearizable reads in a group that does nothing else."""

    cell: Cell
    p50_ms: float
    """If one node reads, one read after the other."""
    hop_p50_ms: float
    """A bare UDP hop in the same rounds; a round trip is two."""
    reads_per_s: float
    """Of the slowest node, if all nodes read, with many tasks each."""


def throughput(
    cells: Sequence[Cell],
    policies: Sequence[Journal],
    peers: Sequence[System],
    seconds: float,
    rounds: int,
    directory: Path,
    report: Report,
) -> tuple[list[Journaled], list[Disk]]:
    """Every cell without a journal and with each policy, at full speed; and the disk of each
    round."""
    variants = [
        [dataclasses.replace(cell, journal=policy) for policy in ("none", *policies)]
        for cell in cells
    ]
    found: dict[Cell, list[runs.Load | None]] = {v: [] for plan in variants for v in plan}
    theirs: dict[Cell, list[runs.Load]] = {cell: [] for cell in cells}
    disks: list[Disk] = []
    due = rounds * (len(found) + len(cells) * len(peers))
    done = 0
    for i in range(rounds):
        disks.append(bare.measure(directory))
        for cell, plan in zip(cells, variants, strict=True):
            for variant in plan if i % 2 == 0 else reversed(plan):
                found[variant].append(_load(variant, seconds, directory))
                done += 1
                report(done, due)
            for peer in peers[:1]:
                same = Cell(size=cell.size, nodes=cell.nodes, journal="interval")
                theirs[cell].append(runs.load(peer, same, seconds, disk=directory))
                done += 1
                report(done, due)
    figures = []
    for cell, (plain, *journaled) in zip(cells, variants, strict=True):
        rival = median(load.msgs_per_s for load in theirs[cell]) if theirs[cell] else None
        figures += [
            _journaled(variant, found[plain], found[variant], disks, rival) for variant in journaled
        ]
    return figures, disks


def _load(cell: Cell, seconds: float, directory: Path) -> runs.Load | None:
    try:
        return runs.load(_system(cell), cell, seconds, disk=directory)
    except SplitError:
        return None


def _system(cell: Cell) -> System:
    return OURS if cell.journal == "none" else LOGGED


def _journaled(
    cell: Cell,
    plain: Sequence[runs.Load | None],
    journaled: Sequence[runs.Load | None],
    disks: Sequence[Disk],
    peer: float | None,
) -> Journaled:
    pairs = [(a, b, disk) for a, b, disk in zip(plain, journaled, disks, strict=True) if a and b]
    splits = len(plain) - len(pairs)
    if not pairs:
        return Journaled(cell, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, splits, peer)
    ratios = [b.msgs_per_s / a.msgs_per_s for a, b, _ in pairs]
    return Journaled(
        cell,
        plain_msgs_per_s=median(a.msgs_per_s for a, _, _ in pairs),
        msgs_per_s=median(b.msgs_per_s for _, b, _ in pairs),
        ratio=median(ratios),
        lowest=min(ratios),
        highest=max(ratios),
        cpu_ratio=median(b.cpu_us_per_msg / a.cpu_us_per_msg for a, b, _ in pairs),
        disk_msgs_per_s=median(floor(disk.bytes_per_s, cell) for _, _, disk in pairs),
        disk_share=median(b.msgs_per_s / floor(disk.bytes_per_s, cell) for _, b, disk in pairs),
        ratio_at_most=median(
            at_most(a.cpu_s / a.messages, disk.cpu_s_per_byte, cell) for a, _, disk in pairs
        ),
        suspicions=sum(a.suspicions + b.suspicions for a, b, _ in pairs),
        splits=splits,
        peer_msgs_per_s=peer,
    )


def floor(bytes_per_s: float, cell: Cell) -> float:
    """Messages per second that a disk takes if every node of the cell writes each of them, with
    its share of a packet's head."""
    return bytes_per_s / cell.nodes / _written_bytes(cell)


def at_most(cpu_s: float, cpu_s_per_byte: float, cell: Cell) -> float:
    """The ratio that is left if each node's write of a message adds only the kernel's time to the
    processor time that the message costs without a journal."""
    return cpu_s / (cpu_s + cell.nodes * cpu_s_per_byte * _written_bytes(cell))


def _written_bytes(cell: Cell) -> float:
    """Of one message, with its share of a packet's head."""
    per_packet = max(1, cell.datagram // cell.size)
    return cell.size + HEAD_BYTES / per_packet


def latency(
    cells: Sequence[Cell],
    policies: Sequence[Journal],
    peers: Sequence[System],
    per_s: float,
    seconds: float,
    rounds: int,
    directory: Path,
    report: Report,
) -> list[Commits]:
    """Every cell without a journal and with each policy, with senders at a slow rate."""
    figures = []
    due = rounds * len(cells) * (2 + len(policies) + len(peers[:1]))
    done = 0
    for cell in cells:
        times: dict[str, list[list[float]]] = {}
        syncs: list[float] = []
        hops: list[float] = []
        for i in range(rounds):
            syncs.append(bare.measure(directory).fdatasync_ms)
            hops.append(_hop_ms(cell, per_s, seconds))
            done += 1
            report(done, due)
            plan: list[tuple[str, System, Cell]] = [("none", OURS, cell)]
            plan += [(p, LOGGED, dataclasses.replace(cell, journal=p)) for p in policies]
            for name, system, variant in plan if i % 2 == 0 else reversed(plan):
                taken = runs.latencies(system, variant, per_s, seconds, directory)
                times.setdefault(name, []).append(taken)
                done += 1
                report(done, due)
            for peer in peers[:1]:
                journaled = Cell(
                    size=cell.size, nodes=cell.nodes, senders=cell.senders, journal="interval"
                )
                taken = runs.latencies(peer, journaled, per_s, seconds, directory)
                times.setdefault("peer", []).append(taken)
                done += 1
                report(done, due)
        figures += [
            _commits(
                dataclasses.replace(cell, journal=policy),
                per_s,
                times["none"],
                times[policy],
                syncs,
                hops,
                times.get("peer"),
            )
            for policy in policies
        ]
    return figures


def _hop_ms(cell: Cell, per_s: float, seconds: float) -> float:
    """Half of the bare datagrams arrive within this time, at the pace of the cell's senders."""
    pace = Cell(nodes=cell.nodes, senders="one")
    return quantile(runs.latencies(FLOOR, pace, per_s, seconds), 0.5) * 1e3


def _commits(
    cell: Cell,
    per_s: float,
    plain: Sequence[Sequence[float]],
    journaled: Sequence[Sequence[float]],
    syncs: Sequence[float],
    hops: Sequence[float],
    peer: Sequence[Sequence[float]] | None,
) -> Commits:
    agreed = [quantile(times, 0.5) * 1e3 for times in plain]
    committed = [quantile(times, 0.5) * 1e3 for times in journaled]
    return Commits(
        cell,
        per_s,
        plain_p50_ms=median(agreed),
        p50_ms=median(committed),
        p99_ms=median(quantile(times, 0.99) * 1e3 for times in journaled),
        more_ms=median(b - a for a, b in zip(agreed, committed, strict=True)),
        fdatasync_p50_ms=median(syncs),
        hop_p50_ms=median(hops),
        peer_p50_ms=median(quantile(times, 0.5) * 1e3 for times in peer) if peer else None,
    )


def reads(
    cells: Sequence[Cell], seconds: float, rounds: int, directory: Path, report: Report
) -> list[Reads]:
    """Linearizable reads: cells have a policy each, which does not matter to them."""
    figures = []
    for i, cell in enumerate(cells):
        alone, hops, rates = [], [], []
        for j in range(rounds):
            hops.append(_hop_ms(cell, 100.0, seconds))
            times, per_s = runs.reads(cell, seconds, directory)
            alone.append(quantile(times, 0.5) * 1e3)
            rates.append(per_s)
            report(i * rounds + j + 1, rounds * len(cells))
        figures.append(Reads(cell, median(alone), median(hops), median(rates)))
    return figures
