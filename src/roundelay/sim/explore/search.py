"""The search: all runs of one situation that deviate so often from the plain one."""

import gc
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import get_args

from roundelay.core.ids import NodeId
from roundelay.sim.explore import deviations
from roundelay.sim.explore.deviations import Kind
from roundelay.sim.explore.routes import Down, Route, Withheld
from roundelay.sim.explore.situations import SITUATIONS, names, setting
from roundelay.sim.explore.stage import Arrival, Label, Moment, Snapshot, Stage
from roundelay.sim.explore.tally import Tally, Violation
from roundelay.sim.scenario import ScenarioError
from roundelay.sim.simulation import simulation_of
from roundelay.sim.story import StackFactory
from roundelay.sim.units import show_ns
from roundelay.sim.world import Storage

MS = 1_000_000

BOUND_NS = 1_000 * MS
"""A run that is not quiet so long after its last deviation took effect will not be."""

AT_ONCE_NS = 1 * MS
"""A node that starts again at once is back before anybody noticed that it was gone."""

REPEATING = frozenset({"join", "ring_retransmit"})
"""Timers of membership that send a frame again. To let them run out early is the same as a copy of
that frame. Those of the engine are in its tuning."""

STORAGE: tuple[Storage, ...] = tuple(s for s in get_args(Storage) if s != "torn")
"""What a restart finds. A node knows torn storage from whole, and treats it as lost."""

SAMPLE = 4
"""A run with no deviations left is compared with known states at each of its first moments, and
then at every so many-th: to compare takes longer than to go on."""

