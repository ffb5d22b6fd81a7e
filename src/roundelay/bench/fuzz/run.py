"""Arena after arena: counts frames, exceptions, groups that stay stuck, time and memory."""

import gc
import resource
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from roundelay.bench.fuzz.arena import Arena, Stopwatch

GROUP_FRAMES = 20_000
"""Forged frames in the life of one group, unless it ends before."""
JUDGE_FRAMES = 2_500
"""Forged frames between two looks at whether the group recovers."""
EARLY_GROUPS = 3
"""Groups after which memory should grow no more."""
FAILURES_MAX = 200
"""Failures after which a run is over."""
REPORTS_MAX = 20
"""Failures that are told in full; all are counted."""

Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """An input that raised, or a group that did not recover."""

    frame: int
    """Forged frames up to then: a run of so many, with the same seed, ends with it."""
    what: str
    where: str
    """The innermost lines of the traceback, or where the nodes are stuck."""
    input: str
    """The last forged frame: its receiver, and its bytes in hexadecimal."""
    again: str
    """The command that comes to it again, by the shortest way."""


@dataclass(slots=True)
class Tally:
    """What a run saw."""

    engine: str
    static: bool
    seed: int
    frames: int = 0
    exceptions: int = 0
    stuck: int = 0
    groups: int = 0
    judged: int = 0
    """Times that a group had to recover."""
    slowest_ms: float = 0.0
    slowest: str = ""
    """The input that took longest."""
    early_mb: float = 0.0
    """Peak memory of the process after the first groups; 0 if there were no more."""
    peak_mb: float = 0.0
    drops: dict[str, int] = field(default_factory=dict)
    phases: dict[str, int] = field(default_factory=dict)
    """Forged frames by the phase of their receiver."""
    places: dict[str, int] = field(default_factory=dict)
    """Exceptions, by where they were raised."""
    failures: list[Failure] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not self.exceptions and not self.stuck


def fuzz(
    engine: str,
    frames: int,
    seed: int,
    *,
    static: bool = False,
    first: int = 0,
    report: Report = lambda done, total: None,
) -> Tally:
    """Forge so many frames, leaving out the `first` groups of the seed. Deterministic, but for the
    figures of time and memory."""
    tally = Tally(engine, static, seed)
    clock = Stopwatch()
    gc.collect()
    gc.freeze()  # What else is in the process must not cost an input its time.
    try:
        _forge(tally, clock, frames, first, report)
    finally:
        gc.unfreeze()
    tally.slowest_ms, tally.slowest = clock.slowest_s * 1000, clock.slowest
    tally.peak_mb = _peak_mb()
    return tally


def _forge(tally: Tally, clock: Stopwatch, frames: int, first: int, report: Report) -> None:
    drops: Counter[str] = Counter()
    phases: Counter[str] = Counter()
    while tally.frames < frames and tally.exceptions + tally.stuck < FAILURES_MAX:
        group = first + tally.groups
        arena = Arena(tally.engine, f"{tally.seed} {group}", clock, static=tally.static)
        before = tally.frames
        goal = min(GROUP_FRAMES, frames - before)
        judged = 0
        try:
            while arena.frames < goal:
                arena.step()
                if arena.frames - judged >= JUDGE_FRAMES and not tally.static:
                    judged = arena.frames
                    tally.judged += 1
                    if not arena.recover():
                        _note(tally, arena, group, "stuck", arena.describe())
                        tally.stuck += 1
                        break
                report(before + arena.frames, frames)
        except Exception as error:
            _raised(tally, arena, group, error)
        tally.frames = before + arena.frames
        drops.update(arena.drops())
        phases.update(arena.phases)
        tally.groups += 1
        if tally.groups == EARLY_GROUPS:
            tally.early_mb = _peak_mb()
    tally.drops, tally.phases = dict(sorted(drops.items())), dict(sorted(phases.items()))


def _raised(tally: Tally, arena: Arena, group: int, error: Exception) -> None:
    trail = traceback.extract_tb(error.__traceback__)
    inner = [f"{f.filename.rpartition('roundelay/')[2]}:{f.lineno} {f.name}" for f in trail[-4:]]
    place = inner[-1] if inner else "?"
    tally.exceptions += 1
    tally.places[place] = tally.places.get(place, 0) + 1
    if tally.places[place] == 1:
        what = f"{type(error).__name__}: {error}"[:200]
        _note(tally, arena, group, what, " < ".join(reversed(inner)))


def _note(tally: Tally, arena: Arena, group: int, what: str, where: str) -> None:
    if len(tally.failures) < REPORTS_MAX:
        again = f"roundelay bench fuzz --engine {tally.engine} --seed {tally.seed} --first {group}"
        again += f" --frames {arena.frames}" + (" --static" if tally.static else "")
        frame = tally.frames + arena.frames
        tally.failures.append(Failure(frame, what, where, _input(arena), again))


def _input(arena: Arena) -> str:
    return "" if arena.last is None else f"{arena.last[0]} {arena.last[1].hex()}"


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
