"""The search itself: every placement of a few deviations in one situation."""

from collections import Counter
from dataclasses import dataclass, field, replace

from roundelay.core.ids import NodeId
from roundelay.sim.explore.deviations import Deviation, Kind, crash, expire, frame, name_of, restart
from roundelay.sim.explore.situations import SITUATIONS, header, names
from roundelay.sim.explore.stage import Arrival, Label, Moment, Snapshot, Stage, content
from roundelay.sim.explore.states import word
from roundelay.sim.faults import Fate
from roundelay.sim.host import Transmission
from roundelay.sim.story import StackFactory
from roundelay.sim.units import show_ns

MS = 1_000_000

REPEATERS = frozenset({"join", "token_retransmit", "token_hold", "ring_retransmit", "heartbeat", "missing"})

BOUND_NS = 3_000 * MS
"""A run that is not quiet so long after its last deviation never will be."""

RESTART_NS = 1 * MS
"""A node that restarts at once is back before anybody has noticed."""

SAMPLE = 4
"""Of a run that has no deviations left, every such many-th state is compared with those known."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """A frame that was taken off the wire and may yet arrive."""

    transmission: Transmission
    receiver: NodeId
    due: int
    step: int
    """Which deviation of the route it is."""
    seen: tuple[Label, ...]
    """What the receiver has been doing since: it is offered once for each."""
    overtaken: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        return content(self.transmission), word(self.receiver), _key(self.seen), self.overtaken


@dataclass(frozen=True, slots=True)
class Down:
    """A node that stopped and may yet start again."""

    node: NodeId
    since: int
    seen: tuple[Label, ...]
    fresh: bool = True

    @property
    def key(self) -> tuple[object, ...]:
        return word(self.node), _key(self.seen), self.fresh


@dataclass(frozen=True, slots=True)
class Heard:
    """A frame that arrived and may arrive again."""

    transmission: Transmission
    receiver: NodeId
    due: int


@dataclass(frozen=True, slots=True)
class Route:
    """How a run got where it is, apart from the state of its world."""

    left: int
    """Deviations that may still be made."""
    since: int
    """When the last one was."""
    steps: tuple[Deviation, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    down: tuple[Down, ...] = ()
    heard: dict[tuple[NodeId, int], Heard] = field(default_factory=dict)

    @property
    def offset(self) -> int:
        """Nanoseconds behind the moment, another one for each deviation: so nothing ties."""
        return len(self.steps) + 1

    def deviate(self, deviation: Deviation) -> "Route":
        return replace(
            self, left=self.left - 1, since=deviation.time, steps=(*self.steps, deviation)
        )

    def amend(self, step: int, deviation: Deviation, since: int) -> "Route":
        steps = (*self.steps[:step], deviation, *self.steps[step + 1 :])
        return replace(self, since=since, steps=steps)

    def fated(self, name: str) -> bool:
        return any(step.fate.startswith(f"fate {name} ") for step in self.steps)


@dataclass(frozen=True, slots=True)
class Violation:
    situation: str
    failures: tuple[str, ...]
    deviations: tuple[str, ...]
    scenario: str


@dataclass(slots=True)
class Tally:
    """What a search, or a part of one, came to."""

    runs: int = 0
    merged: int = 0
    states: set[int] = field(default_factory=set)
    histories: set[int] = field(default_factory=set)
    tried: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)


class Search:
    def __init__(
        self,
        protocol: str,
        situation: str,
        deviations: int,
        nodes: int = 3,
        stack: StackFactory | None = None,
    ) -> None:
        self.situation = SITUATIONS[situation]
        self.nodes = names(nodes)
        self.header = header(protocol, self.nodes)
        self.commands = self.situation.commands(self.nodes)
        text = "\n".join((*self.header, *self.commands)) + "\n----\n"
        self.stage = Stage(text, stack)
        self.beginning = self.stage.save()
        self.begins = self.stage.world.loop.now
        self.deviations = deviations
        self.tally = Tally()
        self._branching: int | None = -1
        self._known: list[set[int]] = [set() for _ in range(deviations + 1)]
        self._plain: list[set[int]] = []
        self.moments = 0
        self._walk_plain()

    def _walk_plain(self) -> None:
        """The run without deviations: its states are known to every part of the search."""
        self.stage.restore(self.beginning)
        route = Route(self.deviations, self.begins)
        self.walk(route, only=-1)
        self._plain = self._known

    def part(self, number: int) -> Tally:
        """All runs whose first deviation is at this moment of the plain run."""
        self.tally = Tally()
        self._known = [set(known) for known in self._plain]
        self.stage.restore(self.beginning)
        self.walk(Route(self.deviations, self.begins), only=number)
        return self.tally

    def walk(self, route: Route, moment: Moment | None = None, only: int | None = None) -> None:
        """Follow a run to its end, and every run that branches off. With `moment`, begin by letting
        it happen. With `only`, branch off at that moment alone."""
        stage = self.stage
        number = -1
        labels = stage.labels()
        while True:
            number += 1
            if moment is None:
                moment = stage.moment()
                late = moment is not None and moment.time > route.since + BOUND_NS
                if moment is None or late or stage.quiet():
                    if only is None or only <= 0:
                        self._finish(route)
                    if only is not None and only < 0:
                        self.moments = number
                    return
                if only is None and self._merges(route, moment, number):
                    return
                if only is not None and only < 0:
                    self._merges(route, moment, 0)
                if route.left and (only is None or only == number):
                    self._branch(route, moment, labels)
                    route = replace(route, down=tuple(replace(d, fresh=False) for d in route.down))
            if not self._step(route):
                return
            before, labels = labels, stage.labels()
            route = self._note(route, moment)
            route = self._follow(route, moment, before, labels, branching=only is None or only == number)
            if only == number:
                return
            moment = None

    def _merges(self, route: Route, moment: Moment, number: int) -> bool:
        if not route.left and number % SAMPLE and number > SAMPLE:
            return False
        pending = (*(w.key for w in route.withheld), *(d.key for d in route.down))
        key = hash((self.stage.key(moment), pending))
        if route.left:
            wide = hash((key, tuple(sorted(number for _, number in route.heard))))
            if any(wide in known for known in self._known[route.left :]):
                self._merge()
                return True
            self._known[route.left].add(wide)
        elif key in self._known[0]:
            self._merge()
            return True
        self._known[0].add(key)
        self.tally.states.add(key)
        return False

    def _merge(self) -> None:
        self.tally.runs += 1
        self.tally.merged += 1

    def _finish(self, route: Route) -> None:
        self.tally.runs += 1
        history = self.stage.history
        if history in self.tally.histories:
            return
        self.tally.histories.add(history)
        failures = self.stage.judge()
        if failures:
            self._violation(route, failures)

    def _step(self, route: Route) -> bool:
        try:
            self.stage.step()
        except Exception as e:
            self.tally.runs += 1
            self._violation(route, (f"an invariant broke: {type(e).__name__}: {e}",))
            return False
        return True

    def _violation(self, route: Route, failures: tuple[str, ...]) -> None:
        self.tally.violations.append(
            Violation(
                self.situation.name,
                failures,
                tuple(str(step) for step in route.steps),
                self.scenario(route),
            )
        )

    def scenario(self, route: Route) -> str:
        fates = [step.fate for step in route.steps if step.fate]
        events = [event for step in route.steps for event in step.events]
        lasts = route.since - self.begins + BOUND_NS
        return "\n".join(
            (
                *self.header, *fates, *events, *self.commands,
                f"run {show_ns(lasts)}", "end after=1s", "check", "----", "",
            )
        )

    # Branching

    def _branch(self, route: Route, moment: Moment, labels: dict[NodeId, Label]) -> None:
        """All deviations at a moment, before anything happens in it."""
        stage, time = self.stage, moment.time
        snapshot = stage.save()
        for down in route.down:
            if down.fresh:
                back = max(down.since + RESTART_NS, stage.world.loop.now) + route.offset
                for storage in ("kept", "lost"):
                    self._restart(route, down, back, storage)
                    stage.restore(snapshot)
        route = replace(route, down=tuple(replace(d, fresh=False) for d in route.down))
        for i, arrival in enumerate(moment.arrivals):
            name = name_of(arrival.transmission, arrival.receiver)
            if route.fated(name):
                continue
            self._lose(route, stage.moment().arrivals[i], labels)
            stage.restore(snapshot)
            self._copy(route, moment, Heard(arrival.transmission, arrival.receiver, time), route.offset)
            stage.restore(snapshot)
        for node in moment.nodes:
            stage.restore(snapshot)
            timers = stage.world.hosts[node].timers
            for timer in sorted(timers):
                if timers[timer] > time and timer not in REPEATERS:
                    self._expire(route, time, node, timer)
                    stage.restore(snapshot)
            after = 0
            while self._crash(route, moment, node, after, labels, snapshot):
                after += 1
        stage.restore(snapshot)

    def _lose(self, route: Route, arrival: Arrival, labels: dict[NodeId, Label]) -> None:
        time = self.stage.world.loop.next or 0
        self.stage.world.loop.cancel(arrival.call)
        self.tally.tried[Kind.LOSE] += 1
        lost = frame(Kind.LOSE, time, arrival.transmission, arrival.receiver, Fate(lost=True))
        held = Withheld(
            arrival.transmission, arrival.receiver, time, len(route.steps), (labels[arrival.receiver],)
        )
        route = route.deviate(lost)
        self.walk(replace(route, withheld=(*route.withheld, held)))

    def _copy(self, route: Route, moment: Moment, heard: Heard, at: int) -> None:
        time = moment.time
        self.tally.tried[Kind.COPY] += 1
        self.stage.world.loop.at(
            time + at, self.stage.world.hosts[heard.receiver].arrive, (heard.transmission, None)
        )
        fate = Fate(copy_ns=time + at - heard.due)
        again = frame(Kind.COPY, time, heard.transmission, heard.receiver, fate)
        self.walk(route.deviate(again))

    def _expire(self, route: Route, time: int, node: NodeId, timer: str) -> None:
        self.tally.tried[Kind.EXPIRE] += 1
        route = route.deviate(expire(time, node, timer))
        self.stage.world.loop.run(time - 1)
        self.stage.world.loop.now = time
        self.stage.touch(node).expire(timer)
        self.walk(route)

    def _crash(
        self, route: Route, moment: Moment, node: NodeId, after: int, labels: dict[NodeId, Label], snapshot: Snapshot
    ) -> bool:
        """Stop a node after so many effects; False if it does not do as many."""
        stage = self.stage
        stage.restore(snapshot)
        stage.world.loop.now = moment.time
        stage.touch(node)
        stage.world.crash(node, after_effects=after)
        others = tuple(label[2:] for name, label in labels.items() if name != node)
        down = Down(node, moment.time, others)
        route = route.deviate(crash(moment.time, node, after))
        route = replace(route, down=(*route.down, down))
        if after:
            if not self._step(route):
                return True
            if stage.world.hosts[node].alive:
                return False
        self.tally.tried[Kind.CRASH] += 1
        self.walk(route)
        return True

    def _restart(self, route: Route, down: Down, time: int, storage: str) -> None:
        self.tally.tried[Kind.RESTART] += 1
        self.stage.world.loop.at(time, self.stage.restart, (down.node, storage))
        route = route.deviate(restart(time, down.node, storage))
        self.walk(replace(route, down=tuple(d for d in route.down if d is not down)))

    def _release(self, route: Route, held: Withheld, time: int) -> None:
        self.tally.tried[Kind.DELAY] += 1
        self.stage.world.loop.at(
            time, self.stage.world.hosts[held.receiver].arrive, (held.transmission, None)
        )
        fate = Fate(delay_ns=time - held.due)
        late = frame(Kind.DELAY, held.due, held.transmission, held.receiver, fate)
        route = route.amend(held.step, late, time)
        self.walk(replace(route, withheld=tuple(w for w in route.withheld if w is not held)))

    # What becomes possible once a moment has passed

    def _note(self, route: Route, moment: Moment) -> Route:
        if not route.left:
            return route
        heard = dict(route.heard)
        for arrival in moment.arrivals:
            heard[arrival.receiver, content(arrival.transmission)] = Heard(
                arrival.transmission, arrival.receiver, moment.time
            )
        return replace(route, heard=heard)

    def _follow(
        self, route: Route, moment: Moment, before: dict[NodeId, Label], labels: dict[NodeId, Label], *, branching: bool
    ) -> Route:
        entered = {n: label for n, label in labels.items() if before.get(n) != label}
        reached = {arrival.receiver for arrival in moment.arrivals}
        time = moment.time + route.offset
        withheld, down = list(route.withheld), list(route.down)
        releases: list[Withheld] = []
        restarts: list[Down] = []
        for i, held in enumerate(withheld):
            label = entered.get(held.receiver)
            new = label is not None and label not in held.seen
            passed = not held.overtaken and held.receiver in reached
            if label is not None and new:
                withheld[i] = replace(held, seen=(*held.seen, label), overtaken=True)
            elif passed:
                withheld[i] = replace(held, overtaken=True)
            if new or passed:
                releases.append(withheld[i])
        for i, stopped in enumerate(down):
            phases = tuple(label[2:] for n, label in entered.items() if label[2:] not in stopped.seen)
            if phases:
                down[i] = replace(stopped, seen=(*stopped.seen, *phases))
                restarts.append(down[i])
        route = replace(route, withheld=tuple(withheld), down=tuple(down))
        if not branching:
            return route
        again = [
            heard
            for (receiver, _), heard in route.heard.items()
            if receiver in entered and heard.due < moment.time and not route.fated(name_of(heard.transmission, receiver))
        ] if route.left else []
        if releases or restarts or again:
            snapshot = self.stage.save()
            for held in releases:
                self._release(route, held, time)
                self.stage.restore(snapshot)
            for stopped in restarts if route.left else ():
                for storage in ("kept", "lost"):
                    self._restart(route, stopped, time, storage)
                    self.stage.restore(snapshot)
            for heard in again:
                self._copy(route, moment, heard, route.offset)
                self.stage.restore(snapshot)
        return route


def _key(labels: tuple[Label, ...]) -> tuple[object, ...]:
    return tuple(word(repr(label)) for label in labels)
