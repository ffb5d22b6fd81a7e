"""Scenario commands that let applications submit messages."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from roundelay.core.ids import Service
from roundelay.sim.arguments import LOAD, exactly, none_left, settings, split
from roundelay.sim.load import Load, Submission
from roundelay.sim.units import size_bytes

if TYPE_CHECKING:
    from roundelay.sim.runner import ScenarioRunner


def submit(runner: "ScenarioRunner", arguments: list[str]) -> None:
    words, options = split(arguments)
    safe = "safe" in words[2:]
    node, payload = exactly(2, words[:2], "a node and a text")
    to = options.pop("to", None)
    times = int(options.pop("times", "1"))
    size = size_bytes(options.pop("size", "0"))
    none_left(options)
    for _ in range(times):
        runner.world.submit(
            runner.node(node),
            payload.encode().ljust(size, b"\0"),
            Service.SAFE if safe else Service.AGREED,
            None if to is None else tuple(sorted(runner.nodes(to))),
        )


def submit_load(runner: "ScenarioRunner", arguments: list[str]) -> None:
    _schedule_next(runner, draw_load(runner, arguments))


def draw_load(
    runner: "ScenarioRunner", arguments: list[str], start_ns: int | None = None
) -> Iterator[Submission]:
    """What a `load` command with these arguments submits if it is given at `start_ns`, by default
    now."""
    words, options = split(arguments)
    senders = runner.nodes(options.pop("from", ",".join(runner.world.nodes)))
    read = settings({"messages": "100", **options}, LOAD, "load")
    load = Load(senders, periodic="periodic" in words, **read)
    start_ns = runner.world.loop.now if start_ns is None else start_ns
    return load.draw(runner.seed, start_ns, runner.world.nodes)


def _schedule_next(runner: "ScenarioRunner", submissions: Iterator[Submission]) -> None:
    """Schedule the next submission, which schedules the one after it: a load of a million messages
    takes the memory of one."""
    submission = next(submissions, None)
    if submission is not None:

        def due(_: object) -> None:
            runner.world.submit(*submission[1:])
            _schedule_next(runner, submissions)

        runner.world.loop.at(submission.time_ns, due)


COMMANDS = {
    "submit": submit,
    "load": submit_load,
}
