"""What came of the runs of `runs`, by what they were of."""

from collections.abc import Sequence
from dataclasses import replace

from roundelay.experiments.papers.atop.runs import Cell
from roundelay.experiments.results import Result, Runs, Values

CAUSAL = Cell("causal", 1.0)
ALL_ACK = Cell("allack", 1.0)
NULLS = Cell("allack", 1.0, dummies="demand")
COVER = Cell("atop", 1.0, dummies="cover")
DEMAND = Cell("atop", 1.0, dummies="demand")
SWITCH = Cell("atop", 1.0, dummies="switch", threshold_share=0.0)
WRITTEN = Cell("atop", 1.0)
"""ATOP without dummies, which its rules do not have."""
RESTLESS = replace(WRITTEN, threshold_share=0.0)
"""The same, with new weights at every change of the shares."""
COVER_BEFORE = replace(COVER, adapts=False)
WRITTEN_BEFORE = replace(WRITTEN, adapts=False)
"""Before adaptation: all members have the same weight."""

NAMES = {
    CAUSAL: "causal",
    ALL_ACK: "All-Ack",
    NULLS: "All-Ack with null messages",
    COVER: "ATOP, cover",
    DEMAND: "ATOP, demand",
    SWITCH: "ATOP, switch, threshold 0",
    WRITTEN: "ATOP as written",
    RESTLESS: "ATOP as written, threshold 0",
    COVER_BEFORE: "ATOP, cover, before adaptation",
    WRITTEN_BEFORE: "ATOP as written, before adaptation",
}
"""Every kind of run, whatever the rate of its slow senders."""


class Results(Runs):
    """Looks up measures, each with one value of every seed. ValueError if a run is not there."""

    def __init__(self, results: Sequence[Result]) -> None:
        super().__init__(results, _identity, _name)
        self.periods_s = sorted({r.cell.period_s for r in results})
        """Of the slow senders."""
        if len(self.periods_s) < 2:
            raise ValueError("these claims compare slow senders; run at least two periods of them")

    def of(self, measure: str, kind: Cell, period_s: float) -> Values:
        """Of runs of this kind, whatever their length."""
        return self.of_cell(measure, replace(kind, period_s=period_s))


def slow(period_s: float) -> str:
    """The rate of the slow senders in words."""
    return "slow 1/s" if period_s == 1 else f"slow 1 in {period_s:g} s"


def _identity(cell: Cell) -> Cell:
    """A cell but for its length."""
    return replace(cell, seconds=1.0)


def _name(cell: Cell) -> str:
    kind = replace(cell, period_s=1.0, seconds=Cell("causal", 1.0).seconds)
    return f"{NAMES.get(kind, str(kind))}, {slow(cell.period_s)}"
