"""Shrinking: of a run that fails, a small scenario that fails alike.

First the run is made explicit, so that nothing in it depends on chance: see `explicit`. Then parts
are taken out, the largest first, as long as the failure stays: what came after it, fates of frames,
nodes, events, messages. At last what is left is made plain to read. The failure must stay the same
one: the same property, or the same broken invariant.

Everything is tried in a fixed order and nothing is drawn: the same run shrinks to the same story.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from roundelay.sim import polish
from roundelay.sim.commands import SETTING_UP, Commands, cut, length_ns, names, verb, without_node
from roundelay.sim.ddmin import ddmin
from roundelay.sim.explicit import Forced, fates, numbered, typed, without_chance
from roundelay.sim.failure import Failure, Judge, Run, Watcher
from roundelay.sim.faults import Fate
from roundelay.sim.scenario import ScenarioError, parse, rewrite
from roundelay.sim.story import StackFactory, Story
from roundelay.sim.units import show_ns
from roundelay.sim.watch import Watch
from roundelay.trace.schema import Row

BUDGET = 400
"""How many runs are tried."""

RESERVE = 20
"""Of these, for the last touches."""

HASTY_NS = 1_000_000_000
"""How long a run is waited for at first, at its end."""

_KEPT = (*SETTING_UP, "seed", "nodes", "start", "run", "end")
"""Commands that are not simply taken out."""


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
    """How many were tried."""
    story: Story
    """Its run, to be drawn."""
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
    """Shrink a failing run, by at most `budget` tries.

    `failure` is the one to keep, if there are several; else the first property that does not hold,
    or what broke. `choices`, `stack` and `watch` are as a story has them, but a watch is made anew
    for each run. `found` is the command by which the failure was found. NoFailureError if there is
    none; ScenarioError if the scenario cannot be run.
    """
    commands = tuple(command for block in parse(scenario) for _, command in block.commands)
    judge = Judge(seed, choices, stack, watch, _against(commands), names(commands))
    first = judge.run(commands, failure)
    if first.failure is None or not (failure or first.failure).alike(first.failure):
        raise NoFailureError("the run does not fail, so there is nothing to shrink")
    # From here on the scenario speaks for itself, its seed included.
    first.commands = (f"seed {first.story.seed}", *(c for c in commands if verb(c) != "seed"))
    judge = replace(judge, seed=None, choices=None)
    shrinker = _Shrinker(judge, first, budget, progress)
    shrinker.shrink()
    return _told(shrinker.best, shrinker.runs, judge, found)


def _against(commands: Commands) -> str:
    """The protocol that the scenario is checked against, if it names one."""
    named = [command.split()[1:] for command in commands if verb(command) == "check"]
    return named[-1][0] if named and named[-1] else ""


class _Shrinker:
    """The smallest run found so far, and how many were tried."""

    def __init__(
        self,
        judge: Judge,
        first: Run,
        budget: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        assert first.failure is not None
        self.best = first
        self.runs = 0
        self._judge = judge
        self._wanted = first.failure
        self._budget = budget
        self._limit = budget - min(RESERVE, budget // 5)
        self._progress = progress
        self._failed: set[Commands] = set()
        self._forms = [numbered, typed]
        """How fates are written; first the way that succeeded last."""

    def shrink(self) -> None:
        if self._make_explicit():
            self._narrow()
            self._attempt(typed(self._plain(), fates(self.best)))
        self._polish()

    def _make_explicit(self) -> bool:
        """Write out what was drawn, if possible only as far as the failure."""
        commands, forced = without_chance(self.best), fates(self.best)
        end_ns = _whole_ms(self.best.shown_ns)
        before = [each for each in forced if (each.time_ns or 0) <= end_ns]
        short = not self._needs_end and self._attempt_with(cut(commands, end_ns), before)
        return short or self._attempt_with(commands, forced)

    # Trying

    def _attempt(self, commands: Commands) -> bool:
        """Whether these commands fail alike; then they are the best so far."""
        if commands in self._failed or self.runs >= self._limit:
            return False
        self.runs += 1
        if self._progress is not None:
            self._progress(self.runs, self._budget)
        run = self._fails(hasty) if (hasty := _hasty(commands)) != commands else None
        if run is not None or hasty == commands:
            run = self._fails(commands)
        if run is None:
            self._failed.add(commands)
            return False
        self.best = run
        return True

    def _fails(self, commands: Commands) -> Run | None:
        """The run of these commands, if it fails alike."""
        try:
            run = self._judge.run(commands, self._wanted)
        except ScenarioError:
            return None
        return run if self._wanted.alike(run.failure) else None

    def _attempt_with(self, commands: Commands, forced: Sequence[Forced]) -> bool:
        """The same with fates apart, in either form."""
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

    # Taking out

    def _shorten(self) -> None:
        """Leave out what came after the failure."""
        shorter = cut(self.best.commands, _whole_ms(self.best.shown_ns))
        if shorter != self.best.commands and not self._needs_end:
            self._attempt(shorter)

    @property
    def _needs_end(self) -> bool:
        """Whether the failure is that something did not happen, which only an end can show."""
        return self._wanted.property.startswith("L")

    def _narrow(self) -> None:
        """Take out all that can be spared, until no round finds anything."""
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
        """Fates of one kind, all at once: most of them never mattered."""
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
                gone = [f for f in fates(self.best) if node not in _ends(f)]
                self._attempt_with(without_node(self._plain(), node), gone)

    def _drop(self, spared: Callable[[str], bool]) -> None:
        """Lines of one sort, in ever smaller runs."""

        def lines() -> list[int]:
            return [i for i, command in enumerate(self._plain()) if spared(command)]

        def still(rest: list[int]) -> list[int] | None:
            kept = set(rest)
            commands = tuple(
                command
                for i, command in enumerate(self._plain())
                if i in kept or not spared(command)
            )
            return lines() if self._attempt_with(commands, fates(self.best)) else None

        ddmin(lines(), still, self._share())

    def _drop_fates(self) -> None:
        def still(rest: list[Forced]) -> Sequence[Forced] | None:
            return fates(self.best) if self._attempt_with(self._plain(), rest) else None

        ddmin(fates(self.best), still, self._share())

    def _share(self) -> int:
        """How many tries one sort of things may take."""
        return max(10, (self._limit - self.runs) // 3)

    # Making plain

    def _polish(self) -> None:
        size = 0
        while size != (size := len("\n".join(self.best.commands))):
            for passage in (
                polish.flat,
                polish.plain_setting,
                polish.started,
                polish.plain_lines,
                polish.rounded,
                polish.together,
                polish.merged,
                polish.fewer,
            ):
                passage(self.best.commands, self._attempt)
            self._shorten()
            self._drop_lines()
        self._limit = self._budget
        polish.rounded(self.best.commands, self._attempt)
        polish.named(self.best.commands, self._attempt)

    def _drop_lines(self) -> None:
        """Any line, as it stands now."""

        def still(rest: list[int]) -> list[int] | None:
            commands = self.best.commands
            kept = [c for i, c in enumerate(commands) if verb(c) in _KEPT or i in rest]
            return lines() if self._attempt(tuple(kept)) else None

        def lines() -> list[int]:
            return [i for i, c in enumerate(self.best.commands) if verb(c) not in _KEPT]

        ddmin(lines(), still, self._share())
        for node in reversed(names(self.best.commands)):
            if len(names(self.best.commands)) > 1:
                self._attempt(without_node(self.best.commands, node))


def _hasty(commands: Commands) -> Commands:
    """The same with less time at the end. What has not come about after all the time has not come
    about by then either, so most runs that do not fail need not be waited for."""
    hasty = f"end after={show_ns(HASTY_NS)}"
    return tuple(hasty if verb(c) == "end" and length_ns(c) > 2 * HASTY_NS else c for c in commands)


def _whole_ms(time_ns: int) -> int:
    return -(-time_ns // polish.MS) * polish.MS


def _ends(forced: Forced) -> tuple[str, str]:
    """Sender and receiver."""
    sender, _, receiver = forced.kind.partition(">")
    return sender.partition("/")[0], receiver


def _told(run: Run, runs: int, judge: Judge, found: str) -> Shrunk:
    """The scenario file of the smallest run."""
    failure = run.failure
    assert failure is not None
    lines = textwrap.wrap(f"{failure}.", 96)
    if found:
        lines += ["", f"Found by: {found}", f"Shrunk in {runs} runs."]
    comment = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    text = comment + "\n".join([*run.commands, "----"]) + "\n"
    if failure.property:
        text += "\n" + " ".join(["check", *([judge.against] if judge.against else [])]) + "\n----\n"
    story = Story(stack=judge.stack, watch=None if judge.watch is None else judge.watch())
    if failure.property:
        text = rewrite(text, story.play)
    return Shrunk(text, run.commands, failure, runs, run.story, run.witness)
