"""The search: all runs of one situation with at most a given number of deviations."""

import gc
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from roundelay.core.ids import NodeId
from roundelay.sim.explore import deviations
from roundelay.sim.explore.deviations import Kind
from roundelay.sim.explore.routes import Down, Route, Withheld
from roundelay.sim.explore.situations import SITUATIONS, names, setting
from roundelay.sim.explore.stepped import Arrival, Label, Moment, Snapshot, SteppedRunner
from roundelay.sim.explore.tally import Tally, Violation
from roundelay.sim.host_log import PowerCut
from roundelay.sim.runner import StackFactory
from roundelay.sim.scenario import ScenarioError
from roundelay.sim.simulation import simulation_of
from roundelay.sim.units import show_ns
from roundelay.sim.world import Storage

MS = 1_000_000

BOUND_NS = 1_000 * MS
"""How long after its last deviation a run may take to become quiet. A run that takes longer is
judged as it is; with a smaller number a slow recovery would count as a violation."""

AT_ONCE_NS = 1 * MS
"""How long after a crash a node that starts at once is back: before any other node can have
noticed."""

REPEATING = frozenset({"join", "ring_retransmit"})
"""Timers of membership that send a frame again. An early expiry has the same effect as a copy of
that frame. The tuning of an engine has its own."""

STORAGE: tuple[Storage, ...] = ("kept", "lost")
"""What a restart finds. Torn storage is left out: a node recognises it and treats it as lost."""

SAMPLE = 4
"""A run with no deviations left is compared with known states at each of its first moments, and
then at every SAMPLE-th: a comparison takes longer than a step. A larger number follows more runs to
their end that were known."""

