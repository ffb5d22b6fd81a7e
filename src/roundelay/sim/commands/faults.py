"""Scenario commands that cause faults and heal them."""

from typing import TYPE_CHECKING, get_args

from roundelay.sim.arguments import RATES, exactly, link, loser, none_left, settings, split
from roundelay.sim.commands.journals import power_cut
from roundelay.sim.faults import Fate, Rates
from roundelay.sim.units import duration_ns
from roundelay.sim.world import Storage

if TYPE_CHECKING:
    from roundelay.sim.runner import ScenarioRunner


def set_faults(runner: "ScenarioRunner", arguments: list[str]) -> None:
    words, options = split(arguments)
    if words == ["none"]:
        options = {}
    elif words or not options:
        raise ValueError("write rates, like: faults loss=5% reorder=1%, or: faults none")
    runner.world.set_rates(Rates(**settings(options, RATES, "faults")))


def force_fate(runner: "ScenarioRunner", arguments: list[str]) -> None:
    if len(arguments) < 2:
        raise ValueError("write a copy and its fate, like: fate a/3>b lost")
    assert runner.choices is not None
    skips = [word[5:] for word in arguments if word.startswith("skip=")]
    fate = Fate.parse(" ".join(w for w in arguments[1:] if not w.startswith("skip=")))
    runner.choices.force(arguments[0], fate, skip=int(skips[0]) if skips else 0)


def lose(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """Lose frames of one type, by the fields, nodes and number of times that the options give."""
    words, options = split(arguments)
    (tag,) = exactly(1, words, "a message type, or none to lose no more")
    if tag == "none":
        runner.world.filters = []
        return
    senders = runner.nodes(options.pop("from", ",".join(runner.world.nodes)))
    receivers = runner.nodes(options.pop("to", ",".join(runner.world.nodes)))
    runner.world.filters.append(
        loser(tag, senders, receivers, int(options.pop("times", "0")), options)
    )


def leave(runner: "ScenarioRunner", arguments: list[str]) -> None:
    runner.world.leave(runner.host(arguments).name)


def crash(runner: "ScenarioRunner", arguments: list[str]) -> None:
    words, options = split(arguments)
    after = int(options.pop("after", "0"))
    power = power_cut(options) if "power" in words[1:] else None
    none_left(options)
    host = runner.host([word for word in words if word != "power"] if power else words)
    if power is not None and host.log is None:
        raise ValueError(f"{host.name} has no journal, so losing power is nothing but a crash")
    runner.world.crash(host.name, after_effects=after, power=power)


def restart(runner: "ScenarioRunner", arguments: list[str]) -> None:
    words, options = split(arguments)
    storage = options.pop("storage", "kept")
    torn = options.pop("bytes", None)
    none_left(options)
    kinds: tuple[Storage, ...] = get_args(Storage)
    kind, colon, index = storage.partition(":")
    if kind not in kinds or (kind == "rot") != index.isdecimal() or (colon and not index):
        raise ValueError("storage is one of kept, lost, torn, rot:INDEX")
    host = runner.host(words)
    if kind == "rot" and host.log is None:
        raise ValueError(f"{host.name} has no journal that could rot")
    runner.world.restart(
        host.name,
        kind,
        None if torn is None else int(torn),
        int(index) if index else None,
    )


def pause(runner: "ScenarioRunner", arguments: list[str]) -> None:
    runner.world.pause(runner.host(arguments).name)


def resume(runner: "ScenarioRunner", arguments: list[str]) -> None:
    runner.world.resume(runner.host(arguments).name)


def slow(runner: "ScenarioRunner", arguments: list[str]) -> None:
    name, extra = exactly(2, arguments, "a node and a time")
    runner.world.slow(runner.node(name), duration_ns(extra))


def drift(runner: "ScenarioRunner", arguments: list[str]) -> None:
    name, factor = exactly(2, arguments, "a node and a factor")
    runner.world.drift(runner.node(name), float(factor))


def partition(runner: "ScenarioRunner", arguments: list[str]) -> None:
    if not arguments:
        raise ValueError("name the components, like: partition a,b c,d")
    runner.world.partition(*(runner.nodes(component) for component in arguments))


def cut(runner: "ScenarioRunner", arguments: list[str]) -> None:
    links = [link(argument) for argument in arguments]
    runner.world.cut((runner.node(a), runner.node(b)) for a, b in links)


def merge(runner: "ScenarioRunner", arguments: list[str]) -> None:
    exactly(0, arguments, "nothing more")
    runner.world.merge()


def heal(runner: "ScenarioRunner", arguments: list[str]) -> None:
    exactly(0, arguments, "nothing more")
    runner.world.heal()


def end(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """Heal, wait, and declare the run quiet."""
    words, options = split(arguments)
    exactly(0, words, "nothing more")
    runner.bound_ns = duration_ns(options.pop("after", "1s"))
    none_left(options)
    runner.world.heal()
    runner.run_for(runner.bound_ns)
    runner.world.end()


COMMANDS = {
    "faults": set_faults,
    "fate": force_fate,
    "lose": lose,
    "leave": leave,
    "crash": crash,
    "restart": restart,
    "pause": pause,
    "resume": resume,
    "slow": slow,
    "drift": drift,
    "partition": partition,
    "cut": cut,
    "merge": merge,
    "heal": heal,
    "end": end,
}
