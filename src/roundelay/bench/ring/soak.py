"""Soaks: whether a group under full load for minutes stays in one view, with bounded memory."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from roundelay.bench.ring import runs
from roundelay.bench.ring.jobs import Cell

GROWTH_MAX = 1.2
"""How many times its memory after a third of the time a node may need at the end. More counts as a
leak; a smaller number would count the normal growth of caches as one."""


@dataclass(frozen=True, slots=True)
class Soak:
    """One long run."""

    nodes: int
    seconds: float
    messages: int
    msgs_per_s: float
    suspicions: int
    early_mb: float
    """Peak memory of the largest node after a third of the time."""
    peak_mb: float
    """Peak memory of the largest node at the end."""
    recoveries: int = 0
    """How often the group stopped to make good for a loss, where an engine does that."""
    lost: int = 0
    """Datagrams that nodes could not send or take in."""
    cpu_us_per_msg: float = 0.0
    """CPU time of all nodes together."""
    cores: int = 1
    """Of this machine."""

    @property
    def cpu_share(self) -> float:
        """The rate, as a share of what these cores could do if the nodes had them all the time:
        the rest was other work, or nobody's."""
        return self.msgs_per_s * self.cpu_us_per_msg / 1e6 / self.cores

    @property
    def growth(self) -> float:
        return self.peak_mb / self.early_mb

    @property
    def sound(self) -> bool:
        """Nobody was suspected, memory did not grow, and nothing was made good for that was not
        lost."""
        in_vain = self.recoveries and not self.lost
        return not self.suspicions and not in_vain and self.growth <= GROWTH_MAX


def soak(cell: Cell, seconds: float, report: Callable[[int, int], None]) -> Soak:
    """All nodes send at full speed for so many seconds; the order is verified at the end."""
    beats: dict[str, list[float]] = {name: [] for name in runs.names(cell.nodes)}
    due = max(1, round(seconds / runs.BEAT_S))

    def beat(node: str, words: dict[str, Any]) -> None:
        beats[node].append(words["peak_mb"])
        report(min(due, len(beats[node])), due)

    load = runs.soak(cell, seconds, beat)
    early = [sizes[len(sizes) // 3] for sizes in beats.values() if sizes]
    return Soak(
        cell.nodes,
        seconds,
        load.messages,
        load.msgs_per_s,
        load.suspicions,
        early_mb=max(early, default=load.peak_mb),
        peak_mb=load.peak_mb,
        recoveries=load.recoveries,
        lost=load.lost,
        cpu_us_per_msg=load.cpu_us_per_msg,
        cores=os.cpu_count() or 1,
    )
