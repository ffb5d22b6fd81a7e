"""What comes of one run of an experiment."""

from dataclasses import dataclass
from typing import Any

Measures = dict[str, float]
"""What was measured, by name; the unit is at the end of the name."""


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
