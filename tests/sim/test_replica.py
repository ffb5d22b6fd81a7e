"""The replicated state of the examples, on simulated nodes: through partitions, losses, pauses and
a crash, what a node takes for certain is never taken back, and every command counts once. With
disks this holds whichever nodes crash, also all of them at once."""

import inspect
import itertools
import json
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Generator
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from replica import Replica

from roundelay.core.ids import Service, View
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.sim.world import World

LAG_NS = 2_000_000
"""An application takes what was delivered at most so much later."""

# A run can ignore a rule of `replica.py`:
#
#   safe           no message is safe
#   primary        every view counts as primary, and its members always agree
#   transitional   no message was delivered in such a view
#   copy           a node keeps its vote through a restart, but not its copy of the state
#   copy, memory   so it does, and it counts like the others when members agree
#   memory         who remembers nothing counts like the others when members agree
#   disks          nobody waits until the others have a change on disk


class Idle:
    """Awaited by a reader that has nothing to read."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class SimulatedGroup:
    """What a Replica needs of a group."""

    def __init__(self, world: World, node: str, ignored: str, disk: dict[str, str] | None) -> None:
        self.settings = SimpleNamespace(node=node, group="g", peers=world.hosts, state=disk)
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

    def __init__(self, group: SimulatedGroup, ignored: str) -> None:
        self._disk: dict[str, str] = group.settings.state
        self._ignored = ignored
        super().__init__(group, 0)  # type: ignore[arg-type]

    def apply(self, sender: str, command: int) -> None:
        self.state += command

    def _enough(self, voters: list[str]) -> bool:
        always = self._ignored in ("primary", "memory", "copy, memory")
        return always or super()._enough(voters)

    async def _keep(self) -> None:
        await super()._keep()
        if self._ignored == "disks":
            self._kept = {}

    def load(self) -> dict[str, Any] | None:
        found = self._disk.get(self.node)
        return None if found is None else json.loads(found)

    def save(self, copy: dict[str, Any]) -> None:
        self._disk[self.node] = json.dumps(copy)


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

    def __init__(self, group: SimulatedGroup, told: list[tuple[str, int]], ignored: str) -> None:
        self.alive = True
        self.asleep = False
        """Whether it does not read what its group has for it."""
        self.group = group
        self.sum = Sum(group, ignored)
        self._told = told
        self._main = self._follow()

    async def _follow(self) -> None:
        async for _ in self.sum.changes():
            if self.sum.certain and self.alive:
                self._told.append((self.sum.node, self.sum.state))

    def go_on(self, _: object = None) -> None:
        if self.alive and not self.asleep:
            self._main.send(None)

    def close(self) -> None:
        self.alive = False
        # The crash may come with a message that it is sending.
        if inspect.getcoroutinestate(self._main) != inspect.CORO_RUNNING:
            self._main.close()


class Run:
    """A group under faults that are drawn from a seed."""

    def __init__(self, seed: int, ignored: str, *, disks: bool, nodes: str = "") -> None:
        self.chance = Random(seed)
        self._ignored = ignored
        self._disks: dict[str, str] | None = {} if disks else None
        """What each node has on disk; None: nothing survives a crash, the vote neither."""
        self._storage = "kept" if disks or ignored.startswith("copy") else "lost"
        self.nodes = nodes or "abcde"[: self.chance.choice((3, 3, 4, 5))]
        self.told: list[tuple[str, int]] = []
        """Who took which state for certain, in the order of time."""
        self.lost = 0
        """Commands of lives that crashed: they may be in, or not."""
        self.submitted = 0
        self._open: dict[str, int] = dict.fromkeys(self.nodes, 0)
        self.applications: dict[str, Application] = {}
        self.victims = self.nodes if disks else self.chance.choice(self.nodes) if seed % 2 else ""
        """Who may crash. Without disks it is one: if several do, what they have may be gone."""
        self.story = ScenarioRunner(seed=seed, watch=self._watch)
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
            group = SimulatedGroup(world, node, self._ignored, self._disks)
            self.applications[node] = Application(group, self.told, self._ignored)
        application = self.applications[node]
        if isinstance(what, View):
            application.group.install(what)
        else:
            for payload in what.payloads:
                application.group.deliver(what.packet.span.node, payload)
        world.loop.at(world.loop.now + self.chance.randrange(LAG_NS), application.go_on)

    def asleep(self, nodes: str, *, asleep: bool = True) -> None:
        """Let applications read nothing for a while."""
        for node in nodes:
            self.applications[node].asleep = asleep
            self.applications[node].go_on()

    def submit(self) -> None:
        self.submit_at(*self.chance.sample(self.nodes, self.chance.randint(1, len(self.nodes))))

    def submit_at(self, *nodes: str) -> None:
        for node in nodes:
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
            case 6 if self.victims:
                after = self.chance.choice(("", " after=1", " after=5", " after=9"))
                self.do(f"crash {self.chance.choice(self.victims)}{after}")
            case 7 if self.victims:
                self.restart(*self.victims)

    def restart(self, *nodes: str) -> None:
        """Those of them that have crashed."""
        for node in nodes:
            self.do(f"restart {node} storage={self._storage}")

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
        self.do("run 10ms")
        self.restart(*self.victims)
        self.do("run 4s")

    @property
    def states(self) -> list[int]:
        """All that were taken for certain."""
        return sorted({state for _, state in self.told})

    def wrong(self) -> str:
        """What went wrong, if anything did."""
        for smaller, larger in itertools.pairwise(self.states):
            if smaller & larger != smaller:
                return f"{smaller:b} and {larger:b} are two histories"
        ends = {application.sum.state for application in self.applications.values()}
        if not all(application.sum.certain for application in self.applications.values()):
            return "not everybody came back"
        if len(ends) != 1:
            return f"they do not end with the same: {ends}"
        if ends.pop() | self.lost != (1 << self.submitted) - 1:
            return "a command was lost, or counted twice"
        return ""


def wrong(seed: int, rule: str = "", *, disks: bool = False) -> str:
    """What went wrong in a run of many mishaps, if anything did."""
    played = Run(seed, rule, disks=disks)
    played.play(steps=40 if disks else 20)
    least = 4 if disks else 6  # Where all may crash, there is often no majority.
    return played.wrong() or ("" if len(played.states) >= least else "nothing happened")


def restart_among_the_old(rule: str, *, disks: bool, slow: bool) -> Run:
    """a and b go on without c. Then b restarts and meets c, who knows nothing of that, while a is
    cut off. Where b is slow, it crashes before it read a's command."""
    played = Run(0, rule, disks=disks, nodes="abc")
    played.do("partition a,b c", "run 500ms")
    played.asleep("b", asleep=slow)
    played.submit_at("a")
    played.do("run 100ms", "crash b", "partition a b,c")
    played.restart("b")
    played.do("run 500ms")
    played.submit_at("c")
    played.do("run 500ms", "merge", "run 1s")
    return played


