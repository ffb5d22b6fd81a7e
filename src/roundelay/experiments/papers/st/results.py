"""What came of the runs of `runs`, by what they were of."""

from collections.abc import Sequence
from dataclasses import replace

from roundelay.experiments.papers.st.formulas import Formulas
from roundelay.experiments.papers.st.runs import Cell
from roundelay.experiments.results import Result, Runs, Values

NODES, LENGTH = 10, 100
LOSSES = (0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01)
"""f, in figures 8 and 10."""
FIGURE_9_LOSS = 0.005
KINDS = {0.5: "ST", 1.0: "TO"}
"""By d/n: how figures 8 and 10 call it."""


class Results(Runs):
    """Looks up measures, each with one value of every seed. ValueError if a run is not there."""

    def __init__(self, results: Sequence[Result]) -> None:
        super().__init__(results, identity, _name)

    def of(self, measure: str, cell: Cell) -> Values:
        """Of runs of this cell, whatever their length."""
        return self.of_cell(measure, cell)

    @property
    def shares(self) -> list[float]:
        """d/n of figure 9. ValueError if there are not two."""
        found = sorted(
            cell.to_share for cell in self.runs if cell == drawn(FIGURE_9_LOSS, cell.to_share)
        )
        if len(found) < 2:
            raise ValueError("these claims compare shares of the group; run two at least")
        return found


def drawn(loss_share: float, to_share: float, *, thinned: bool = True) -> Cell:
    """Losses without a protocol."""
    return identity(Cell("losses", loss_share, to_share, thinned))


def of_engine(loss_share: float, to_share: float) -> Cell:
    return identity(Cell("engine", loss_share, to_share, thinned=False, rounds=1))


def formulas(loss_share: float, to_share: float, length: int = LENGTH) -> Formulas:
    """The formulas for a group of ten."""
    return Formulas(NODES, to_share * NODES, length, loss_share)


def identity(cell: Cell) -> Cell:
    """A cell but for its length."""
    engine = cell.workload == "engine"
    return replace(cell, losses=1, rounds=1 if engine else 0)


def _name(cell: Cell) -> str:
    what = "the engine" if cell.workload == "engine" else "losses"
    reading = "f d / n" if cell.thinned else "f"
    return (
        f"{what} with f = {cell.loss_share:g}, d/n = {cell.to_share:g}, n = {cell.nodes}, "
        f"L = {cell.length}, a destination loses {reading}"
    )
