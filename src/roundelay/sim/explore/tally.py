"""What a search comes to: figures, and the runs that broke a promise."""

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
    """As commands."""
    scenario: str
    """The run, for `roundelay sim run`."""


@dataclass(slots=True)
class Tally:
    """What a search, or a part of it, came to."""

    runs: int = 0
    """Followed to their end, or to a state that was known."""
    merged: int = 0
    """Those of the second kind."""
    states: set[int] = field(default_factory=set)
    histories: set[int] = field(default_factory=set)
    """What the checker judged: runs of the same history were judged once."""
    tried: Counter[Kind] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        self.runs += other.runs
        self.merged += other.merged
        self.states |= other.states
        self.histories |= other.histories
        self.tried += other.tried
        self.violations += other.violations
