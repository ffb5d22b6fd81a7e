"""Shrinking: makes a small scenario of a run that fails; the scenario fails in the same way.

First the run is made explicit, so that nothing in it depends on chance: see `explicit`. Then parts
are removed, the largest first, as long as the run still fails: what came after the failure, fates
of frames, nodes, events, messages. Last, `simplify` makes the rest easier to read. The failure must
stay the same one: the same property is violated, or the same invariant breaks.

Attempts are made in a fixed order and nothing is random: a run always shrinks to the same scenario.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from roundelay.sim import simplify
from roundelay.sim.command_text import (
    SETTING_UP,
    Commands,
    length_ns,
    names,
    truncated,
    verb,
    without_node,
)
from roundelay.sim.ddmin import ddmin
from roundelay.sim.explicit import ForcedFate, fates, numbered, typed, without_chance
from roundelay.sim.failure import Attempt, Failure, Judge, Watcher
from roundelay.sim.faults import Fate
from roundelay.sim.runner import ScenarioRunner, StackFactory
from roundelay.sim.scenario import ScenarioError, parse, rewrite
from roundelay.sim.units import show_ns
from roundelay.sim.watch import Watch
from roundelay.trace.schema import Row

BUDGET = 400
"""How many runs are attempted. With fewer the scenario stays larger; each one takes about as long
as the failing run."""

RESERVED_ATTEMPTS = 20
"""How many of these are kept for the last simplifications, which make times round and name the
messages."""

SHORT_END_NS = 1_000_000_000
"""An `end` command that waits more than twice as long is first tried with this wait. Most attempts
that do not fail show it by then; an attempt that fails is run again with the whole wait."""

_KEPT = (*SETTING_UP, "seed", "nodes", "start", "run", "end")
"""Verbs of commands that are never removed as they are."""


class NoFailureError(Exception):
    """The run that was to be shrunk does not fail; one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A small scenario that fails."""

    scenario: str
    """A file: what it shows, the commands, and what they print."""
    commands: Commands
    failure: Failure
    runs: int
    """How many runs were attempted."""
    runner: ScenarioRunner
    """Ran the scenario; a drawing takes its rows."""
    witness: tuple[Row, ...]


def shrink(
    scenario: str,
    seed: int | None = None,
    failure: Failure | None = None,
    *,
    choices: Mapping[str, str] | None = None,
    stack: StackFactory | None = None,
    watch: Callable[[], Watcher] | None = Watch,
    budget: int = BUDGET,
    progress: Callable[[int, int], None] | None = None,
    found: str = "",
) -> Shrunk:
    """Shrink a failing run, by at most `budget` attempts.

    `failure` is the one to keep if there are several; without it, the first violated property of
    the profile or the broken invariant is kept. `choices`, `stack` and `watch` are those of a
    ScenarioRunner, but `watch` makes a new watcher for each run. `found` is the command that found
    the failure. Raises NoFailureError if the run does not fail, and ScenarioError if the scenario
    cannot be run.
    """
    commands = tuple(command for block in parse(scenario) for _, command in block.commands)
    judge = Judge(seed, choices, stack, watch, _checked_protocol(commands), names(commands))
    first = judge.run(commands, failure)
    if first.failure is None or not (failure or first.failure).alike(first.failure):
        raise NoFailureError("the run does not fail, so there is nothing to shrink")
    # From here on the scenario holds all that decides the run, its seed included.
    first.commands = (f"seed {first.runner.seed}", *(c for c in commands if verb(c) != "seed"))
    judge = replace(judge, seed=None, choices=None)
    shrinker = _Shrinker(judge, first, budget, progress)
    shrinker.shrink()
    return _write_scenario(shrinker.best, shrinker.runs, judge, found)


def _checked_protocol(commands: Commands) -> str:
    """The protocol that the last `check` command names, if it names one."""
    named = [command.split()[1:] for command in commands if verb(command) == "check"]
    return named[-1][0] if named and named[-1] else ""


class _Shrinker:
    """The smallest failing run found so far, and how many were attempted."""

    def __init__(
        self,
        judge: Judge,
        first: Attempt,
        budget: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        assert first.failure is not None
        self.best = first
        self.runs = 0
        self._judge = judge
        self._wanted = first.failure
        self._budget = budget
        self._limit = budget - min(RESERVED_ATTEMPTS, budget // 5)
        self._progress = progress
        self._failed: set[Commands] = set()
        self._forms = [numbered, typed]
        """The ways to write fates; the one that succeeded last comes first."""

    def shrink(self) -> None:
        if self._make_explicit():
            self._narrow()
            self._attempt(typed(self._plain(), fates(self.best)))
        self._simplify()

    def _make_explicit(self) -> bool:
        """Replace what was drawn by commands, if possible only up to the failure."""
        commands, forced = without_chance(self.best), fates(self.best)
        end_ns = _whole_ms(self.best.shown_ns)
        before = [each for each in forced if (each.time_ns or 0) <= end_ns]
        short = not self._needs_end and self._attempt_with(truncated(commands, end_ns), before)
        return short or self._attempt_with(commands, forced)

    # Attempts

    def _attempt(self, commands: Commands) -> bool:
        """Whether these commands fail in the same way; then they become the best ones."""
        if commands in self._failed or self.runs >= self._limit:
            return False
        self.runs += 1
        if self._progress is not None:
            self._progress(self.runs, self._budget)
        run = self._fails(short) if (short := _with_short_end(commands)) != commands else None
        if run is not None or short == commands:
            run = self._fails(commands)
        if run is None:
            self._failed.add(commands)
            return False
        self.best = run
        return True

    def _fails(self, commands: Commands) -> Attempt | None:
        """The run of these commands if it fails in the same way, else None."""
        try:
            run = self._judge.run(commands, self._wanted)
        except ScenarioError:
            return None
        return run if self._wanted.alike(run.failure) else None

    def _attempt_with(self, commands: Commands, forced: Sequence[ForcedFate]) -> bool:
        """The same with the fates given apart, which are tried in both forms."""
        if not forced:
            return self._attempt(commands)
        for form in self._forms:
            if self._attempt(form(commands, forced)):
                self._forms.sort(key=lambda other: other is not form)
                return True
        return False

    def _plain(self) -> Commands:
        """The best commands without fates."""
        return tuple(command for command in self.best.commands if verb(command) != "fate")

    # Removing

    def _shorten(self) -> None:
        """Remove what came after the failure."""
        shorter = truncated(self.best.commands, _whole_ms(self.best.shown_ns))
        if shorter != self.best.commands and not self._needs_end:
            self._attempt(shorter)

    @property
    def _needs_end(self) -> bool:
        """Whether a liveness property is violated: that something did not happen shows only at an
        `end` command."""
        return self._wanted.property.startswith("L")

    def _narrow(self) -> None:
        """Remove all that is not needed, in rounds, until a round removes nothing."""
        rounds = self._budget * 2 // 3
        size = len(self.best.commands) + 1
        self._drop_kinds()
        while self.runs < rounds and len(self.best.commands) < size:
            size = len(self.best.commands)
            self._drop_nodes()
            self._drop(lambda command: verb(command) not in (*_KEPT, "submit"))
            self._drop(lambda command: verb(command) == "submit")
            self._drop_fates()
            self._shorten()

    def _drop_kinds(self) -> None:
        """Remove all fates of one kind at once: most of them do not matter."""
        kinds: tuple[Callable[[Fate], bool], ...] = (
            lambda fate: True,
            lambda fate: fate.is_delay,
            lambda fate: fate.flip is not None,
            lambda fate: fate.copy_ns is not None,
            lambda fate: fate.lost,
        )
        for kind in kinds:
            forced = fates(self.best)
            kept = [each for each in forced if not kind(Fate.parse(each.fate))]
            if len(kept) < len(forced):
                self._attempt_with(self._plain(), kept)

    def _drop_nodes(self) -> None:
        for node in reversed(names(self.best.commands)):
            if len(names(self.best.commands)) > 1:
                gone = [f for f in fates(self.best) if node not in _sender_and_receiver(f)]
                self._attempt_with(without_node(self._plain(), node), gone)

    def _drop(self, removable: Callable[[str], bool]) -> None:
        """Remove lines that `removable` chooses, in ever smaller ranges."""

        def lines() -> list[int]:
            return [i for i, command in enumerate(self._plain()) if removable(command)]

        def still_fails(rest: list[int]) -> list[int] | None:
            kept = set(rest)
            commands = tuple(
                command
                for i, command in enumerate(self._plain())
                if i in kept or not removable(command)
            )
            return lines() if self._attempt_with(commands, fates(self.best)) else None

        ddmin(lines(), still_fails, self._share())

    def _drop_fates(self) -> None:
        def still_fails(rest: list[ForcedFate]) -> Sequence[ForcedFate] | None:
            return fates(self.best) if self._attempt_with(self._plain(), rest) else None

        ddmin(fates(self.best), still_fails, self._share())

    def _share(self) -> int:
        """How many attempts the removal of one sort of lines may take."""
        return max(10, (self._limit - self.runs) // 3)

    # Simplifying

    def _simplify(self) -> None:
        size = 0
        while size != (size := len("\n".join(self.best.commands))):
            for simplification in (
                simplify.merge_runs,
                simplify.drop_options,
                simplify.start_with_nodes,
                simplify.drop_acts,
                simplify.simplify_lines,
                simplify.round_times,
                simplify.shorten_waits,
                simplify.merge_submissions,
                simplify.lower_times,
            ):
                simplification(self.best.commands, self._attempt)
            self._shorten()
            self._drop_lines()
        self._limit = self._budget
        simplify.round_times(self.best.commands, self._attempt)
        simplify.name_messages(self.best.commands, self._attempt)

    def _drop_lines(self) -> None:
        """Remove any line that is not needed."""

        def still_fails(rest: list[int]) -> list[int] | None:
            commands = self.best.commands
            kept = [c for i, c in enumerate(commands) if verb(c) in _KEPT or i in rest]
            return lines() if self._attempt(tuple(kept)) else None

        def lines() -> list[int]:
            return [i for i, c in enumerate(self.best.commands) if verb(c) not in _KEPT]

        ddmin(lines(), still_fails, self._share())
        for node in reversed(names(self.best.commands)):
            if len(names(self.best.commands)) > 1:
                self._attempt(without_node(self.best.commands, node))


def _with_short_end(commands: Commands) -> Commands:
    """The same commands with less time at the end. What does not happen in the whole time does not
    happen in this one, so a run that does not fail here does not fail with the whole time."""
    short = f"end after={show_ns(SHORT_END_NS)}"
    return tuple(
        short if verb(c) == "end" and length_ns(c) > 2 * SHORT_END_NS else c for c in commands
    )


def _whole_ms(time_ns: int) -> int:
    return -(-time_ns // simplify.MS) * simplify.MS


def _sender_and_receiver(forced: ForcedFate) -> tuple[str, str]:
    """Sender and receiver."""
    sender, _, receiver = forced.kind.partition(">")
    return sender.partition("/")[0], receiver


def _write_scenario(run: Attempt, runs: int, judge: Judge, found: str) -> Shrunk:
    """The scenario file of the smallest failing run."""
    failure = run.failure
    assert failure is not None
    lines = textwrap.wrap(f"{failure}.", 96)
    if found:
        lines += ["", f"Found by: {found}", f"Shrunk in {runs} runs."]
    comment = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    text = comment + "\n".join([*run.commands, "----"]) + "\n"
    if failure.property:
        text += "\n" + " ".join(["check", *([judge.against] if judge.against else [])]) + "\n----\n"
    runner = ScenarioRunner(stack=judge.stack, watch=None if judge.watch is None else judge.watch())
    if failure.property:
        text = rewrite(text, runner.play)
    return Shrunk(text, run.commands, failure, runs, run.runner, run.witness)
