"""What came of the runs of `runs`, by what they were of."""

from collections.abc import Sequence

from roundelay.experiments.papers.dtp.runs import SILENCE_MS, Cell
from roundelay.experiments.results import Result, Runs, Values

GAP_MS = 100.0
"""1/lambda of figures 3 to 5."""


class Results(Runs):
    """Looks up measures, each with one value of every seed. ValueError if a run is not there."""

    def __init__(self, results: Sequence[Result]) -> None:
        super().__init__(results, _name)
        self.sizes = sorted({r.cell.nodes for r in results if _is_plain(r.cell)})
        """Groups with equal Poisson arrivals at all members."""
        if len(self.sizes) < 2:
            raise ValueError("these claims compare groups; run at least two sizes of them")

    def of(self, measure: str, protocol: str, nodes: int, gap_ms: float = GAP_MS) -> Values:
        """Of runs with equal Poisson arrivals."""
        return self.like(measure, Cell(protocol, nodes, gap_ms, 1))

    def like(self, measure: str, cell: Cell) -> Values:
        """Of runs of this cell, whatever their length."""
        return self.of_cell(measure, cell)


def _is_plain(cell: Cell) -> bool:
    return bool(cell.gap_ms) and not cell.activity and not cell.batch


def _name(cell: Cell) -> str:
    """A cell but for its length."""
    rate = f"1/lambda = {cell.gap_ms:g} ms" if cell.gap_ms else "always ready"
    name = f"{cell.protocol} with {cell.nodes} nodes, {rate}, {cell.size_bytes} bytes"
    if cell.silence_ms != SILENCE_MS:
        name += f", silence of {cell.silence_ms:g} ms"
    if cell.activity:
        name += f", activities {' '.join(f'{a:g}' for a in cell.activity)}"
    return f"{name}, batches of {cell.batch}" if cell.batch else name
