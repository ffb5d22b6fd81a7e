"""Sealed groups next to plain ones: what the seal costs.

In every round the same cell runs plain and with each cipher, one right after the other, and ratios
are taken within the round. Every other round runs in the opposite order, so that a machine that
becomes slower or faster meanwhile favours nobody.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from roundelay.bench.ring import runs
from roundelay.bench.ring.cluster import SplitError
from roundelay.bench.ring.figures import Report, quantile
from roundelay.bench.ring.jobs import Cell, Cipher
from roundelay.bench.ring.systems import OURS

T = TypeVar("T")

CIPHERS: tuple[Cipher, ...] = ("aes", "chacha")
DATAGRAMS = (60_000, 1400)
"""Sizes of datagrams with which groups are compared by default."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """One cell, plain and sealed: medians over rounds."""

    cell: Cell
    """With the cipher of the sealed group."""
    plain_msgs_per_s: float
    msgs_per_s: float
    ratio: float
    """The rate of the sealed group divided by that of the plain one."""
    lowest: float
    highest: float
    """The lowest and the highest ratio of a round."""
    cpu_ratio: float
    """CPU time per message of the sealed group, divided by that of the plain one."""
    suspicions: int
    """False suspicions of both groups in all rounds; there should be none."""
    splits: int
    """Rounds that failed because nodes suspected others that were running. If all rounds failed,
    the other figures are 0."""


@dataclass(frozen=True, slots=True)
class SealedLatency:
    """Times from submit to delivery, over all nodes: medians over rounds."""

    cell: Cell
    per_s: float
    plain_p50_ms: float
    p50_ms: float
    more_ms: float
    """By how much half of the messages are later in the sealed group."""


def throughput(cells: Sequence[Cell], seconds: float, rounds: int, report: Report) -> list[Sealed]:
    """Every cell, plain and with each cipher, at full speed."""

    def measure(cell: Cell) -> runs.Load | None:
        try:
            return runs.load(OURS, cell, seconds)
        except SplitError:
            return None

    return [
        _sealed(cell, plain, sealed)
        for cell, plain, sealed in _compared(cells, measure, rounds, report)
    ]


def latency(
    cells: Sequence[Cell], per_s: float, seconds: float, rounds: int, report: Report
) -> list[SealedLatency]:
    """Every cell, plain and with each cipher, with senders at a slow rate."""

    def measure(cell: Cell) -> float:
        return quantile(runs.latencies(OURS, cell, per_s, seconds), 0.5) * 1e3

    return [
        SealedLatency(
            cell,
            per_s,
            plain_p50_ms=median(plain),
            p50_ms=median(sealed),
            more_ms=median(b - a for a, b in zip(plain, sealed, strict=True)),
        )
        for cell, plain, sealed in _compared(cells, measure, rounds, report)
    ]


def _compared(
    cells: Sequence[Cell], measure: Callable[[Cell], T], rounds: int, report: Report
) -> list[tuple[Cell, list[T], list[T]]]:
    """For every cell and cipher the results of all rounds, of the plain group and the sealed."""
    variants = [
        [dataclasses.replace(cell, cipher=cipher) for cipher in ("none", *CIPHERS)]
        for cell in cells
    ]
    found: dict[Cell, list[T]] = {variant: [] for plan in variants for variant in plan}
    done = 0
    for i in range(rounds):
        for plan in variants:
            for variant in plan if i % 2 == 0 else reversed(plan):
                found[variant].append(measure(variant))
                done += 1
                report(done, rounds * len(found))
    return [(s, found[plain], found[s]) for plain, *sealed in variants for s in sealed]


def _sealed(
    cell: Cell, plain: Sequence[runs.Load | None], sealed: Sequence[runs.Load | None]
) -> Sealed:
    pairs = [(a, b) for a, b in zip(plain, sealed, strict=True) if a and b]
    splits = len(plain) - len(pairs)
    if not pairs:
        return Sealed(cell, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, splits)
    ratios = [b.msgs_per_s / a.msgs_per_s for a, b in pairs]
    return Sealed(
        cell,
        plain_msgs_per_s=median(a.msgs_per_s for a, _ in pairs),
        msgs_per_s=median(b.msgs_per_s for _, b in pairs),
        ratio=median(ratios),
        lowest=min(ratios),
        highest=max(ratios),
        cpu_ratio=median(b.cpu_us_per_msg / a.cpu_us_per_msg for a, b in pairs),
        suspicions=sum(a.suspicions + b.suspicions for a, b in pairs),
        splits=splits,
    )
