"""Arena after arena: counts frames, exceptions, groups that stay stuck, time and memory.

`fuzz` draws every choice from a seed. `play` is one short group whose forged frames follow from
bytes: what a fuzzer guided by coverage tries, and what repeats a single input of it.
"""

import gc
import resource
import shlex
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from roundelay.bench.fuzz.arena import SPELL_STEPS, Arena, Stopwatch
from roundelay.bench.fuzz.choices import LOAD_BYTES, Choices

GROUP_FRAMES = 20_000
"""Forged frames in the life of one group, unless it ends before."""
JUDGE_FRAMES = 2_500
"""Forged frames between two looks at whether the group recovers."""
EARLY_GROUPS = 3
"""Groups after which memory should grow no more."""
INPUT_STEPS = 4 * SPELL_STEPS
"""Milliseconds that the group of an input is under load at most."""
INPUT_FRAMES = 400
"""Forged frames in the group of an input, unless its bytes are spent before."""
FAILURES_MAX = 200
"""Failures after which a run is over."""
REPORTS_MAX = 20
"""Failures that are told in full; all are counted."""

Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """An input that raised, or a group that did not recover."""

    frame: int
    """Forged frames up to then: a run of so many, with the same seed, ends with it unless the run
    was guided."""
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
    sealed: bool = False
    """Forged frames had to pass seals, and seals were attacked."""
    options: dict[str, str] = field(default_factory=dict)
    """Of the engine."""
    guided: bool = False
    """Coverage decided which inputs were tried further."""
    edges: int | None = None
    """Of a guided run: branches of the code under test that the inputs reached. Unknown if the run
    ended within its first few inputs."""

    @property
    def sound(self) -> bool:
        return not self.exceptions and not self.stuck


def fuzz(
    engine: str,
    frames: int,
    seed: int,
    *,
    static: bool = False,
    sealed: bool = False,
    options: Mapping[str, str] | None = None,
    first: int = 0,
    report: Report = lambda done, total: None,
) -> Tally:
    """Forge so many frames, leaving out the `first` groups of the seed. Deterministic, but for the
    figures of time and memory."""
    tally = Tally(engine, static, seed, sealed=sealed, options=dict(options or {}))
    clock = Stopwatch()
    gc.collect()
    gc.freeze()  # What else is in the process must not cost an input its time.
    try:
        _forge(tally, clock, frames, first, report)
    finally:
        gc.unfreeze()
    finish(tally, clock)
    return tally


def play(tally: Tally, clock: Stopwatch, data: bytes) -> None:
    """Add to the tally one group under the frames that the bytes forge, and its recovery."""
    choices = Choices(data[LOAD_BYTES:])
    seed = data[:LOAD_BYTES].hex()
    arena = Arena(
        tally.engine, seed, clock, static=tally.static, options=tally.options, choices=choices
    )
    try:
        while not choices.spent and arena.steps < INPUT_STEPS and arena.frames < INPUT_FRAMES:
            arena.step()
        if not tally.static:
            tally.judged += 1
            if not arena.recover():
                _note(tally, arena, again_input(tally, data), "stuck", arena.describe())
                tally.stuck += 1
    except Exception as error:
        _raised(tally, arena, again_input(tally, data), error)
    tally.frames += arena.frames
    tally.drops = dict(sorted((Counter(tally.drops) + arena.drops()).items()))
    tally.phases = dict(sorted((Counter(tally.phases) + arena.phases).items()))
    _count_group(tally)


def replay(
    engine: str, data: bytes, *, static: bool = False, options: Mapping[str, str] | None = None
) -> Tally:
    """One input of a guided run again. It needs no coverage."""
    tally = Tally(engine, static, seed=0, options=dict(options or {}))
    clock = Stopwatch()
    play(tally, clock, data)
    finish(tally, clock)
    return tally


def finish(tally: Tally, clock: Stopwatch) -> None:
    """Put down time and memory of the whole run."""
    tally.slowest_ms, tally.slowest = clock.slowest_s * 1000, clock.slowest
    tally.peak_mb = _peak_mb()


def again_input(tally: Tally, data: bytes) -> str:
    """The command that plays one input again."""
    return shlex.join([*_command(tally), "--input", data.hex()])


def _command(tally: Tally) -> list[str]:
    """What every command begins with that comes to something again."""
    options = [word for pair in tally.options.items() for word in ("--option", "=".join(pair))]
    flags = ["--static"] * tally.static + ["--sealed"] * tally.sealed
    return ["roundelay", "bench", "fuzz", "--engine", tally.engine, *options, *flags]


def _forge(tally: Tally, clock: Stopwatch, frames: int, first: int, report: Report) -> None:
    drops: Counter[str] = Counter()
    phases: Counter[str] = Counter()
    make = _sealed_arena() if tally.sealed else Arena
    while tally.frames < frames and tally.exceptions + tally.stuck < FAILURES_MAX:
        group = first + tally.groups
        seed = f"{tally.seed} {group}"
        arena = make(tally.engine, seed, clock, static=tally.static, options=tally.options)
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
                        again = _again_seed(tally, arena, group)
                        _note(tally, arena, again, "stuck", arena.describe())
                        tally.stuck += 1
                        break
                report(before + arena.frames, frames)
        except Exception as error:
            _raised(tally, arena, _again_seed(tally, arena, group), error)
        tally.frames = before + arena.frames
        drops.update(arena.drops())
        phases.update(arena.phases)
        _count_group(tally)
    tally.drops, tally.phases = dict(sorted(drops.items())), dict(sorted(phases.items()))


def _sealed_arena() -> type[Arena]:
    """Imported only where it is used: it needs the package `cryptography`."""
    from roundelay.bench.fuzz.sealed import SealedArena

    return SealedArena


def _count_group(tally: Tally) -> None:
    tally.groups += 1
    if tally.groups == EARLY_GROUPS:
        tally.early_mb = _peak_mb()


def _raised(tally: Tally, arena: Arena, again: str, error: Exception) -> None:
    trail = traceback.extract_tb(error.__traceback__)
    inner = [f"{f.filename.rpartition('roundelay/')[2]}:{f.lineno} {f.name}" for f in trail[-4:]]
    place = inner[-1] if inner else "?"
    tally.exceptions += 1
    tally.places[place] = tally.places.get(place, 0) + 1
    if tally.places[place] == 1:
        what = f"{type(error).__name__}: {error}"[:200]
        _note(tally, arena, again, what, " < ".join(reversed(inner)))


def _again_seed(tally: Tally, arena: Arena, group: int) -> str:
    again = f"--seed {tally.seed} --first {group} --frames {arena.frames}"
    return shlex.join([*_command(tally), *again.split()])


def _note(tally: Tally, arena: Arena, again: str, what: str, where: str) -> None:
    if len(tally.failures) < REPORTS_MAX:
        frame = tally.frames + arena.frames
        tally.failures.append(Failure(frame, what, where, _input(arena), again))


def _input(arena: Arena) -> str:
    return "" if arena.last is None else f"{arena.last[0]} {arena.last[1].hex()}"


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
