"""Times in readable units: writes the nanoseconds of a trace, and reads times of a command line."""

import math
import re
from collections.abc import Sequence

from roundelay.core.value import value
from roundelay.trace.schema import Row

MICRO = "\u00b5s"
_UNITS = {"ns": 1, "us": 1_000, MICRO: 1_000, "\u03bcs": 1_000, "ms": 1_000_000, "s": 10**9}
_STEP_NS = 1000
"""The nanoseconds between two events of a trace without a clock: see `trace.mini`."""


@value
class Clock:
    """The unit and the origin of the times in one diagram."""

    origin_ns: int = 0
    """Subtracted from every time: the monotonic clock of a real node may begin anywhere."""
    unit: str = "ms"
    stepped: bool = False
    """Whether the trace has no clock and every event is one step; then no times are shown."""

    def tick(self, t_ns: int) -> str:
        """The time as the axis shows it."""
        return f"{_digits((t_ns - self.origin_ns) / _UNITS[self.unit], 3)} {self.unit}"

    def exact(self, t_ns: int) -> str:
        """The time to the nanosecond."""
        if self.stepped:
            return f"step {t_ns // _STEP_NS}"
        return f"{_digits((t_ns - self.origin_ns) / _UNITS[self.unit], 9)} {self.unit}"


def clock_of(rows: Sequence[Row]) -> Clock:
    """The clock for `rows`, which are a whole trace: diagrams of its parts must show the same
    times."""
    if not rows:
        return Clock()
    if all(row.gseq is not None and row.t_ns == row.gseq * _STEP_NS for row in rows):
        return Clock(stepped=True)
    simulated = any(row.gseq is not None for row in rows)
    origin = 0 if simulated else min(row.t_ns for row in rows)
    longest = max(row.t_ns for row in rows) - origin
    unit = MICRO if longest < 2_000_000 else "ms" if longest < 20 * 10**9 else "s"
    return Clock(origin, unit)


def span(ns: int) -> str:
    """A duration, in the unit that needs the fewest digits."""
    for unit in ("s", "ms", MICRO):
        if ns >= _UNITS[unit]:
            return f"{ns / _UNITS[unit]:.3g} {unit}" if ns < 10**12 else f"{ns // 10**9} s"
    return f"{ns} ns"


def parse_time(text: str) -> int:
    """The nanoseconds of `12ms`, `0.5 s` or `250us`; ValueError if the text is no time."""
    match = re.fullmatch(r"\s*(-?[0-9]*\.?[0-9]+)\s*([a-z\u00b5\u03bc]+)\s*", text)
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text!r} is not a time; write it like 250us, 12.5ms or 3s")
    return math.floor(float(match[1]) * _UNITS[match[2]])


def _digits(number: float, places: int) -> str:
    text = f"{number:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
