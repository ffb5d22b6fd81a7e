"""What the commands of a scenario do. `docs/scenarios.md` lists them for users."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, get_args

from roundelay import __version__
from roundelay.check import Standing, Validity, check
from roundelay.core.contract import Boot, Core
from roundelay.core.effects import Deliver, Receipt, Suspect
from roundelay.core.ids import NodeId, Service, View
from roundelay.group.engines import STATIC_ONLY, configure, engine_config, engine_factory
from roundelay.group.packer import GroupConfig
from roundelay.group.stack import Stack
from roundelay.group.static import StaticStack
from roundelay.membership.config import MembershipConfig
from roundelay.sim.arguments import (
    LOAD,
    RATES,
    costs,
    exactly,
    link,
    loser,
    network,
    none_left,
    settings,
    split,
)
from roundelay.sim.faults import Choices, Fate, Rates
from roundelay.sim.host import Costs, Host, Transmission
from roundelay.sim.load import Load, Submission
from roundelay.sim.network import Manual, Network
from roundelay.sim.scenario import Block, ScenarioError
from roundelay.sim.units import duration_ns, show_ns, size_bytes
from roundelay.sim.world import Storage, World
from roundelay.trace.manifest import Manifest
from roundelay.trace.recorder import Append
from roundelay.trace.schema import Row
from roundelay.trace.writer import fingerprint

RUN_STEPS = 200
"""In how many steps a run is done when somebody watches."""

StackFactory = Callable[[Boot, tuple[NodeId, ...]], Core[Any]]
"""Makes the core of one node of a group with these founders."""

STABILIZE_FRAMES_MAX = 10_000
"""How many frames `stabilize` delivers before it says that this will never end."""

_VERBS = ("sends", "delivers", "receipt", "installs", "suspects", "crashes", "restarts", "expire")


class Story:
    """Runs the commands of one scenario. What they print is returned, block by block."""

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
        """`seed` overrides the scenario's own; `choices`, recorded by an earlier run, replace
        chance. Rows go to `append` too, as they are made. `stack` replaces the static group of
        the scenario's engine by cores of another kind. `progress` hears how much of a `run` is
        done, and of how much; `watch` of everything that happens, as it happens."""
        self.rows: list[Row] = []
        self.seed = seed or 0
        self.choices: Choices | None = None
        self._seed_fixed = seed is not None
        self._given = choices
        self._append = append
        self._stack = stack
        self._progress = progress
        self._watch = watch
        self._engine = "template"
        self._options: dict[str, str] = {}
        self._static = True
        self._membership = MembershipConfig()
        self._group = GroupConfig()
        self._network: Network = Manual()
        self._costs = Costs()
        self._turn_ns = 0
        self._world: World | None = None
        self._bound_ns: int | None = None
        self._shown: frozenset[str] | None = None
        self._out: list[str] = []
        self._log: dict[NodeId, list[str]] = {}

    def play(self, block: Block) -> str:
        """Run a block and return its output; `ok` where there was nothing to say."""
        for line, command in block.commands:
            self._do(line, command)
        out, self._out = self._out, []
        return "\n".join(out) or "ok"

    @property
    def world(self) -> World:
        if self._world is None:
            raise ValueError("there are no nodes yet; begin with a command like: nodes a b c")
        return self._world

    def manifest(self, scenario: str = "") -> Manifest:
        """The manifest of the run so far."""
        return Manifest(
            run=f"{self._engine}-{self.seed}",
            nodes=self.world.nodes,
            protocol=self._engine,
            rules=self._options.get("rules", "safe"),
            resilience=getattr(engine_config(self._engine, self._options), "resilience", None),
            mode="static" if self._static else "views",
            seed=self.seed,
            revision=__version__,
            config={"scenario": scenario, "options": self._options},
            bound_ns=self._bound_ns,
            rows=Counter(f"{row.proc}.{row.inc}" for row in self.rows),
            sha256=self.sha256(),
        )

    def sha256(self) -> str:
        """Of the rows so far, in canonical form."""
        return fingerprint(self.rows)

    # Reading commands

    def _do(self, line: int, command: str) -> None:
        try:
            words = shlex.split(command)
            verb, arguments = words[0], words[1:]
            handler = getattr(self, f"_cmd_{verb.replace('-', '_')}", None)
            if handler is None:
                raise ValueError(f"{verb!r} is not a command; docs/scenarios.md lists them")
            if verb == "at":
                self._at(line, arguments, command)
            else:
                handler(arguments)
        except ScenarioError:
            raise
        except ValueError as e:
            raise ScenarioError(line, f"{command}: {e}") from None

    def _at(self, line: int, arguments: list[str], command: str) -> None:
        if len(arguments) < 2:
            raise ValueError("write a time and a command, like: at 10ms crash b")
        time = duration_ns(arguments[0])
        if time < self.world.loop.now:
            raise ValueError(f"it is already {show_ns(self.world.loop.now)}")
        later = command.split(None, 2)[2]
        self.world.loop.at(time, lambda _: self._do(line, later))

    def _node(self, name: str) -> NodeId:
        if name not in self.world.hosts:
            raise ValueError(f"there is no node {name!r}; there are: {' '.join(self.world.nodes)}")
        return name

    def _host(self, words: list[str]) -> Host:
        """The host that the only word names."""
        (name,) = exactly(1, words, "one node")
        return self.world.hosts[self._node(name)]

    def _nodes(self, text: str) -> tuple[NodeId, ...]:
        return tuple(self._node(name) for name in text.split(","))

    # Setting up

    def _cmd_engine(self, arguments: list[str]) -> None:
        self._before_nodes()
        words, self._options = split(arguments)
        modes = [word for word in words if word in ("static", "views")]
        names = [word for word in words if word not in modes]
        (self._engine,) = exactly(1, names, "one engine, and static or views if you like")
        self._static = "static" in modes or (not modes and self._engine in STATIC_ONLY)
        engine_factory(self._engine, self._options)

    def _cmd_membership(self, arguments: list[str]) -> None:
        self._before_nodes()
        words, options = split(arguments)
        exactly(0, words, "options alone")
        self._membership = configure("membership", MembershipConfig, options)

    def _cmd_group(self, arguments: list[str]) -> None:
        self._before_nodes()
        words, options = split(arguments)
        exactly(0, words, "options alone")
        self._group = configure("group", GroupConfig, options)

    def _cmd_seed(self, arguments: list[str]) -> None:
        self._before_nodes()
        (text,) = exactly(1, arguments, "one number")
        if not self._seed_fixed:
            self.seed = int(text)

    def _cmd_network(self, arguments: list[str]) -> None:
        self._before_nodes()
        words, options = split(arguments)
        self._network = network(words, options)

    def _cmd_costs(self, arguments: list[str]) -> None:
        self._before_nodes()
        words, options = split(arguments)
        exactly(0, words, "options alone")
        self._costs = costs(options)

    def _cmd_turn(self, arguments: list[str]) -> None:
        self._before_nodes()
        (text,) = exactly(1, arguments, "a time, like: turn 500us")
        self._turn_ns = duration_ns(text)

    def _cmd_show(self, arguments: list[str]) -> None:
        for verb in arguments:
            if verb not in _VERBS:
                raise ValueError(f"{verb!r} cannot be shown; choose of: {' '.join(_VERBS)}")
        self._shown = frozenset(arguments)

    def _cmd_nodes(self, arguments: list[str]) -> None:
        self._before_nodes()
        names = [word for word in arguments if word != "down"]
        if len(names) == 1 and names[0].isdecimal() and int(names[0]) > 1:
            names = [chr(ord("a") + i) for i in range(min(int(names[0]), 26))]
        if len(set(names)) != len(names) or not names:
            raise ValueError("name each node once, like: nodes a b c")
        members = tuple(sorted(names))
        factory = engine_factory(self._engine, self._options)

        def core(boot: Boot) -> Core[Any]:
            if self._stack is not None:
                return self._stack(boot, members)
            if self._static:
                return StaticStack(boot, members, factory, self._group)
            return Stack(boot, members, factory, self._membership, self._group)

        self.choices = Choices(self.seed, self._given)
        self._log = {node: [] for node in members}
        self._world = World(
            members,
            core,
            self._network,
            self._take_row,
            choices=self.choices,
            costs=self._costs,
            turn_ns=self._turn_ns,
            observer=self._observe,
        )
        if "down" not in arguments:
            self._world.start()

    def _cmd_start(self, arguments: list[str]) -> None:
        if not arguments:
            raise ValueError("name the nodes to start, like: start a b")
        self.world.start(*(self._node(name) for name in arguments))

    def _before_nodes(self) -> None:
        if self._world is not None:
            raise ValueError("this comes before the nodes command")

    # The application

    def _cmd_submit(self, arguments: list[str]) -> None:
        words, options = split(arguments)
        safe = "safe" in words[2:]
        node, payload = exactly(2, words[:2], "a node and a text")
        to = options.pop("to", None)
        times = int(options.pop("times", "1"))
        size = size_bytes(options.pop("size", "0"))
        none_left(options)
        for _ in range(times):
            self.world.submit(
                self._node(node),
                payload.encode().ljust(size, b"\0"),
                Service.SAFE if safe else Service.AGREED,
                None if to is None else tuple(sorted(self._nodes(to))),
            )

    def _cmd_load(self, arguments: list[str]) -> None:
        self._feed(self.draw(arguments))

    def draw(self, arguments: list[str], start_ns: int | None = None) -> Iterator[Submission]:
        """What a `load` command with these arguments submits, given now or at that time."""
        words, options = split(arguments)
        senders = self._nodes(options.pop("from", ",".join(self.world.nodes)))
        read = settings({"messages": "100", **options}, LOAD, "load")
        load = Load(senders, periodic="periodic" in words, **read)
        start_ns = self.world.loop.now if start_ns is None else start_ns
        return load.draw(self.seed, start_ns, self.world.nodes)

    def _feed(self, submissions: Iterator[Submission]) -> None:
        """Schedule one submission; each schedules the next, so that a long load needs no room."""
        submission = next(submissions, None)
        if submission is not None:

            def due(_: object) -> None:
                self.world.submit(*submission[1:])
                self._feed(submissions)

            self.world.loop.at(submission.time_ns, due)

    # Time and the manual network

    def _cmd_at(self, arguments: list[str]) -> None:
        raise AssertionError("handled where the line number is known")

    def _cmd_run(self, arguments: list[str]) -> None:
        (text,) = exactly(1, arguments, "a time, like: run 2s")
        self._run(duration_ns(text))

    def _run(self, duration: int) -> None:
        if self._progress is None:
            self.world.run(duration)
            return
        start = self.world.loop.now
        for i in range(1, RUN_STEPS + 1):
            self.world.run(start + duration * i // RUN_STEPS - self.world.loop.now)
            self._progress(i, RUN_STEPS)

    def _cmd_deliver(self, arguments: list[str]) -> None:
        words, options = split(arguments)
        copies = int(options.pop("copies", "1"))
        for transmission, receiver in self._take_held(words, options):
            for _ in range(copies):
                self.world.hosts[receiver].arrive((transmission, None))

    def _cmd_drop(self, arguments: list[str]) -> None:
        words, options = split(arguments)
        for transmission, receiver in self._take_held(words, options):
            self.world.drop("loss", transmission, receiver)

    def _cmd_stabilize(self, arguments: list[str]) -> None:
        exactly(0, arguments, "nothing more")
        for _ in range(STABILIZE_FRAMES_MAX):
            if not self.world.held:
                return
            transmission, receiver = self.world.held.pop(0)
            self.world.hosts[receiver].arrive((transmission, None))
        raise ValueError(f"still not quiet after {STABILIZE_FRAMES_MAX} frames")

    def _cmd_expire(self, arguments: list[str]) -> None:
        name, timer = exactly(2, arguments, "a node and a timer")
        host = self.world.hosts[self._node(name)]
        if timer not in host.timers:
            armed = " ".join(sorted(host.timers)) or "none"
            raise ValueError(f"{name} has no timer {timer!r}; armed: {armed}")
        host.expire(timer)

    def _take_held(
        self, words: list[str], options: dict[str, str]
    ) -> list[tuple[Transmission, NodeId]]:
        """Take copies off the manual network: for a node, of a sender, behind some, so many."""
        (to,) = exactly(1, words, "a receiver, or all")
        receivers = self.world.nodes if to == "all" else (self._node(to),)
        sender = options.pop("from", None)
        skip = int(options.pop("skip", "0"))
        count = int(options.pop("count", "0"))
        none_left(options)
        taken = [
            copy
            for copy in self.world.held
            if copy[1] in receivers and sender in (None, copy[0].sender)
        ]
        taken = taken[skip : skip + count] if count else taken[skip:]
        if not taken:
            raise ValueError("no such frame is under way; `held` lists them")
        # Copies, not values, are taken: the same frame may wait for the same node twice.
        marks = {id(copy) for copy in taken}
        self.world.held = [copy for copy in self.world.held if id(copy) not in marks]
        return taken

    # Faults

    def _cmd_faults(self, arguments: list[str]) -> None:
        words, options = split(arguments)
        if words == ["none"]:
            options = {}
        elif words or not options:
            raise ValueError("write rates, like: faults loss=5% reorder=1%, or: faults none")
        self.world.set_rates(Rates(**settings(options, RATES, "faults")))

    def _cmd_fate(self, arguments: list[str]) -> None:
        if len(arguments) < 2:
            raise ValueError("write a copy and its fate, like: fate a/3>b lost")
        assert self.choices is not None
        skips = [word[5:] for word in arguments if word.startswith("skip=")]
        fate = Fate.parse(" ".join(w for w in arguments[1:] if not w.startswith("skip=")))
        self.choices.force(arguments[0], fate, skip=int(skips[0]) if skips else 0)

    def _cmd_lose(self, arguments: list[str]) -> None:
        """Lose copies by rule: of a type, with these fields, between these nodes, so many."""
        words, options = split(arguments)
        (tag,) = exactly(1, words, "a message type, or none to lose no more")
        if tag == "none":
            self.world.filters = []
            return
        senders = self._nodes(options.pop("from", ",".join(self.world.nodes)))
        receivers = self._nodes(options.pop("to", ",".join(self.world.nodes)))
        self.world.filters.append(
            loser(tag, senders, receivers, int(options.pop("times", "0")), options)
        )

    def _cmd_leave(self, arguments: list[str]) -> None:
        self.world.leave(self._host(arguments).name)

    def _cmd_crash(self, arguments: list[str]) -> None:
        words, options = split(arguments)
        after = int(options.pop("after", "0"))
        none_left(options)
        self.world.crash(self._host(words).name, after_effects=after)

    def _cmd_restart(self, arguments: list[str]) -> None:
        words, options = split(arguments)
        storage = options.pop("storage", "kept")
        torn = options.pop("bytes", None)
        none_left(options)
        kinds: tuple[Storage, ...] = get_args(Storage)
        if storage not in kinds:
            raise ValueError(f"storage is one of {', '.join(kinds)}")
        self.world.restart(self._host(words).name, storage, None if torn is None else int(torn))

    def _cmd_pause(self, arguments: list[str]) -> None:
        self.world.pause(self._host(arguments).name)

    def _cmd_resume(self, arguments: list[str]) -> None:
        self.world.resume(self._host(arguments).name)

    def _cmd_slow(self, arguments: list[str]) -> None:
        name, extra = exactly(2, arguments, "a node and a time")
        self.world.slow(self._node(name), duration_ns(extra))

    def _cmd_drift(self, arguments: list[str]) -> None:
        name, factor = exactly(2, arguments, "a node and a factor")
        self.world.drift(self._node(name), float(factor))

    def _cmd_partition(self, arguments: list[str]) -> None:
        if not arguments:
            raise ValueError("name the components, like: partition a,b c,d")
        self.world.partition(*(self._nodes(component) for component in arguments))

    def _cmd_cut(self, arguments: list[str]) -> None:
        links = [link(argument) for argument in arguments]
        self.world.cut((self._node(a), self._node(b)) for a, b in links)

    def _cmd_merge(self, arguments: list[str]) -> None:
        exactly(0, arguments, "nothing more")
        self.world.merge()

    def _cmd_heal(self, arguments: list[str]) -> None:
        exactly(0, arguments, "nothing more")
        self.world.heal()

    def _cmd_end(self, arguments: list[str]) -> None:
        """Heal, wait, and declare the run quiet."""
        words, options = split(arguments)
        exactly(0, words, "nothing more")
        self._bound_ns = duration_ns(options.pop("after", "1s"))
        none_left(options)
        self.world.heal()
        self._run(self._bound_ns)
        self.world.end()

    # Looking

    def _cmd_log(self, arguments: list[str]) -> None:
        for node in arguments or self.world.nodes:
            self._out.append(f"{node}: {' '.join(self._log[self._node(node)])}".rstrip())

    def _cmd_held(self, arguments: list[str]) -> None:
        exactly(0, arguments, "nothing more")
        for transmission, receiver in self.world.held:
            self._out.append(
                f"{transmission.sender} -> {receiver} {transmission.tag} {transmission}"
            )

    def _cmd_timers(self, arguments: list[str]) -> None:
        host = self._host(arguments)
        for timer, deadline in sorted(host.timers.items()):
            self._out.append(f"{timer} at {show_ns(deadline)}")

    def _cmd_state(self, arguments: list[str]) -> None:
        """What the core shows of itself: its engine's public attributes, if it has an engine."""
        core = self._host(arguments).core
        shown = getattr(core, "engine", core)
        for name in sorted(getattr(shown, "__slots__", None) or vars(shown)):
            if not name.startswith("_") and hasattr(shown, name):
                self._out.append(f"{name} = {_plain(getattr(shown, name))}")

    def _cmd_stats(self, arguments: list[str]) -> None:
        exactly(0, arguments, "nothing more")
        drops: dict[str, int] = {}
        for row in self.rows:
            if row.kind == "drop":
                drops[row.tag] = drops.get(row.tag, 0) + 1
        self._out.append(f"frames {self.world.frames}")
        self._out += [f"drop {reason} {drops[reason]}" for reason in sorted(drops)]

    def _cmd_check(self, arguments: list[str]) -> None:
        """The verdicts that are not simply ok, then how many there were of each."""
        if len(arguments) > 1:
            raise ValueError("name one protocol, whose promises are checked, or none")
        manifest = self.manifest()
        if arguments:
            manifest = replace(manifest, protocol=arguments[0])
        report = check(self.rows, manifest)
        counts: Counter[Validity] = Counter()
        for verdict, entry in zip(report.verdicts, report.profile.entries, strict=True):
            if entry.standing is Standing.OPTIONAL:
                continue
            counts[verdict.validity] += 1
            if verdict.validity not in (Validity.OK, Validity.VACUOUS):
                self._out.append(f"{verdict.property} {verdict.validity}: {verdict.reason}")
        self._out.append(", ".join(f"{counts[v]} {v}" for v in Validity if counts[v]))

    # Hearing what happens

    def _take_row(self, row: Row) -> None:
        self.rows.append(row)
        if self._append is not None:
            self._append(row)

    def _observe(self, node: NodeId, verb: str, what: Any) -> None:
        if self._watch is not None:
            self._watch(self.world, node, verb, what)
        manual = type(self._network) is Manual
        if verb == "delivers":
            self._log[node] += _brief(what)
        elif verb == "installs":
            self._log[node].append(str(what))
        if self._shown is not None:
            if verb not in self._shown:
                return
        elif verb == "receipt" or (not manual and verb in ("sends", "delivers", "expire")):
            return
        stamp = "" if manual else f"[{show_ns(self.world.loop.now)}] "
        self._out.append(stamp + _sentence(node, verb, what))


