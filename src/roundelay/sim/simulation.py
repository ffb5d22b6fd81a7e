"""What the simulator knows of one engine: goals, invariants, mishaps, options, explorations.

An engine's description names a module; its `SIMULATION` is found here. Everything has a default: an
engine without such a module gets what every engine has, and its options are never varied.
"""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

from roundelay.core.ids import NodeId
from roundelay.group.body import PIECE_OVERHEAD_BYTES
from roundelay.group.engines import EngineError, describe, engine_names
from roundelay.sim.draft import Mishap, ScenarioDraft
from roundelay.sim.world import World

if TYPE_CHECKING:
    from roundelay.sim.coverage.evidence import Evidence

ATTRIBUTE = "SIMULATION"

Detector = Callable[["Evidence"], bool]
"""Whether a run reached a goal. Its docstring is one line, for people."""

Watcher = Callable[[World, NodeId, str, Any], None]
"""Told of everything that happens in a world: at which node, what (a verb), and the effect or frame
it is about. Raises AssertionError at the first breach of an invariant."""

Options = Callable[[Random, int, bool], Mapping[str, object]]
"""Draws options of the engine for a group of so many nodes, static or not; None leaves an option at
its default."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How an engine is set up to be explored: timers cut short, so that little else happens."""

    options: str
    """Words after its name in the `engine` command."""
    patience: str
    """How long a node waits, after it was cut off from all others, until it is just about to
    suspect somebody: a duration, as scenarios have it."""
    repeating: frozenset[str] = frozenset()
    """Timers that send a frame again, or one that repeats what is known. To let them run out early
    is the same as a copy of that frame, so it is not tried."""
    noted: frozenset[str] = frozenset()
    """Names of frames that the engine's watch goes by and no row tells: two states that differ in
    them are not the same."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a group is put to the test, where an engine says more than what every engine has."""

    rates: tuple[str, ...]
    """The names of faults of single frames that may be drawn."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Settings of the engine besides, or instead of, those that it draws otherwise."""
    network: str = ""
    """Words of the `network` command that take the place of what is drawn ..."""
    latency_ns: int = 0
    """... and about how long a frame takes then."""
    faults: str = ""
    """Words of the `faults` command that take the place of what is drawn."""
    safe: bool = True
    """Whether safe messages may be sent: they wait for ever for a member that is gone."""
    mishaps: Mapping[str, Mishap] = field(default_factory=dict)
    """What may happen, as in views."""
    events: Callable[[ScenarioDraft, int], None] | None = None
    """Adds what happens for certain to a draft of so many milliseconds."""


Draw = Callable[[Random, list[str], str], Conditions]
"""Draws conditions for a group of these nodes, under these rules."""


def _no_options(random: Random, nodes: int, static: bool) -> Mapping[str, object]:
    return {}


def packets_in(scenario: str) -> int:
    """About how many packets a scenario's messages are, those in pieces included."""
    (room,) = re.findall(r"packet_bytes=(\d+)", scenario)
    loads = re.findall(r"^load messages=(\d+) rate=\S+(?: size=(\d+))?", scenario, re.MULTILINE)
    pieces = [
        int(count) * -(-max(1, int(size or 0)) // (int(room) - PIECE_OVERHEAD_BYTES))
        for count, size in loads
    ]
    pieces += map(int, re.findall(r" times=(\d+) size=", scenario))
    return sum(pieces)


def _sent_in_time(scenario: str, rotation_ns: int) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Simulation:
    """One engine in the simulator."""

    goals: Sequence[Detector] = ()
    """What must sometimes happen in a campaign, besides what must with every engine ..."""
    goals_in_views: Sequence[Detector] = ()
    """... and where views come and go."""
    goals_of_rules: Mapping[str, Sequence[Detector]] = field(default_factory=dict)
    """By rules: goals instead of all these, where runs stay inside of what a paper assumes."""
    watch: Callable[[], Watcher] | None = None
    """Makes what asserts the engine's invariants while a run goes on."""
    mishaps: Mapping[str, Mishap] = field(default_factory=dict)
    """What a seed may let happen, besides what it may with every engine."""
    options: Options = _no_options
    static_nodes_min: Mapping[str, int] = field(default_factory=dict)
    """By rules: the fewest nodes of a static group; 2 if nothing is said."""
    conditions: Draw | None = None
    """None: in static groups frames are lost, and nothing happens to nodes."""
    conditions_in_views: Callable[[Random, list[str], str], Conditions | None] | None = None
    """The same where there are views; None, or if it gives None: as with every engine."""
    subsets: tuple[int, ...] = (0,)
    """Shares of the load, in percent, that are for a part of the group only: a seed takes one."""
    carriers: tuple[str, ...] = ()
    """Names of the frames that tell packets and their order, which mishaps lose; by default those
    that carry packets."""
    load_messages_max: int = 150
    """Messages of the load of a seed. Larger: runs take longer. Smaller: windows never fill."""
    packet_bytes_min: int = 100
    """The smallest packets that a seed draws. Smaller: large messages become more pieces than the
    engine can order in time."""
    sending_ns: Callable[[str, int], int] = _sent_in_time
    """How long it takes to send all that a scenario submits, in nanoseconds, given how long a frame
    takes to go round all nodes. Where this is long, the end of the run is put off."""
    tuning: Tuning | None = None
    """None if the engine cannot be explored."""


@cache
def simulation_of(protocol: str) -> Simulation:
    """What the simulator knows of that engine; EngineError if there is none, or its module cannot
    be used."""
    description = describe(protocol)
    simulation = Simulation()
    if description.simulation:
        where = f"the engine {protocol!r} names the module {description.simulation}"
        try:
            module = importlib.import_module(description.simulation)
        except ImportError as e:
            raise EngineError(f"{where} for the simulator, which cannot be imported: {e}") from e
        found = getattr(module, ATTRIBUTE, None)
        if not isinstance(found, Simulation):
            raise EngineError(f"{where} for the simulator, which has no {ATTRIBUTE}")
        simulation = found
    if not simulation.carriers:
        simulation = replace(simulation, carriers=tuple(description.data_tags))
    return simulation


def explorable() -> tuple[str, ...]:
    """The names of the engines that can be explored."""
    names = []
    for name in engine_names():
        try:
            if simulation_of(name).tuning is not None:
                names.append(name)
        except EngineError:  # Whoever asks for it by name is told why.
            continue
    return tuple(names)
