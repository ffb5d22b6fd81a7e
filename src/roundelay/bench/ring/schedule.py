"""How long a measurement still takes: planned from what its runs do, and corrected as they end."""

from collections.abc import Sequence
from dataclasses import dataclass

STARTING_S = 1.5
"""How many seconds the processes of a run take to start, to meet and to leave, before one was seen.
Wrong by half, the first estimate is wrong by a few seconds."""
CRASH_S = 3.0
"""The same for the crash of a node, its restart and all views."""


@dataclass(frozen=True, slots=True)
class Part:
    """Runs of one kind."""

    name: str
    steps: int
    each_s: float
    """How many seconds a step is planned to take."""


class Schedule:
    """What is done of several parts, one after the other."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = {part.name: part for part in parts}
        self._done = dict.fromkeys(self._parts, 0)
        self._took_s = dict.fromkeys(self._parts, 0.0)

    def note(self, name: str, steps: int, took_s: float) -> None:
        """Some more steps of a part are done, and took that long."""
        self._done[name] += steps
        self._took_s[name] += took_s

    @property
    def left_s(self) -> float:
        """Seconds until everything is done."""
        return sum(
            max(0, part.steps - self._done[name]) * self._each_s(part)
            for name, part in self._parts.items()
        )

    @property
    def share(self) -> float:
        """The share of all time that is over."""
        took_s = sum(self._took_s.values())
        whole_s = took_s + self.left_s
        return took_s / whole_s if whole_s else 1.0

    def _each_s(self, part: Part) -> float:
        """How long a step of this part takes: as its others took, or as planned, stretched as those
        of other parts were."""
        if self._done[part.name]:
            return self._took_s[part.name] / self._done[part.name]
        planned_s = sum(self._done[name] * p.each_s for name, p in self._parts.items())
        stretch = sum(self._took_s.values()) / planned_s if planned_s else 1.0
        return part.each_s * stretch