Labels = dict[NodeId, Label]


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Let the garbage collector run less often: snapshots are many objects without a cycle."""
    usual = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class Search:
    """The runs of one situation, divided into parts by the moment of the plain run at which the
    first deviation is made. Parts can be searched in any order, by any process."""

    def __init__(
        self,
        protocol: str,
        situation: str,
        *,
        deviations: int = 2,
        nodes: int = 3,
        limit: int = 1,
        stack: StackFactory | None = None,
        log: bool = False,
    ) -> None:
        """A part ends with its `limit`-th violation. `stack` makes the core of each node, instead
        of the engine. With `log` nodes keep a replicated log, to which messages are appended, and
        a machine may lose power."""
        self._powers = (None, PowerCut(0)) if log else (None,)
        self._situation = SITUATIONS[situation]
        self._setting = setting(protocol, self._situation, names(nodes), log=log)
        tuning = simulation_of(protocol).tuning
        assert tuning is not None, f"{protocol} cannot be explored"
        self._repeating = REPEATING | tuning.repeating
        self._deviations = deviations
        self._limit = limit
        self._tally = Tally()
        self._known: dict[int, int] = {}
        """By state and open choices: the most deviations left with which a run went on, or will go
        on, from there."""
        self._plain: dict[int, int] = {}
        """The same for the plain run, which all parts know."""
        self.parts = 1
        self._runner: SteppedRunner
        self._beginning: Snapshot
        self._begins = 0
        self._broken = ""
        try:
            self._runner = SteppedRunner(self._setting.text(), stack, tuning.noted)
        except ScenarioError:
            raise
        except Exception as e:  # Whatever a core raises, it must not.
            self._broken = _sentence(e)
            return
        self._beginning = self._runner.save()
        self._begins = self._runner.world.loop.now
        if deviations:
            self._survey()

    def _survey(self) -> None:
        """Follow the plain run and number its moments: its states are known to all parts."""
        route = Route(self._deviations, self._begins)
        while (moment := self._next(route)) is not None:
            place = self._place(route, moment)
            if place in self._plain:
                break  # Round in a circle: part 0 finds the same, and judges it.
            self._plain[place] = route.left
            if not self._attempt(route, self._runner.step):
                break
            self.parts += 1

    def part(self, number: int) -> Tally:
        """Search a part. Part 0 is the plain run alone; part n has the runs that first deviate at
        its n-th moment."""
        self._tally = Tally()
        with _rare_collection():
            if self._broken:
                self._violate(Route(self._deviations, self._begins), (self._broken,))
            elif number:
                self._known = dict(self._plain)
                self._runner.restore(self._beginning)
                self._part(number)
            else:
                self._known = {}
                self._runner.restore(self._beginning)
                self._walk(Route(0, self._begins))
        return self._tally

    def _part(self, number: int) -> None:
        route = Route(self._deviations, self._begins)
        for _ in range(number - 1):
            self._next(route)
            self._runner.step()
        moment = self._next(route)
        assert moment is not None, f"there is no part {number}"
        self._branch(route, moment, self._runner.labels())

    # Following a run

    def _walk(self, route: Route) -> None:
        """Follow a run to its end, and on the way all runs that branch off from it."""
        if len(self._tally.violations) >= self._limit:
            return
        self._tally.runs += 1
        runner = self._runner
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
            labels = runner.labels()
            if route.left:
                self._branch(route, moment, labels)
            route = route.stale()
            if not self._attempt(route, runner.step):
                return
            route = self._after_moment(route, moment, labels)
            number += 1
        if runner.history not in self._tally.histories:
            self._tally.histories.add(runner.history)
            if failures := runner.judge():
                self._violate(route, failures)

    def _next(self, route: Route) -> Moment | None:
        """The next moment of a run; None if the run is over."""
        moment = self._runner.moment()
        if moment is None or moment.time > route.since + BOUND_NS or self._runner.quiet():
            return None
        return moment

    def _place(self, route: Route, moment: Moment) -> int:
        """A number for the state of a run and the choices that are open in it."""
        return hash((self._runner.key(moment), route.key))

    def _attempt(self, route: Route, action: Callable[[], None]) -> bool:
        """Call `action`; False if it raised, which ends the run with a violation."""
        try:
            action()
        except Exception as e:  # Whatever a core raises, it must not.
            self._violate(route, (_sentence(e),))
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
        """Search all runs that deviate just before a moment."""
        runner = self._runner
        here = runner.save()
        for down in route.down:
            if down.fresh:
                back = max(down.time + AT_ONCE_NS, runner.world.loop.now) + route.offset
                for storage in STORAGE:
                    self._restart(route, down, back, storage)
                    runner.restore(here)
        route = route.stale()
        for place, arrival in enumerate(moment.arrivals):
            if route.fated(deviations.name(arrival.transmission, arrival.receiver)):
                continue
            self._lose(route, place, labels)
            runner.restore(here)
            self._copy(route, moment.time, arrival)
            runner.restore(here)
        for node in moment.nodes:
            for timer, deadline in sorted(runner.world.hosts[node].timers.items()):
                if deadline > moment.time and timer not in self._repeating:
                    self._expire(route, moment.time, node, timer)
                    runner.restore(here)
            self._crashes(route, moment, node, labels, here)
            runner.restore(here)

    def _lose(self, route: Route, place: int, labels: Labels) -> None:
        moment = self._runner.moment()
        assert moment is not None
        arrival = moment.arrivals[place]
        self._tally.tried[Kind.LOSE] += 1
        transmission, receiver = arrival.transmission, arrival.receiver
        held = Withheld(transmission, receiver, moment.time, len(route.steps), (labels[receiver],))
        self._runner.withhold(arrival)
        lost = deviations.lose(moment.time, transmission, receiver)
        self._walk(route.deviate(lost).withhold(held))

    def _expire(self, route: Route, time: int, node: NodeId, timer: str) -> None:
        self._tally.tried[Kind.EXPIRE] += 1
        route = route.deviate(deviations.expire(time, node, timer))
        self._runner.world.loop.now = time
        host = self._runner.touch(node)
        if self._attempt(route, lambda: host.expire(timer)):
            self._walk(route)

    def _crashes(
        self, route: Route, moment: Moment, node: NodeId, labels: Labels, here: Snapshot
    ) -> None:
        """Crash a node before a moment, and after each of its visible effects in that moment."""
        for power in self._powers:
            self._crashes_by(power, route, moment, node, labels, here)
            self._runner.restore(here)

    def _crashes_by(
        self,
        power: PowerCut | None,
        route: Route,
        moment: Moment,
        node: NodeId,
        labels: Labels,
        here: Snapshot,
    ) -> None:
        runner = self._runner
        others = tuple(label[2:] for other, label in labels.items() if other != node)
        shown: tuple[object, ...] = ()
        for after in itertools.count():
            runner.touch(node)
            runner.world.loop.now = moment.time
            runner.world.crash(node, after_effects=after, power=power)
            cut = deviations.crash(moment.time, node, after, power=power is not None)
            crashed = route.deviate(cut)
            crashed = crashed.stop(Down(node, moment.time, others))
            if after and not self._attempt(crashed, runner.step):
                return
            if runner.world.hosts[node].alive:
                return  # It does not do as much.
            if runner.visible_effects(node) != shown:
                shown = runner.visible_effects(node)
                self._tally.tried[Kind.CRASH] += 1
                self._walk(self._after_moment(crashed, moment, labels) if after else crashed)
            runner.restore(here)

    # Deviations after a moment

    def _after_moment(self, route: Route, moment: Moment, before: Labels) -> Route:
        """Update the route after a moment, and search all runs that deviate because of what
        happened."""
        labels = self._runner.labels()
        entered = {node: label for node, label in labels.items() if before.get(node) != label}
        route, releases = self._releases(route, moment, entered)
        route, restarts = self._restarts(route, entered)
        if not releases and not restarts:
            return route
        here = self._runner.save()
        time = moment.time + route.offset
        for held in releases:
            self._release(route, held, time)
            self._runner.restore(here)
        for down in restarts:
            for storage in STORAGE:
                self._restart(route, down, time, storage)
                self._runner.restore(here)
        return route

    def _releases(
        self, route: Route, moment: Moment, entered: Labels
    ) -> tuple[Route, list[Withheld]]:
        """The withheld copies that may arrive now."""
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
        """The crashed nodes that may start again now."""
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
        host = self._runner.world.hosts[held.receiver]
        self._runner.world.loop.at(time, host.arrive, (held.transmission, None))
        delayed = deviations.delay(held.time, held.transmission, held.receiver, time - held.time)
        self._walk(route.release(held, delayed, time))

    def _restart(self, route: Route, down: Down, time: int, storage: Storage) -> None:
        self._tally.tried[Kind.RESTART] += 1
        self._runner.world.loop.at(time, self._runner.restart, (down.node, storage))
        self._walk(route.deviate(deviations.restart(time, down.node, storage)).start(down))

    def _copy(self, route: Route, time: int, arrival: Arrival) -> None:
        self._tally.tried[Kind.COPY] += 1
        transmission, receiver = arrival.transmission, arrival.receiver
        host = self._runner.world.hosts[receiver]
        self._runner.world.loop.at(time + route.offset, host.arrive, (transmission, None))
        copied = deviations.copy(time, transmission, receiver, route.offset)
        self._walk(route.deviate(copied))


def _sentence(e: Exception) -> str:
    """What broke, as a sentence."""
    if isinstance(e, AssertionError):
        return f"an invariant broke: {e}"
    return f"a core failed: {type(e).__name__}: {e}"
