"""Scenario commands that let time pass, or move single frames of a manual network."""

from typing import TYPE_CHECKING

from roundelay.core.ids import NodeId
from roundelay.sim.arguments import exactly, none_left, split
from roundelay.sim.transmission import Transmission
from roundelay.sim.units import duration_ns

if TYPE_CHECKING:
    from roundelay.sim.runner import ScenarioRunner


STABILIZE_FRAMES_MAX = 10_000
"""How many frames `stabilize` delivers before it fails. A protocol that answers every frame with
another never becomes quiet; with a smaller limit a long but finite exchange would fail too."""


def run(runner: "ScenarioRunner", arguments: list[str]) -> None:
    (text,) = exactly(1, arguments, "a time, like: run 2s")
    runner.run_for(duration_ns(text))


def deliver(runner: "ScenarioRunner", arguments: list[str]) -> None:
    words, options = split(arguments)
    copies = int(options.pop("copies", "1"))
    for transmission, receiver in _pop_held(runner, words, options):
        for _ in range(copies):
            runner.world.hosts[receiver].arrive((transmission, None))


def drop(runner: "ScenarioRunner", arguments: list[str]) -> None:
    words, options = split(arguments)
    for transmission, receiver in _pop_held(runner, words, options):
        runner.world.drop("loss", transmission, receiver)


def stabilize(runner: "ScenarioRunner", arguments: list[str]) -> None:
    exactly(0, arguments, "nothing more")
    for _ in range(STABILIZE_FRAMES_MAX):
        if not runner.world.held:
            return
        transmission, receiver = runner.world.held.pop(0)
        runner.world.hosts[receiver].arrive((transmission, None))
    raise ValueError(f"still not quiet after {STABILIZE_FRAMES_MAX} frames")


def expire(runner: "ScenarioRunner", arguments: list[str]) -> None:
    name, timer = exactly(2, arguments, "a node and a timer")
    host = runner.world.hosts[runner.node(name)]
    if timer not in host.timers:
        armed = " ".join(sorted(host.timers)) or "none"
        raise ValueError(f"{name} has no timer {timer!r}; armed: {armed}")
    host.expire(timer)


def _pop_held(
    runner: "ScenarioRunner", words: list[str], options: dict[str, str]
) -> list[tuple[Transmission, NodeId]]:
    """Remove and return the copies that `words` and `options` describe from the manual network."""
    (to,) = exactly(1, words, "a receiver, or all")
    receivers = runner.world.nodes if to == "all" else (runner.node(to),)
    sender = options.pop("from", None)
    skip = int(options.pop("skip", "0"))
    count = int(options.pop("count", "0"))
    none_left(options)
    taken = [
        copy
        for copy in runner.world.held
        if copy[1] in receivers and sender in (None, copy[0].sender)
    ]
    taken = taken[skip : skip + count] if count else taken[skip:]
    if not taken:
        raise ValueError("no such frame is under way; `held` lists them")
    # Compared by identity: two equal copies of a frame may wait for the same node.
    marks = {id(copy) for copy in taken}
    runner.world.held = [copy for copy in runner.world.held if id(copy) not in marks]
    return taken


COMMANDS = {
    "run": run,
    "deliver": deliver,
    "drop": drop,
    "stabilize": stabilize,
    "expire": expire,
}
