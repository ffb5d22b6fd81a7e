"""A run of a scenario, watched and judged: how it failed, and all that chance did in it."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from roundelay.check import Standing, Validity, check, profile_of
from roundelay.core.ids import NodeId
from roundelay.sim.commands import Commands, due_ns, later, length_ns, names, verb
from roundelay.sim.faults import copy_name
from roundelay.sim.host import Transmission
from roundelay.sim.load import Submission
from roundelay.sim.scenario import Block, ScenarioError
from roundelay.sim.story import StackFactory, Story
from roundelay.sim.watch import Watch
from roundelay.sim.world import World
from roundelay.trace.schema import Row

Watcher = Callable[[World, NodeId, str, Any], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong: a property was violated, or something broke while the run went on."""

    property: str
    """Empty if an assertion or another exception ended the run."""
    reason: str = ""
    shape: str = ""
    """The reason without numbers and names: what tells one broken invariant from another."""

    def alike(self, other: "Failure | None") -> bool:
        """Whether it is the same failure, of other messages at other nodes perhaps."""
        if other is None or self.property != other.property:
            return False
        return bool(self.property) or self.shape == other.shape

    def __str__(self) -> str:
        if not self.property:
            return f"an invariant broke: {self.reason}"
        return f"{self.property} violated: {self.reason}"


def shape(text: str, nodes: Iterable[NodeId]) -> str:
    """A sentence with its numbers and these names taken out."""
    for node in sorted(nodes):
        text = re.sub(rf"\b{re.escape(node)}\b", "#", text)
    text = re.sub(r"\d+", "#", text)
    return re.sub(r"'#'(?:, '#')*,?", "'#'", text)


@dataclass(frozen=True, slots=True)
class Sent:
    """A frame as it left its sender."""

    time_ns: int
    sender: NodeId
    tag: str
    to: NodeId | None
    at_once: bool
    """By a command itself, and not while time passed."""


@dataclass(slots=True)
class Run:
    """What came of a list of commands."""

    commands: Commands
    story: Story
    failure: Failure | None = None
    witness: tuple[Row, ...] = ()
    shown_ns: int = 0
    """When the failure was complete; what comes later cannot matter to it, except where something
    failed to happen."""
    sent: dict[str, Sent] = field(default_factory=dict)
    """Frames by their name, like `a/3`."""
    torn: dict[tuple[int, NodeId], int] = field(default_factory=dict)
    """By time and node: how many bytes a restart found in its storage."""
    drawn: dict[int, list[Submission]] = field(default_factory=dict)
    """By index of the `load` command: what it submitted."""

    @property
    def made(self) -> Mapping[str, str]:
        """Every choice that was not the plain one."""
        return {} if self.story.choices is None else self.story.choices.made


@dataclass(frozen=True, slots=True)
class Judge:
    """Runs commands and says how they fail."""

    seed: int | None = None
    choices: Mapping[str, str] | None = None
    stack: StackFactory | None = None
    watch: Callable[[], Watcher] | None = Watch
    against: str = ""
    """The protocol whose promises count, if it is not the engine's own."""
    nodes: tuple[NodeId, ...] = ()
    """Names that mean nothing in a sentence."""

    def run(self, commands: Commands, wanted: Failure | None = None) -> Run:
        """Run and judge; of all failures the wanted one, else the first that the profile names.
        ScenarioError if the commands make no sense."""
        if not names(commands):
            raise ScenarioError(len(commands), "there are no nodes; write: nodes a b c")
        ear = _Ear(None if self.watch is None else self.watch())
        story = Story(seed=self.seed, choices=self.choices, stack=self.stack, watch=ear)
        run = Run(commands, story, sent=ear.sent, torn=ear.torn)
        try:
            for index, command in enumerate(commands):
                if verb(command) == "load":
                    arguments = shlex.split(later(command))[1:]
                    run.drawn[index] = list(story.draw(arguments, due_ns(command)))
                ear.at_once = not length_ns(command)
                story.play(Block(index + 1, ((index + 1, command),), ""))
        except ScenarioError:
            raise
        except Exception as e:  # Whatever a core raises is what we are here for.
            run.shown_ns = story.world.loop.now
            reason = str(e) or "unnamed"
            if not isinstance(e, AssertionError):
                reason = f"{type(e).__name__}: {reason}"
            run.failure = Failure("", reason, shape=shape(reason, self.nodes))
            return run
        self._judge(run, wanted)
        return run

    def _judge(self, run: Run, wanted: Failure | None) -> None:
        manifest = run.story.manifest()
        if self.against:
            manifest = replace(manifest, protocol=self.against)
        held = profile_of(manifest)
        if wanted is not None:
            if not wanted.property:
                return
            needed = (wanted.property, *held.envelope)
            entries = [e for e in held.entries if e.property[0] == "T" or e.property in needed]
            held = replace(held, entries=tuple(entries))
        report = check(run.story.rows, manifest, profile=held)
        for verdict, entry in zip(report.verdicts, report.profile.entries, strict=True):
            if verdict.validity is not Validity.VIOLATED or entry.standing is Standing.OPTIONAL:
                continue
            if wanted is None or wanted.property == verdict.property:
                run.failure = Failure(verdict.property, verdict.reason)
                run.witness = verdict.witness
                ends = [row.t_ns for row in verdict.witness]
                run.shown_ns = max(ends, default=run.story.world.loop.now)
                return


class _Ear:
    """Hears what happens in a run, and passes it on to whoever watches for breaches."""

    def __init__(self, watch: Watcher | None) -> None:
        self.sent: dict[str, Sent] = {}
        self.torn: dict[tuple[int, NodeId], int] = {}
        self.at_once = True
        self._watch = watch

    def __call__(self, world: World, node: NodeId, verb: str, what: Any) -> None:
        if verb == "sends":
            frame: Transmission = what
            name = copy_name(frame.sender, frame.incarnation, frame.number, "").rstrip(">")
            self.sent[name] = Sent(world.loop.now, node, frame.tag, frame.to, self.at_once)
        elif verb == "restarts":
            host = world.hosts[node]
            self.torn[world.loop.now, node] = len(host.storage or b"")
        if self._watch is not None:
            self._watch(world, node, verb, what)
