"""The replicated state of the examples, on simulated nodes: through partitions, losses, pauses and
a crash, what a node takes for certain is never taken back, and every command counts once."""

import inspect
import itertools
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Generator
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from replica import Replica

from roundelay.core.ids import Service, View
from roundelay.sim.scenario import parse
from roundelay.sim.story import Story
from roundelay.sim.world import World

LAG_NS = 2_000_000
"""An application takes what was delivered at most so much later."""


class Idle:
    """Awaited by a reader that has nothing to read."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class SimulatedGroup:
    """What a Replica needs of a group. A rule that is to be ignored is `safe`: no message is;
    `primary`: every view is; or `transitional`: no message was delivered in such a view."""

    def __init__(self, world: World, node: str, ignored: str) -> None:
        self.settings = SimpleNamespace(node=node)
        self.events: deque[Any] = deque()
        self._world = world
        self._ignored = ignored
        self._view: View | None = None
        """The last one, as the messages show it."""

    def install(self, view: View) -> None:
        if self._ignored == "primary":
            view = replace(view, primary=not view.transitional)
        if self._ignored != "transitional" or not view.transitional:
            self._view = view
        self.events.append(view)

    def deliver(self, sender: str, payload: bytes) -> None:
        self.events.append(SimpleNamespace(sender=sender, payload=payload, view=self._view))

    async def send(self, payload: bytes, *, safe: bool) -> None:
        safe = safe and self._ignored != "safe"
        service = Service.SAFE if safe else Service.AGREED
        self._world.submit(self.settings.node, payload, service)

    async def __aiter__(self) -> AsyncIterator[Any]:
        while True:
            while not self.events:
                await Idle()
            yield self.events.popleft()


class Sum(Replica):
    """Every command is a power of two of its own, so that the state says which ones are in it."""

    def apply(self, sender: str, command: int) -> None:
        self.state += command


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run it until it waits, or ends."""
    try:
        coroutine.send(None)
    except StopIteration:
        pass
    else:
        raise AssertionError("it had to wait")


class Application:
    """One life of a node's application."""

    def __init__(self, group: SimulatedGroup, told: list[tuple[str, int]]) -> None:
        self.alive = True
        self.group = group
        self.sum = Sum(group, 0)  # type: ignore[arg-type]
        self._told = told
        self._main = self._follow()

    async def _follow(self) -> None:
        async for _ in self.sum.changes():
            if self.sum.certain and self.alive:
                self._told.append((self.sum.node, self.sum.state))

    def go_on(self, _: object = None) -> None:
        if self.alive:
            self._main.send(None)

    def close(self) -> None:
        self.alive = False
        # The crash may come with a message that it is sending.
        if inspect.getcoroutinestate(self._main) != inspect.CORO_RUNNING:
            self._main.close()


class Run:
    """A group under faults that are drawn from a seed."""

    def __init__(self, seed: int, ignored: str) -> None:
        self.chance = Random(seed)
        self._ignored = ignored
        self.nodes = "abcde"[: self.chance.choice((3, 3, 4, 5))]
        self.told: list[tuple[str, int]] = []
        """Who took which state for certain, in the order of time."""
        self.lost = 0
        """Commands of lives that crashed: they may be in, or not."""
        self.submitted = 0
        self._open: dict[str, int] = dict.fromkeys(self.nodes, 0)
        self.applications: dict[str, Application] = {}
        self.victim = self.chance.choice(self.nodes) if seed % 2 else ""
        """The one that may crash: if several do, what they have may be gone."""
        self.story = Story(seed=seed, watch=self._watch)
        self.do("engine totem", "network lan latency=100us jitter=100us", "show")
        self.do(f"nodes {' '.join(self.nodes)}", "run 20ms")

    def do(self, *commands: str) -> None:
        for block in parse("\n".join((*commands, "----", ""))):
            self.story.play(block)

    def _watch(self, world: World, node: str, verb: str, what: Any) -> None:
        if verb == "crashes":
            self.applications.pop(node).close()
            self.lost += self._open[node]
            self._open[node] = 0
        if verb not in ("installs", "delivers"):
            return
        if node not in self.applications:
            group = SimulatedGroup(world, node, self._ignored)
            self.applications[node] = Application(group, self.told)
        application = self.applications[node]
        if isinstance(what, View):
            application.group.install(what)
        else:
            for payload in what.payloads:
                application.group.deliver(what.packet.span.node, payload)
        world.loop.at(world.loop.now + self.chance.randrange(LAG_NS), application.go_on)

    def submit(self) -> None:
        for node in self.chance.sample(self.nodes, self.chance.randint(1, len(self.nodes))):
            if node in self.applications:
                command = 1 << self.submitted
                self.submitted += 1
                self._open[node] += command
                run(self.applications[node].sum.submit(command))

    def mishap(self) -> None:
        match self.chance.randrange(8):
            case 0 | 1 | 2:
                sides = [self.chance.randrange(3) for _ in self.nodes]
                parts = [
                    ",".join(n for n, s in zip(self.nodes, sides, strict=True) if s == side)
                    for side in sorted(set(sides))
                ]
                self.do("merge" if len(parts) == 1 else f"partition {' '.join(parts)}")
            case 3:
                self.do("merge")
            case 4:
                self.do(f"faults loss={self.chance.choice((0, 2, 10))}%")
            case 5:
                node = self.chance.choice(self.nodes)
                wait = self.chance.choice(("10ms", "150ms"))
                self.do(f"pause {node}", f"run {wait}", f"resume {node}")
            case 6 if self.victim:
                after = self.chance.choice(("", " after=1", " after=5", " after=9"))
                self.do(f"crash {self.victim}{after}")
            case 7 if self.victim:
                self.do(f"restart {self.victim}")

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.mishap()
            for _ in range(self.chance.randint(0, 3)):
                self.submit()
                self.do(f"run {self.chance.choice(('200us', '1ms', '5ms'))}")
            self.do(
                f"run {self.chance.choice(('100us', '400us', '1ms', '40ms', '130ms', '300ms'))}"
            )
        self.do("heal")
        if self.victim:
            self.do("run 10ms", f"restart {self.victim}")
        self.do("run 4s")


def wrong(seed: int, rule: str = "") -> str:
    """What went wrong in a run, if anything did."""
    played = Run(seed, rule)
    played.play(steps=20)
    states = sorted({state for _, state in played.told})
    for smaller, larger in itertools.pairwise(states):
        if smaller & larger != smaller:
            return f"{smaller:b} and {larger:b} are two histories"
    ends = {application.sum.state for application in played.applications.values()}
    if not all(application.sum.certain for application in played.applications.values()):
        return "not everybody came back"
    if len(ends) != 1:
        return f"they do not end with the same: {ends}"
    if ends.pop() | played.lost != (1 << played.submitted) - 1:
        return "a command was lost, or counted twice"
    return "" if len(states) > 5 else "nothing happened"


@pytest.mark.parametrize("seed", range(10))
def test_what_is_certain_stays_and_every_command_counts_once(seed):
    assert wrong(seed) == ""


@pytest.mark.parametrize("rule", ["safe", "primary", "transitional"])
def test_without_one_of_its_rules_it_goes_wrong(rule):
    assert any("two histories" in wrong(seed, rule) for seed in range(60))
