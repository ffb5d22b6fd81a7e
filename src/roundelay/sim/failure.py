"""A run of a scenario, watched and judged: how it failed, and all that chance did in it."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from roundelay.check import Standing, Validity, Verdict, check, profile_of
from roundelay.core.ids import NodeId
from roundelay.sim.commands import Commands, due_ns, later, length_ns, verb
from roundelay.sim.faults import copy_name
from roundelay.sim.host import Transmission
from roundelay.sim.load import Submission
from roundelay.sim.scenario import Block, ScenarioError
from roundelay.sim.story import StackFactory, Story
from roundelay.sim.watch import Watch
from roundelay.sim.world import World
from roundelay.trace.schema import Row

Watcher = Callable[[World, NodeId, str, Any], None]

_SUSPICIOUS = (Validity.VIOLATED, Validity.OUTSIDE, Validity.INCONCLUSIVE)
"""What speaks against a run, gravest first."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong: a verdict on a property, or what broke while the run was going on."""

    property: str
    """Empty if an assertion or another exception ended the run."""
    reason: str = ""
    validity: Validity = Validity.VIOLATED
    shape: str = ""
    """The reason without numbers and names, where that is what tells failures apart."""

    def alike(self, other: "Failure | None") -> bool:
        """Whether it is the same failure, of other messages at other nodes perhaps."""
        if other is None or (self.property, self.validity) != (other.property, other.validity):
            return False
        by_property = self.property and self.validity is Validity.VIOLATED
        return bool(by_property) or self.shape == other.shape

    def __str__(self) -> str:
        if not self.property:
            return f"an invariant broke: {self.reason}"
        return f"{self.property} {self.validity}: {self.reason}"


def shape(text: str, nodes: Iterable[NodeId]) -> str:
    """A sentence with its numbers and these names taken out."""
    names = "|".join(re.escape(node) for node in sorted(nodes))
    text = re.sub(rf"\b(?:{names})\b", "#", text)
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
        """Run and judge; of all failures the wanted one, else the first and gravest. ScenarioError
        if the commands make no sense."""
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
        binding = [
            verdict
            for verdict, entry in zip(report.verdicts, report.profile.entries, strict=True)
            if entry.standing is not Standing.OPTIONAL and verdict.validity in _SUSPICIOUS
        ]
        verdict = _pick(binding, wanted)
        if verdict is not None:
            run.failure = Failure(
                verdict.property,
                verdict.reason,
                verdict.validity,
                shape(verdict.reason, self.nodes),
            )
            run.witness = verdict.witness
            ends = [row.t_ns for row in verdict.witness]
            run.shown_ns = max(ends, default=run.story.world.loop.now)


def _pick(verdicts: list[Verdict], wanted: Failure | None) -> Verdict | None:
    if wanted is not None:
        return next((v for v in verdicts if v.property == wanted.property), None)
    graves = sorted(verdicts, key=lambda v: _SUSPICIOUS.index(v.validity))
    return graves[0] if graves else None


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
            name = copy_name(frame.sender, frame.incarnation, frame.packet, "").rstrip(">")
            self.sent[name] = Sent(world.loop.now, node, frame.tag, frame.to, self.at_once)
        elif verb == "restarts":
            host = world.hosts[node]
            self.torn[world.loop.now, node] = len(host.storage or b"")
        if self._watch is not None:
            self._watch(world, node, verb, what)