def _sentence(node: NodeId, verb: str, what: Any) -> str:
    match what:
        case None:
            return f"{node} {verb}"
        case Transmission():
            return f"{node} -> {what.to or '*'} {what.tag} {what}"
        case Deliver():
            key = "" if what.key is None else f" at {what.key[0]}.{what.key[1]}"
            said = "".join(f" {_short(payload)}" for payload in what.payloads)
            return f"{node} delivers {what.packet}{key}{said}"
        case Receipt():
            return f"{node} has a receipt for {what.span} at {what.index}"
        case View():
            return f"{node} installs {what}{' primary' if what.primary else ''}"
        case Suspect():
            return f"{node} suspects {' '.join(what.members) or 'the view'}: {what.reason}"
        case _:
            return f"{node} {verb} {what}"


def _brief(effect: Deliver) -> list[str]:
    """Messages in a log: what was said where it is a short word, else whose message it was."""
    span = effect.packet.span
    texts = [payload.decode(errors="replace") for payload in effect.payloads]
    return [
        text if 0 < len(text) <= 8 and text.isprintable() else str(span._replace(first=n, count=1))
        for n, text in enumerate(texts, span.first)
    ]


def _short(payload: bytes) -> str:
    """A payload as a quoted word, cut where it is long."""
    said = payload.rstrip(b"\0")
    return repr(said if len(said) <= 24 else said[:21] + b"...")[1:]


def _plain(value: Any) -> str:
    """A value on one line; sets in order, so that the line is always the same."""
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(_plain(item) for item in sorted(value)) + "}"
    if isinstance(value, dict):
        items = (f"{_plain(k)}: {_plain(v)}" for k, v in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return "[" + ", ".join(_plain(item) for item in value) + "]"
    return str(value)