Labels = dict[NodeId, Label]


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Let the garbage collector look less often: snapshots are many objects without a cycle."""
    usual = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class Search:
    """The runs of one situation. They are divided into parts, by the moment of the plain run at
    which the first deviation is made; parts can be searched in any order, by any process."""

    def __init__(
        self,
        protocol: str,
        situation: str,
        *,
        deviations: int = 2,
        nodes: int = 3,
        limit: int = 1,
        stack: StackFactory | None = None,
    ) -> None:
        """A part ends with its `limit`-th violation. `stack` replaces the product's cores."""
        self._situation = SITUATIONS[situation]
        self._setting = setting(protocol, self._situation, names(nodes))
        tuning = simulation_of(protocol).tuning
        assert tuning is not None, f"{protocol} cannot be explored"
        self._repeating = REPEATING | tuning.repeating
        self._deviations = deviations
        self._limit = limit
        self._tally = Tally()
        self._known: dict[int, int] = {}
        """States with open choices that were, or will be, gone on from: with how many deviations
        left at most."""
        self._plain: dict[int, int] = {}
        """Those of the plain run: known to all parts."""
        self.parts = 1
        self._stage: Stage
        self._beginning: Snapshot
        self._begins = 0
        self._broken = ""
        try:
            self._stage = Stage(self._setting.text(), stack, tuning.noted)
        except ScenarioError:
            raise
        except Exception as e:  # Whatever a core raises, it must not.
            self._broken = _told(e)
            return
        self._beginning = self._stage.save()
        self._begins = self._stage.world.loop.now
        if deviations:
            self._survey()

    def _survey(self) -> None:
        """Follow the plain run: its states are known to all parts, and its moments number them."""
        route = Route(self._deviations, self._begins)
        while (moment := self._next(route)) is not None:
            place = self._place(route, moment)
            if place in self._plain:
                break  # Round in a circle: part 0 finds the same, and judges it.
            self._plain[place] = route.left
            if not self._attempt(route, self._stage.step):
                break
            self.parts += 1

    def part(self, number: int) -> Tally:
        """Search a part. Part 0 is the plain run alone; part n the runs that first deviate at its
        n-th moment."""
        self._tally = Tally()
        with _rare_collection():
            if self._broken:
                self._violate(Route(self._deviations, self._begins), (self._broken,))
            elif number:
                self._known = dict(self._plain)
                self._stage.restore(self._beginning)
                self._part(number)
            else:
                self._known = {}
                self._stage.restore(self._beginning)
                self._walk(Route(0, self._begins))
        return self._tally

    def _part(self, number: int) -> None:
        route = Route(self._deviations, self._begins)
        for _ in range(number - 1):
            self._next(route)
            self._stage.step()
        moment = self._next(route)
        assert moment is not None, f"there is no part {number}"
        self._branch(route, moment, self._stage.labels())

    # Following a run

    def _walk(self, route: Route) -> None:
        """Follow a run to its end, and before it all that branch off."""
        if len(self._tally.violations) >= self._limit:
            return
        self._tally.runs += 1
        stage = self._stage
        own: set[int] = set()
        number = 0
        while (moment := self._next(route)) is not None:
            if route.left or number <= SAMPLE or number % SAMPLE == 0:
                place = self._place(route, moment)
                if place in own:
                    break  # Round in a circle: it will never be quiet.
                if self._known.get(place, -1) >= route.left:
                    self._tally.merged += 1
                    return
                self._known[place] = route.left
                self._tally.states.add(place)
                own.add(place)
            labels = stage.labels()
            if route.left:
                self._branch(route, moment, labels)
            route = route.stale()
            if not self._attempt(route, stage.step):
                return
            route = self._pass(route, moment, labels)
            number += 1
        if stage.history not in self._tally.histories:
            self._tally.histories.add(stage.history)
            if failures := stage.judge():
                self._violate(route, failures)

    def _next(self, route: Route) -> Moment | None:
        """The next moment of a run; None if it has come to its end."""
        moment = self._stage.moment()
        if moment is None or moment.time > route.since + BOUND_NS or self._stage.quiet():
            return None
        return moment

    def _place(self, route: Route, moment: Moment) -> int:
        """A number for the state of a run and the choices open to it."""
        return hash((self._stage.key(moment), route.key))

    def _attempt(self, route: Route, action: Callable[[], None]) -> bool:
        """Do it; False if the run ends there because something in it broke."""
        try:
            action()
        except Exception as e:  # Whatever a core raises, it must not.
            self._violate(route, (_told(e),))
            return False
        return True

    def _violate(self, route: Route, failures: tuple[str, ...]) -> None:
        fates = [step.fate for step in route.steps if step.fate]
        events = [step.event for step in route.steps if step.event]
        lasting = [f"run {show_ns(route.since - self._begins)}"] if route.steps else []
        rest = [*lasting, f"end after={show_ns(BOUND_NS)}", "check"]
        text = self._setting.text([*fates, *events], rest)
        story = [
            f"# Found by `roundelay sim explore`: {self._situation.name}. {self._situation.story}",
            *(f"# {failure}" for failure in failures),
        ]
        self._tally.violations.append(
            Violation(
                self._situation.name,
                failures,
                tuple(map(str, route.steps)),
                "\n".join([*story, text]),
            )
        )

    # Deviations before a moment

    def _branch(self, route: Route, moment: Moment, labels: Labels) -> None:
        """Search all runs that deviate at a moment, before anything happens in it."""
        stage = self._stage
        here = stage.save()
        for down in route.down:
            if down.fresh:
                back = max(down.time + AT_ONCE_NS, stage.world.loop.now) + route.offset
                for storage in STORAGE:
                    self._restart(route, down, back, storage)
                    stage.restore(here)
        route = route.stale()
        for place, arrival in enumerate(moment.arrivals):
            if route.fated(deviations.name(arrival.transmission, arrival.receiver)):
                continue
            self._lose(route, place, labels)
            stage.restore(here)
            self._copy(route, moment.time, arrival)
            stage.restore(here)
        for node in moment.nodes:
            for timer, deadline in sorted(stage.world.hosts[node].timers.items()):
                if deadline > moment.time and timer not in self._repeating:
                    self._expire(route, moment.time, node, timer)
                    stage.restore(here)
            self._crashes(route, moment, node, labels, here)
            stage.restore(here)

    def _lose(self, route: Route, place: int, labels: Labels) -> None:
        moment = self._stage.moment()
        assert moment is not None
        arrival = moment.arrivals[place]
        self._tally.tried[Kind.LOSE] += 1
        transmission, receiver = arrival.transmission, arrival.receiver
        held = Withheld(transmission, receiver, moment.time, len(route.steps), (labels[receiver],))
        self._stage.withhold(arrival)
        lost = deviations.lose(moment.time, transmission, receiver)
        self._walk(route.deviate(lost).withhold(held))

    def _expire(self, route: Route, time: int, node: NodeId, timer: str) -> None:
        self._tally.tried[Kind.EXPIRE] += 1
        route = route.deviate(deviations.expire(time, node, timer))
        self._stage.world.loop.now = time
        host = self._stage.touch(node)
        if self._attempt(route, lambda: host.expire(timer)):
            self._walk(route)

    def _crashes(
        self, route: Route, moment: Moment, node: NodeId, labels: Labels, here: Snapshot
    ) -> None:
        """Stop a node before a moment, and after each effect in it that somebody can see."""
        stage = self._stage
        others = tuple(label[2:] for other, label in labels.items() if other != node)
        shown: tuple[object, ...] = ()
        for after in itertools.count():
            stage.touch(node)
            stage.world.loop.now = moment.time
            stage.world.crash(node, after_effects=after)
            crashed = route.deviate(deviations.crash(moment.time, node, after))
            crashed = crashed.stop(Down(node, moment.time, others))
            if after and not self._attempt(crashed, stage.step):
                return
            if stage.world.hosts[node].alive:
                return  # It does not do as much.
            if stage.shown(node) != shown:
                shown = stage.shown(node)
                self._tally.tried[Kind.CRASH] += 1
                self._walk(self._pass(crashed, moment, labels) if after else crashed)
            stage.restore(here)

    # Deviations after a moment

    def _pass(self, route: Route, moment: Moment, before: Labels) -> Route:
        """Take note of what a moment brought, and search all runs that deviate because of it."""
        labels = self._stage.labels()
        entered = {node: label for node, label in labels.items() if before.get(node) != label}
        route, releases = self._releases(route, moment, entered)
        route, restarts = self._restarts(route, entered)
        if not releases and not restarts:
            return route
        here = self._stage.save()
        time = moment.time + route.offset
        for held in releases:
            self._release(route, held, time)
            self._stage.restore(here)
        for down in restarts:
            for storage in STORAGE:
                self._restart(route, down, time, storage)
                self._stage.restore(here)
        return route

    def _releases(
        self, route: Route, moment: Moment, entered: Labels
    ) -> tuple[Route, list[Withheld]]:
        """Which withheld copies may arrive now."""
        reached = [arrival.receiver for arrival in moment.arrivals]
        withheld: list[Withheld] = []
        releases: list[Withheld] = []
        for held in route.withheld:
            label = entered.get(held.receiver)
            seen = held.seen
            if label is not None and label not in seen:
                seen = (*seen, label)
            passed = held.overtaken or held.receiver in reached
            if seen != held.seen or passed != held.overtaken:
                held = replace(held, seen=seen, overtaken=passed)
                releases.append(held)
            withheld.append(held)
        return replace(route, withheld=tuple(withheld)), releases

    def _restarts(self, route: Route, entered: Labels) -> tuple[Route, list[Down]]:
        """Which nodes may start again now."""
        if not route.left:
            return route, []
        stopped: list[Down] = []
        restarts: list[Down] = []
        for down in route.down:
            phases = [label[2:] for label in entered.values() if label[2:] not in down.seen]
            if phases:
                down = replace(down, seen=(*down.seen, *phases))
                restarts.append(down)
            stopped.append(down)
        return replace(route, down=tuple(stopped)), restarts

    def _release(self, route: Route, held: Withheld, time: int) -> None:
        self._tally.tried[Kind.DELAY] += 1
        host = self._stage.world.hosts[held.receiver]
        self._stage.world.loop.at(time, host.arrive, (held.transmission, None))
        late = deviations.delay(held.time, held.transmission, held.receiver, time - held.time)
        self._walk(route.release(held, late, time))

    def _restart(self, route: Route, down: Down, time: int, storage: Storage) -> None:
        self._tally.tried[Kind.RESTART] += 1
        self._stage.world.loop.at(time, self._stage.restart, (down.node, storage))
        self._walk(route.deviate(deviations.restart(time, down.node, storage)).start(down))

    def _copy(self, route: Route, time: int, arrival: Arrival) -> None:
        self._tally.tried[Kind.COPY] += 1
        transmission, receiver = arrival.transmission, arrival.receiver
        host = self._stage.world.hosts[receiver]
        self._stage.world.loop.at(time + route.offset, host.arrive, (transmission, None))
        copied = deviations.copy(time, transmission, receiver, route.offset)
        self._walk(route.deviate(copied))


def _told(e: Exception) -> str:
    """What broke, as a sentence."""
    if isinstance(e, AssertionError):
        return f"an invariant broke: {e}"
    return f"a core failed: {type(e).__name__}: {e}"
