"""What is simulated is what runs: both drivers use the inputs of a core, and nothing else."""

import asyncio
from functools import partial
from typing import Any

from tests.unit.runtime.test_bursts import MESSAGES, Net

from roundelay.core.contract import Core
from roundelay.group.engines import engine_factory
from roundelay.group.stack import Stack
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse

INPUTS = {name for name, member in vars(Core).items() if name[0] != "_" and callable(member)}
VIEWS = {"codec", "status"}
"""What a driver may read of a core."""

SCENARIO = """\
# Every input there is.
engine totem
network lan latency=100us
turn 500us
nodes a b
run 500ms
submit a x times=20
submit b y times=20
run 500ms
leave b
run 500ms
----
"""


class Watched:
    """A core that remembers which of its methods were called, and what else was looked at."""

    def __init__(self, core: Any, used: set[str]) -> None:
        self._core = core
        self._used = used

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._core, name)
        if name in VIEWS or not callable(found):
            self._used.add(name)
            return found
        return partial(self._call, name, found)

    def _call(self, name: str, method: Any, *arguments: Any) -> Any:
        self._used.add(name)
        return method(*arguments)


def simulated() -> set[str]:
    used: set[str] = set()
    totem = engine_factory("totem")
    runner = ScenarioRunner(stack=lambda boot, members: Watched(Stack(boot, members, totem), used))
    for block in parse(SCENARIO):
        runner.play(block)
    return used


def real() -> set[str]:
    used: set[str] = set()

    async def story() -> None:
        net = Net("totem", lambda core: Watched(core, used))
        await net.form()
        for message in MESSAGES:
            net.nodes["a"].sending.accept(message)
        await net.until(lambda: len(net.payloads("b")) == len(MESSAGES) and "expire" in used)
        for node in net.nodes.values():
            node.leave()

    asyncio.run(story())
    return used


def test_the_simulator_and_a_node_use_the_same_inputs_and_all_of_them():
    assert {"accept", "flush", "receive", "receive_many", "expire", "leave", "start"} == INPUTS
    assert simulated() - VIEWS == INPUTS
    assert real() - VIEWS == INPUTS
