"""What comes of one run of an experiment."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

Measures = dict[str, float]
"""What was measured, by name; the unit is at the end of the name."""

Values = list[float]
"""One of each seed."""


@dataclass(frozen=True, slots=True)
class Result:
    """A cell that was run with one seed, and what was measured."""

    cell: Any
    """Of the type `Cell` of its experiment."""
    seed: int
    measures: Measures


def cost(cell: Any) -> float:
    """How long a cell takes compared with other cells of its experiment; 1.0 if it does not say."""
    return float(getattr(cell, "cost", 1.0))


class Runs:
    """Looks up measures of one experiment, each with one value of every seed. ValueError if a run
    is not there."""

    def __init__(
        self,
        results: Iterable[Result],
        identity: Callable[[Any], Hashable],
        name: Callable[[Any], str] = str,
    ) -> None:
        """`identity` is what makes a cell another one, which its length does not; `name` tells
        people of it."""
        results = list(results)
        self._identity = identity
        self._name = name
        self.runs: dict[Any, dict[int, Measures]] = {}
        """By identity and by seed."""
        for r in results:
            self.runs.setdefault(identity(r.cell), {})[r.seed] = r.measures
        seeds = sorted({r.seed for r in results})
        for cell, runs in self.runs.items():
            if sorted(runs) != seeds:
                lacking = next(seed for seed in seeds if seed not in runs)
                raise ValueError(f"{name(cell)} was not run with seed {lacking}")

    def of_cell(self, measure: str, cell: Any) -> Values:
        """Of runs of this cell, whatever their length."""
        which = self._identity(cell)
        if which not in self.runs:
            raise ValueError(f"there is no run of {self._name(which)}")
        runs = self.runs[which]
        return [runs[seed][measure] for seed in sorted(runs)]
