"""Runs a scenario, watches and judges it: how it failed, and every random choice made in it."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from roundelay.check import Standing, Validity, check, profile_of
from roundelay.core.ids import NodeId
from roundelay.sim.command_text import Commands, due_ns, length_ns, names, verb, without_at
from roundelay.sim.faults import copy_name
from roundelay.sim.host_log import PowerCut
from roundelay.sim.load import Submission
from roundelay.sim.runner import ScenarioRunner, StackFactory
from roundelay.sim.scenario import Block, ScenarioError
from roundelay.sim.transmission import Transmission
from roundelay.sim.watch import Watch
from roundelay.sim.world import World
from roundelay.trace.schema import Row

Watcher = Callable[[World, NodeId, str, Any], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong: a property was violated, or something broke while the run went on."""

    property: str
    """The violated property; empty if an assertion or another exception ended the run."""
    reason: str = ""
    shape: str = ""
    """The reason without numbers and names: what tells one broken invariant from another."""

    def alike(self, other: "Failure | None") -> bool:
        """Whether it is the same failure, though perhaps of other messages or nodes."""
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
    """Whether a command sent it, and not the passing of time."""


@dataclass(slots=True)
class Attempt:
    """One run of a list of commands, and what came of it."""

    commands: Commands
    runner: ScenarioRunner
    failure: Failure | None = None
    witness: tuple[Row, ...] = ()
    shown_ns: int = 0
    """The time of the last row of the witness. What happens later does not matter to the failure,
    unless the failure is that something did not happen."""
    sent: dict[str, Sent] = field(default_factory=dict)
    """Frames by their name, like `a/3`."""
    torn: dict[tuple[int, NodeId], int] = field(default_factory=dict)
    """By time and node: how many bytes a restart found in its storage."""
    power: dict[tuple[int, NodeId], PowerCut] = field(default_factory=dict)
    """By time and node: what a power cut left of records that were not synced."""
    drawn: dict[int, list[Submission]] = field(default_factory=dict)
    """By index of the `load` command: what it submitted."""

    @property
    def made(self) -> Mapping[str, str]:
        """Every choice that departs from the plain run, by name."""
        return {} if self.runner.choices is None else self.runner.choices.made


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
    """Names of nodes, which do not count in the comparison of two failures."""

    def run(self, commands: Commands, wanted: Failure | None = None) -> Attempt:
        """Run and judge. Of several failures the wanted one is reported, or else the first in the
        order of the profile. Raises ScenarioError if the commands make no sense."""
        if not names(commands):
            raise ScenarioError(len(commands), "there are no nodes; write: nodes a b c")
        observer = _Observer(None if self.watch is None else self.watch())
        runner = ScenarioRunner(
            seed=self.seed, choices=self.choices, stack=self.stack, watch=observer
        )
        run = Attempt(
            commands, runner, sent=observer.sent, torn=observer.torn, power=observer.power
        )
        try:
            for index, command in enumerate(commands):
                if verb(command) == "load":
                    arguments = shlex.split(without_at(command))[1:]
                    run.drawn[index] = list(runner.draw_load(arguments, due_ns(command)))
                observer.at_once = not length_ns(command)
                runner.play(Block(index + 1, ((index + 1, command),), ""))
        except ScenarioError:
            raise
        except Exception as e:  # Whatever a core raises is a failure.
            run.shown_ns = runner.world.loop.now
            reason = str(e) or "unnamed"
            if not isinstance(e, AssertionError):
                reason = f"{type(e).__name__}: {reason}"
            run.failure = Failure("", reason, shape=shape(reason, self.nodes))
            return run
        self._judge(run, wanted)
        return run

    def _judge(self, run: Attempt, wanted: Failure | None) -> None:
        manifest = run.runner.manifest()
        if self.against:
            manifest = replace(manifest, protocol=self.against)
        held = profile_of(manifest)
        if wanted is not None:
            if not wanted.property:
                return
            needed = (wanted.property, *held.envelope)
            entries = [e for e in held.entries if e.property[0] == "T" or e.property in needed]
            held = replace(held, entries=tuple(entries))
        report = check(run.runner.rows, manifest, profile=held)
        for verdict, entry in zip(report.verdicts, report.profile.entries, strict=True):
            if verdict.validity is not Validity.VIOLATED or entry.standing is Standing.OPTIONAL:
                continue
            if wanted is None or wanted.property == verdict.property:
                run.failure = Failure(verdict.property, verdict.reason)
                run.witness = verdict.witness
                ends = [row.t_ns for row in verdict.witness]
                run.shown_ns = max(ends, default=run.runner.world.loop.now)
                return


class _Observer:
    """Notes the frames and restarts of a run, and passes every event on to `watch`."""

    def __init__(self, watch: Watcher | None) -> None:
        self.sent: dict[str, Sent] = {}
        self.torn: dict[tuple[int, NodeId], int] = {}
        self.power: dict[tuple[int, NodeId], PowerCut] = {}
        self.at_once = True
        self._watch = watch

    def __call__(self, world: World, node: NodeId, verb: str, what: Any) -> None:
        if verb in ("sends", "proves"):
            frame: Transmission = what
            number = frame.number if frame.traced else f"p{frame.number}"
            name = copy_name(frame.sender, frame.incarnation, number, "").rstrip(">")
            self.sent[name] = Sent(world.loop.now, node, frame.tag, frame.to, self.at_once)
        elif verb == "restarts":
            host = world.hosts[node]
            self.torn[world.loop.now, node] = len(host.storage or b"")
        elif verb == "crashes":
            log = world.hosts[node].log
            if log is not None and log.cut is not None:
                self.power[world.loop.now, node] = log.cut
        if self._watch is not None:
            self._watch(world, node, verb, what)
