"""What came of the runs of `runs`, by what they were of."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from roundelay.experiments.papers.fc.runs import COSTS, Cell, Rules
from roundelay.experiments.results import Result, Runs, Values

RULES: tuple[Rules, ...] = ("paper", "link", "safe")
NAMES: dict[Rules, str] = {
    "paper": "FC paper",
    "link": "FC link",
    "safe": "FC safe",
    "totem": "Totem",
}
HOPS_MS = tuple(COSTS)


class Results(Runs):
    """Looks up measures, each with one value of every seed. ValueError if a run is not there."""

    def __init__(self, results: Sequence[Result]) -> None:
        super().__init__(results, _identity, _name)

    def sizes(self, hop_ms: float) -> list[int]:
        """The sizes of requests that were measured with all rules. ValueError if they are not
        two."""
        cells = self.runs
        of_rules = [
            {c.size_bytes for c in cells if c == _identity(a_delay(rules, hop_ms, c.size_bytes))}
            for rules in NAMES
        ]
        sizes = sorted(set.intersection(*of_rules))
        if len(sizes) < 2:
            raise ValueError(
                f"these claims compare sizes; run two at least, with all rules and {hop(hop_ms)}"
            )
        return sizes

    def of(self, measure: str, cell: Cell) -> Values:
        """Of runs of this cell, whatever their length."""
        return self.of_cell(measure, cell)


def a_delay(rules: Rules, hop_ms: float, size_bytes: int = 100, k: int = 2, nodes: int = 5) -> Cell:
    """A run in which nobody fails."""
    return Cell("delay", rules, hop_ms, k, nodes, size_bytes, seconds=1.0)


def a_recovery(rules: Rules, hop_ms: float, failed: int) -> Cell:
    """Runs in which so many crash."""
    return Cell("recovery", rules, hop_ms, failed=failed, crashes=1)


def an_agreement(rules: Rules, nodes: int, k: int, assume: Literal["A1", "A2"]) -> Cell:
    """All runs of a group in which some fail."""
    return Cell("agreement", rules, k=k, nodes=nodes, assume=assume)


def hop(hop_ms: float) -> str:
    """A model of the costs in words."""
    return f"hop {hop_ms:g} ms" if hop_ms else "free processors"


def _identity(cell: Cell) -> Cell:
    """A cell but for its length, and for what its rules do not look at."""
    if cell.workload == "agreement":
        return cell
    delay = cell.workload == "delay"
    k = cell.k if cell.rules in ("paper", "link") else 2
    return replace(cell, k=k, seconds=1.0 if delay else 0.0, crashes=0 if delay else 1)


def _name(cell: Cell) -> str:
    if cell.workload == "agreement":
        return f"{NAMES[cell.rules]} with {cell.nodes} nodes, k = {cell.k}, all of {cell.assume}"
    k = f", k = {cell.k}" if cell.rules in ("paper", "link") else ""
    what = f"{cell.failed} failed" if cell.workload == "recovery" else f"{cell.size_bytes} bytes"
    return f"{NAMES[cell.rules]}{k} with {cell.nodes} nodes, {what}, {hop(cell.hop_ms)}"
