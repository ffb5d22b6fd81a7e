"""The results of a search: figures, and the runs that broke a promise."""

from collections import Counter
from dataclasses import dataclass, field

from roundelay.sim.explore.deviations import Kind


@dataclass(frozen=True, slots=True)
class Violation:
    """A run that broke a promise."""

    situation: str
    failures: tuple[str, ...]
    """A sentence for each promise."""
    deviations: tuple[str, ...]
    """The deviations of the run, as scenario commands."""
    scenario: str
    """The run, for `roundelay sim run`."""


@dataclass(slots=True)
class Tally:
    """The results of a search or of a part of it."""

    runs: int = 0
    """Runs that were followed to their end, or to a state that was known."""
    merged: int = 0
    """Runs that ended at a state that was known."""
    states: set[int] = field(default_factory=set)
    histories: set[int] = field(default_factory=set)
    """Numbers of histories; the checker judges the runs of one history once."""
    tried: Counter[Kind] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        self.runs += other.runs
        self.merged += other.merged
        self.states |= other.states
        self.histories |= other.histories
        self.tried += other.tried
        self.violations += other.violations