def vote_without_knowledge(rule: str) -> Run:
    """a and b go on without c. b restarts and has forgotten all, gets its vote in a view with the
    others, and is alone with c, who missed something, before anybody told it anything."""
    played = Run(0, rule, disks=False, nodes="abc")
    played.do("partition a,b c", "run 500ms")
    played.submit_at("a")
    played.do("run 100ms", "crash b", "run 500ms")
    played.restart("b")
    played.asleep("abc")
    played.do("merge", "run 1s", "partition a b,c", "run 500ms")
    played.asleep("abc", asleep=False)
    played.do("run 100ms")
    played.submit_at("c")
    played.do("run 500ms", "merge", "run 1s")
    return played


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("disks", [False, True], ids=["memory", "disks"])
def test_what_is_certain_stays_and_every_command_counts_once(seed, disks):
    assert wrong(seed, disks=disks) == ""


@pytest.mark.parametrize("rule", ["safe", "primary", "transitional"])
def test_without_one_of_its_rules_it_goes_wrong(rule):
    assert any("two histories" in wrong(seed, rule) for seed in range(60))


@pytest.mark.parametrize("slow", [False, True], ids=["", "slow"])
@pytest.mark.parametrize("disks", [False, True], ids=["memory", "disks"])
def test_who_restarts_among_those_who_missed_something_does_not_go_on_without_it(disks, slow):
    played = restart_among_the_old("", disks=disks, slow=slow)
    assert played.wrong() == ""
    went_on = [node for node, state in played.told if state == 0b10]
    assert bool(went_on) == (disks and slow), "who went on without what was not certain"


def test_a_vote_that_outlives_the_copy_of_the_state_counts_for_nothing():
    assert restart_among_the_old("copy", disks=False, slow=False).wrong() == ""
    counted = restart_among_the_old("copy, memory", disks=False, slow=False)
    assert "two histories" in counted.wrong()


def test_what_is_not_on_all_disks_may_be_lost():
    played = restart_among_the_old("disks", disks=True, slow=True)
    assert "two histories" in played.wrong()


def test_who_has_a_vote_but_was_told_nothing_yet_does_not_go_on_without_what_was_certain():
    assert vote_without_knowledge("").wrong() == ""
    assert "two histories" in vote_without_knowledge("memory").wrong()
