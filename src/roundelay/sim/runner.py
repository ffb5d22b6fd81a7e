"""Runs a scenario in the simulator, command by command, and keeps the rows of its trace."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roundelay import __version__
from roundelay.core.contract import Boot, Core
from roundelay.core.ids import NodeId, ViewId
from roundelay.group.engines import configure, engine_config, engine_factory, envelope
from roundelay.group.log.config import LogConfig
from roundelay.group.packer import GroupConfig
from roundelay.group.stack import Stack
from roundelay.group.static import StaticStack
from roundelay.membership.config import MembershipConfig
from roundelay.sim.arguments import exactly
from roundelay.sim.collection import rare_collection
from roundelay.sim.commands import COMMANDS
from roundelay.sim.commands.application import draw_load
from roundelay.sim.costs import Costs
from roundelay.sim.disk import Policy
from roundelay.sim.faults import Choices
from roundelay.sim.host import Host
from roundelay.sim.host_log import Journals
from roundelay.sim.load import Submission
from roundelay.sim.network import Manual, Network
from roundelay.sim.scenario import Block, ScenarioError
from roundelay.sim.transcript import brief, sentence
from roundelay.sim.units import duration_ns, show_ns
from roundelay.sim.world import World
from roundelay.trace.manifest import Manifest
from roundelay.trace.recorder import Append
from roundelay.trace.schema import Row
from roundelay.trace.writer import fingerprint

if TYPE_CHECKING:
    from roundelay.sim.sealed import Sealing

PROGRESS_STEPS = 200
"""How many times `progress` is called while a `run` command passes. Fewer calls make a progress
bar jump; more of them slow the simulation down."""

_ASKED_FOR = (
    "receipt",
    "proves",
    "refuses",
    "opens",
    "log",
    "commits",
    "appended",
    "asks",
    "waits",
    "found",
)
"""Verbs that nothing is printed of, unless `show` names them."""

StackFactory = Callable[[Boot, tuple[NodeId, ...]], Core[Any]]
"""Makes the core of one node of a group with these founders."""


@dataclass(slots=True)
class Setup:
    """What the commands before `nodes` decide."""

    engine: str = "template"
    options: dict[str, str] = field(default_factory=dict)
    """The options of the engine, as the scenario writes them."""
    static: bool = True
    """Whether the group has fixed members and no views."""
    membership: MembershipConfig = field(default_factory=MembershipConfig)
    group: GroupConfig = field(default_factory=GroupConfig)
    network: Network = field(default_factory=Manual)
    costs: Costs = field(default_factory=Costs)
    seal: str = ""
    """The cipher with which traffic is sealed, if it is."""
    turn_ns: int = 0
    """The length of the turns in which nodes handle their inputs; 0 if they handle each one at
    once."""
    journaled: frozenset[str] | None = frozenset()
    """The nodes that have a journal; None: all."""
    log: LogConfig = field(default_factory=LogConfig)
    objects: bool = False
    """Whether there are replicated machines on the log."""
    policy: Policy = Policy.ALWAYS
    sync_ns: int = 1_000_000
    """About how long a sync takes."""

    def set_journals(self, options: dict[str, str], nodes: frozenset[str] | None) -> None:
        """Give these nodes, or all, a journal."""
        self.objects = options.pop("objects", "no") == "yes"
        if self.objects:
            options["application"] = "yes"
        self.log = configure("journal", LogConfig, options)
        self.journaled = nodes

    @property
    def journals(self) -> Journals | None:
        """What the world is to know of journals; None if there are none."""
        if self.journaled is not None and not self.journaled:
            return None
        return Journals(
            self.policy, self.sync_ns, self.journaled, self.log.application, self.objects
        )


class ScenarioRunner:
    """Runs the commands of one scenario and returns, block by block, what they print."""

    frame_rows = True
    """Whether the trace has rows of single frames and timers."""
    bytes_every = 1
    """One frame of so many is taken through its bytes; the others reach those who get them whole as
    the objects that were sent."""

    def __init__(
        self,
        *,
        seed: int | None = None,
        choices: Mapping[str, str] | None = None,
        append: Append | None = None,
        stack: StackFactory | None = None,
        progress: Callable[[int, int], None] | None = None,
        watch: Callable[[World, NodeId, str, Any], None] | None = None,
    ) -> None:
        """`seed` overrides the scenario's own. `choices`, recorded by an earlier run, replace
        the random draws. `append` is called with every row of the trace as it is made. `stack`
        makes the core of each node, instead of the engine that the scenario names. `progress` is
        called with the steps of a `run` command that are done, and with all of them. `watch` is
        called with everything that happens to a node, as it happens."""
        self.rows: list[Row] = []
        self.seed = seed or 0
        self.seed_fixed = seed is not None
        """Whether the scenario's own `seed` command has no effect."""
        self.choices: Choices | None = None
        self.setup = Setup()
        self.bound_ns: int | None = None
        """How long the last `end` command waited for the group to become quiet."""
        self.shown_verbs: frozenset[str] | None = None
        """The verbs that `show` chose; None until it is used."""
        self.log: dict[NodeId, list[str]] = {}
        """By node: the messages and views that its application was given."""
        self.primaries: set[ViewId] = set()
        """The primary views that anybody has installed."""
        self._given = choices
        self._append = append
        self._stack = stack
        self._progress = progress
        self._watch = watch
        self._world: World | None = None
        self._out: list[str] = []
        self._hashed = (-1, "")
        """How many rows there were when they were hashed last, and their hash."""

    def play(self, block: Block) -> str:
        """Run a block and return its output, or `ok` if it printed nothing."""
        with rare_collection():
            for line, command in block.commands:
                self._do(line, command)
        out, self._out = self._out, []
        return "\n".join(out) or "ok"

    @property
    def world(self) -> World:
        if self._world is None:
            raise ValueError("there are no nodes yet; begin with a command like: nodes a b c")
        return self._world

    @property
    def has_world(self) -> bool:
        """Whether the `nodes` command was run."""
        return self._world is not None

    def manifest(self, scenario: str = "") -> Manifest:
        """The manifest of the run so far."""
        setup = self.setup
        return Manifest(
            run=f"{setup.engine}-{self.seed}",
            nodes=self.world.nodes,
            protocol=setup.engine,
            rules=setup.options.get("rules", "safe"),
            resilience=getattr(engine_config(setup.engine, setup.options), "resilience", None),
            envelope=envelope(setup.engine, setup.options),
            mode="static" if setup.static else "views",
            fsync="" if setup.journals is None else str(setup.policy),
            seed=self.seed,
            revision=__version__,
            config={"scenario": scenario, "options": setup.options},
            bound_ns=self.bound_ns,
            rows=Counter(f"{row.proc}.{row.inc}" for row in self.rows),
            sha256=self.sha256(),
        )

    def sha256(self) -> str:
        """The hash of the rows so far, in canonical form."""
        rows, sha256 = self._hashed
        if rows != len(self.rows):
            sha256 = fingerprint(self.rows)
            self._hashed = len(self.rows), sha256
        return sha256

    def draw_load(self, arguments: list[str], start_ns: int | None = None) -> Iterator[Submission]:
        """What a `load` command with these arguments submits if it is given at `start_ns`, by
        default now."""
        return draw_load(self, arguments, start_ns)

    # What commands use

    def create_world(self, members: tuple[NodeId, ...]) -> None:
        """Create the nodes, none of which is started, as the setup says."""
        setup = self.setup
        factory = engine_factory(setup.engine, setup.options)

        def core(boot: Boot) -> Core[Any]:
            if self._stack is not None:
                return self._stack(boot, members)
            if setup.static:
                return StaticStack(boot, members, factory, setup.group)
            return Stack(boot, members, factory, setup.membership, setup.group, log=setup.log)

        self.choices = Choices(self.seed, self._given)
        self.log = {node: [] for node in members}
        self._world = World(
            members,
            core,
            setup.network,
            self._append_row,
            choices=self.choices,
            costs=setup.costs,
            turn_ns=setup.turn_ns,
            net_rows=self.frame_rows,
            bytes_every=self.bytes_every,
            observer=self._observe,
            sealing=_sealing(setup.seal, self.seed),
            journal=setup.journals,
        )

    def node(self, name: str) -> NodeId:
        """The node of that name; ValueError if there is none."""
        if name not in self.world.hosts:
            raise ValueError(f"there is no node {name!r}; there are: {' '.join(self.world.nodes)}")
        return name

    def nodes(self, text: str) -> tuple[NodeId, ...]:
        """The nodes of a list such as `a,b`."""
        return tuple(self.node(name) for name in text.split(","))

    def host(self, words: list[str]) -> Host:
        """The host that the only word names."""
        (name,) = exactly(1, words, "one node")
        return self.world.hosts[self.node(name)]

    def print(self, line: str) -> None:
        """Add a line to the output of the block."""
        self._out.append(line)

    def run_for(self, duration_ns: int) -> None:
        """Let so much virtual time pass."""
        if self._progress is None:
            self.world.run(duration_ns)
            return
        start = self.world.loop.now
        for i in range(1, PROGRESS_STEPS + 1):
            self.world.run(start + duration_ns * i // PROGRESS_STEPS - self.world.loop.now)
            self._progress(i, PROGRESS_STEPS)

    # Reading commands

    def _do(self, line: int, command: str) -> None:
        try:
            verb, *arguments = shlex.split(command)
            if verb == "at":
                self._schedule(line, arguments, command)
            elif verb in COMMANDS:
                COMMANDS[verb](self, arguments)
            else:
                raise ValueError(f"{verb!r} is not a command; docs/scenarios.md lists them")
        except ScenarioError:
            raise
        except ValueError as e:
            raise ScenarioError(line, f"{command}: {e}") from None

    def _schedule(self, line: int, arguments: list[str], command: str) -> None:
        """Handle `at TIME COMMAND`, for which the number of the line is needed later."""
        if len(arguments) < 2:
            raise ValueError("write a time and a command, like: at 10ms crash b")
        time = duration_ns(arguments[0])
        if time < self.world.loop.now:
            raise ValueError(f"it is already {show_ns(self.world.loop.now)}")
        scheduled = command.split(None, 2)[2]
        self.world.loop.at(time, lambda _: self._do(line, scheduled))

    # Called by the world

    def _append_row(self, row: Row) -> None:
        self.rows.append(row)
        if self._append is not None:
            self._append(row)

    def _observe(self, node: NodeId, verb: str, what: Any) -> None:
        if self._watch is not None:
            self._watch(self.world, node, verb, what)
        manual = type(self.setup.network) is Manual
        if verb == "delivers":
            self.log[node] += brief(what)
        elif verb == "installs":
            self.log[node].append(str(what))
            if what.primary and not what.transitional:
                self.primaries.add(what.id)
        if self.shown_verbs is not None:
            if verb not in self.shown_verbs:
                return
        elif verb in _ASKED_FOR or (not manual and verb in ("sends", "delivers", "expire")):
            return
        stamp = "" if manual else f"[{show_ns(self.world.loop.now)}] "
        self._out.append(stamp + sentence(node, verb, what))


def _sealing(cipher: str, seed: int) -> "Sealing | None":
    if not cipher:
        return None
    from roundelay.sim.sealed import CIPHERS, Sealing  # Only now: it needs `cryptography`.

    return Sealing(seed, CIPHERS[cipher])
