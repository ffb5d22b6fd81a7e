"""Scenario commands that set up a run: `engine`, `network`, `nodes` and the like."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from roundelay.group.engines import (
    configure,
    describe,
    engine_config,
    engine_factory,
    needs_channel,
    without_views,
)
from roundelay.group.packer import GroupConfig
from roundelay.membership.config import MembershipConfig
from roundelay.sim.arguments import exactly, none_left, read_costs, read_network, split
from roundelay.sim.units import duration_ns
from roundelay.trace.extras import needs

if TYPE_CHECKING:
    from roundelay.sim.runner import ScenarioRunner


def set_engine(runner: "ScenarioRunner", arguments: list[str]) -> None:
    _before_nodes(runner)
    words, options = split(arguments)
    modes = [word for word in words if word in ("static", "views")]
    names = [word for word in words if word not in modes]
    (engine,) = exactly(1, names, "one engine, and static or views if you like")
    engine_factory(engine, options)
    static = "static" in modes or (not modes and describe(engine).static_only)
    if not static and (why := without_views(engine, options)):
        raise ValueError(f"{why}; write: engine {engine} static ...")
    runner.setup.engine, runner.setup.options, runner.setup.static = engine, options, static


def set_membership(runner: "ScenarioRunner", arguments: list[str]) -> None:
    _before_nodes(runner)
    words, options = split(arguments)
    exactly(0, words, "options alone")
    runner.setup.membership = configure("membership", MembershipConfig, options)


def set_group(runner: "ScenarioRunner", arguments: list[str]) -> None:
    _before_nodes(runner)
    words, options = split(arguments)
    exactly(0, words, "options alone")
    runner.setup.group = configure("group", GroupConfig, options)


def set_seed(runner: "ScenarioRunner", arguments: list[str]) -> None:
    _before_nodes(runner)
    (text,) = exactly(1, arguments, "one number")
    if not runner.seed_fixed:
        runner.seed = int(text)


def set_network(runner: "ScenarioRunner", arguments: list[str]) -> None:
    _before_nodes(runner)
    words, options = split(arguments)
    runner.setup.network = read_network(words, options)


def set_costs(runner: "ScenarioRunner", arguments: list[str]) -> None:
    _before_nodes(runner)
    words, options = split(arguments)
    exactly(0, words, "options alone")
    runner.setup.costs = read_costs(options)


def set_turn(runner: "ScenarioRunner", arguments: list[str]) -> None:
    _before_nodes(runner)
    (text,) = exactly(1, arguments, "a time, like: turn 500us")
    runner.setup.turn_ns = duration_ns(text)


def set_seal(runner: "ScenarioRunner", arguments: list[str]) -> None:
    _before_nodes(runner)
    words, options = split(arguments)
    exactly(0, words, "options alone, like: seal cipher=chacha")
    cipher = options.pop("cipher", "aes")
    none_left(options)
    if cipher not in ("aes", "chacha"):
        raise ValueError("the cipher is aes or chacha")
    if find_spec("cryptography") is None:
        raise ValueError(needs("cryptography"))
    runner.setup.seal = cipher


def create_nodes(runner: "ScenarioRunner", arguments: list[str]) -> None:
    _before_nodes(runner)
    names = [word for word in arguments if word != "down"]
    if len(names) == 1 and names[0].isdecimal() and int(names[0]) > 1:
        names = [chr(ord("a") + i) for i in range(min(int(names[0]), 26))]
    if len(set(names)) != len(names) or not names:
        raise ValueError("name each node once, like: nodes a b c")
    members = tuple(sorted(names))
    setup = runner.setup
    if (why := needs_channel(setup.engine, setup.options)) and not setup.network.reflects:
        raise ValueError(f"{why}; write: network channel")
    describe(setup.engine).check_options(engine_config(setup.engine, setup.options), members)
    runner.create_world(members)
    if "down" not in arguments:
        runner.world.start()


def start_nodes(runner: "ScenarioRunner", arguments: list[str]) -> None:
    if not arguments:
        raise ValueError("name the nodes to start, like: start a b")
    runner.world.start(*(runner.node(name) for name in arguments))


def _before_nodes(runner: "ScenarioRunner") -> None:
    if runner.has_world:
        raise ValueError("this comes before the nodes command")


COMMANDS = {
    "engine": set_engine,
    "membership": set_membership,
    "group": set_group,
    "seed": set_seed,
    "network": set_network,
    "costs": set_costs,
    "turn": set_turn,
    "seal": set_seal,
    "nodes": create_nodes,
    "start": start_nodes,
}
