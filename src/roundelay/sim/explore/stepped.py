"""A scenario runner that an exploration steps, compares, sets back and judges."""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from roundelay.check import Standing, Validity, check
from roundelay.check.checker import profile_of
from roundelay.core.effects import Kind
from roundelay.core.ids import NodeId
from roundelay.group.stack import Stack
from roundelay.membership.phase import Phase
from roundelay.sim.explore.snapshots import Frozen, freeze, thaw
from roundelay.sim.explore.states import NOTHING, digest, word
from roundelay.sim.host import Host
from roundelay.sim.host_log import NOTE
from roundelay.sim.runner import ScenarioRunner, StackFactory
from roundelay.sim.scenario import parse
from roundelay.sim.transmission import Transmission
from roundelay.sim.watch import Watch
from roundelay.sim.world import Storage
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import LOWER_LAYER, REGULAR, Row

GRAIN_NS = 1_000
"""Times that differ by less, in nanoseconds, count as equal in the comparison of states. Latencies
differ by more; with a smaller number states that behave alike would be told apart."""

Label = tuple[object, ...]
"""What a node is doing, in short: its incarnation, its view, its phase and what its engine may
do."""

Thread = tuple[int | None, ...]
"""Names rows whose order among each other matters: the rows of a node, or those about a message."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A copy of a frame that is about to reach a node."""

    transmission: Transmission
    receiver: NodeId
    call: object
    """The argument of the loop's call, which the copies for all receivers share."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The next time at which something happens."""

    time: int
    arrivals: tuple[Arrival, ...]
    nodes: tuple[NodeId, ...]
    """The nodes to which something happens then."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a SteppedRunner, to be restored later."""

    world: Frozen
    """The world and its watcher."""
    rows: list[Row]
    history: int
    known_facts: set[Hashable]
    digests: dict[NodeId, int]
    threads: dict[Thread, int]


class SteppedRunner(ScenarioRunner):
    """A scenario runner whose world can be stepped, compared, saved and restored."""

    frame_rows = False  # No verdict needs them.

    def __init__(
        self, text: str, stack: StackFactory | None = None, noted: frozenset[str] = frozenset()
    ) -> None:
        """Play `text`, the beginning of a run. The exploration decides about everything after it.
        Frames whose type is in `noted` are part of the history."""
        self.watcher = Watch()
        self.history = 0
        """A number for all that verdicts depend on: the rows in the order of each node and of each
        message, and which tokens were passed on."""
        self._threads: dict[Thread, int] = {}
        self._known_facts: set[Hashable] = set()
        """Facts that are in the history already and change nothing when they occur again."""
        self._digests: dict[NodeId, int] = {}
        """By node: the digest of its core, as long as nothing happens to it."""
        self._noted = noted
        super().__init__(stack=stack)
        for block in parse(text):
            self.play(block)
        claims = {entry.property for entry in profile_of(self._manifest()).entries}
        self._claims = "L4" in claims

    # Time

    def moment(self) -> Moment | None:
        """The next time at which something happens to a node. Calls of the loop that do nothing,
        such as cancelled timers, are run on the way."""
        loop = self.world.loop
        while (time := loop.next) is not None:
            arrivals: list[Arrival] = []
            nodes: list[NodeId] = []
            starting = False
            for due, host, argument in self._calls():
                if due > time:
                    break
                if host is None:
                    starting = True
                elif not host.alive:
                    continue
                elif isinstance(argument[0], Transmission):
                    arrivals.append(Arrival(argument[0], host.name, argument))
                    nodes.append(host.name)
                elif argument[0] == host.incarnation and _concerns(host, argument[1], time):
                    nodes.append(host.name)
            if nodes or starting:
                touched = tuple(node for node in self.world.nodes if node in nodes)
                return Moment(time, tuple(arrivals), touched)
            loop.run(time)
        return None

    def step(self) -> None:
        """Run everything that happens at the next time; AssertionError if an invariant breaks."""
        loop = self.world.loop
        time = loop.next
        assert time is not None, "nothing happens any more"
        for due, host, _ in self._calls():
            if due > time:
                break
            if host is not None:
                self._digests.pop(host.name, None)
        loop.run(time)

    def _calls(self) -> Iterator[tuple[int, Host | None, Any]]:
        """The calls of the loop: time, host, and argument, which is an arrival or an alarm. The
        call that starts a node again has no host."""
        for time, action, argument in self.world.loop.calls:
            owner = getattr(action, "__self__", None)
            yield time, owner if isinstance(owner, Host) else None, argument

    def withhold(self, arrival: Arrival) -> None:
        """Remove a copy of a frame from the wire."""
        self.world.loop.cancel(self.world.hosts[arrival.receiver].arrive, arrival.call)

    def touch(self, node: NodeId) -> Host:
        """The host of a node whose state is about to change: its digest is forgotten."""
        self._digests.pop(node, None)
        return self.world.hosts[node]

    def restart(self, what: tuple[NodeId, Storage]) -> None:
        """Start a node again; called by the loop."""
        node, storage = what
        self._digests.pop(node, None)
        self.world.restart(node, storage)

    # Looking

    def labels(self) -> dict[NodeId, Label]:
        """The label of each live node."""
        labels: dict[NodeId, Label] = {}
        for host in self.world.hosts.values():
            core = host.core if host.alive else None
            if isinstance(core, Stack):
                m = core.membership
                doing = (m.phase.value, m.guard.hold.value)
                labels[host.name] = (host.incarnation, m.view.id, *doing)
        return labels

    def quiet(self) -> bool:
        """Whether all live nodes are in one view and nothing is left to be sent or delivered in
        it."""
        hosts = [host for host in self.world.hosts.values() if host.alive]
        live = tuple(host.name for host in hosts)
        views = set()
        for host in hosts:
            core = host.core
            assert isinstance(core, Stack)
            m = core.membership
            if m.phase is not Phase.OPERATIONAL:
                return False
            if m.view.members != live or core.delivery.packer.waiting:
                return False
            views.add(m.view.id)
        if len(views) > 1:
            return False
        for _, owner, argument in self._calls():
            if owner is None:
                return False  # A node is about to start.
            if _of_log(argument):
                if owner.alive and argument[0] == owner.incarnation and argument[1] != NOTE:
                    return False  # A disk has yet to answer.
                continue
            frame = argument[0].frame if isinstance(argument[0], Transmission) else None
            if frame is not None and frame.origin.view not in views:
                return False  # A frame of another view may end this one.
        return not hosts or (self._all_delivered(live) and all(map(_settled, hosts)))

    def _all_delivered(self, live: tuple[NodeId, ...]) -> bool:
        """Whether all live nodes have delivered, and claimed to be stable, what was sent in the
        present view."""
        numbers = [self.world.numbers[node] for node in live]
        installed = 0
        needed = {Kind.DELIVER, Kind.STABLE} if self._claims else {Kind.DELIVER}
        done: set[tuple[str, int, int | None, int | None, int | None]] = set()
        for row in reversed(self.rows):
            if row.layer == LOWER_LAYER:
                continue
            if row.kind in needed:
                for i in range(row.count):
                    done.add((row.kind, row.proc, row.m_src, row.m_inc, (row.m_seq or 0) + i))
            elif row.kind == Kind.ORIGINATE:
                for i in range(row.count):
                    name = (row.m_src, row.m_inc, (row.m_seq or 0) + i)
                    if any((kind, n, *name) not in done for kind in needed for n in numbers):
                        return False
            elif row.kind == Kind.INSTALL and row.c_kind == REGULAR and row.proc in numbers:
                installed += 1
                if installed == len(live):
                    break  # What is before was sent in older views.
        return True

    def visible_effects(self, node: NodeId) -> tuple[object, ...]:
        """A value that changes when the node does something that others, its storage or its
        application can see."""
        number = self.world.numbers[node]
        shown = sum(
            row.proc == number and row.kind in _SHOWN and row.layer != LOWER_LAYER
            for row in self.rows
        )
        host = self.world.hosts[node]
        disk = None if host.log is None else host.log.on_disk
        return self.world.frames, host.storage, disk, shown

    def key(self, moment: Moment) -> int:
        """A number for the state before a moment. Runs in equal states have the same future, and
        the same verdicts if the same choices are open to them."""
        time = moment.time
        hosts: list[tuple[object, ...]] = []
        for host in self.world.hosts.values():
            stored = word(host.storage or b"")
            if host.log is not None:
                stored = hash((stored, digest(host.log.on_disk)))
            if not host.alive:
                hosts.append((host.incarnation, stored))
                continue
            if host.name not in self._digests:
                log = None if host.log is None else host.log.in_memory
                self._digests[host.name] = digest((host.core, log) if log else host.core)
            timers = [(word(name), _grain(at - time)) for name, at in sorted(host.timers.items())]
            hosts.append((host.incarnation, stored, self._digests[host.name], *timers))
        wire: list[tuple[int, ...]] = []
        for due, receiver, argument in self._calls():
            if receiver is None:
                wire.append((_grain(due - time), digest(argument)))
            elif _of_log(argument):
                if argument[0] == receiver.incarnation:
                    waits = digest(argument[1])
                    wire.append((_grain(due - time), word(receiver.name), waits))
            elif isinstance(argument[0], Transmission):
                wire.append((_grain(due - time), word(receiver.name), content(argument[0])))
        return hash((self.history, *hosts, *wire, digest(self.world.cuts)))

    # Going back

    def save(self) -> Snapshot:
        """The state that `restore` brings back."""
        return Snapshot(
            freeze((self.world, self.watcher)),
            self.rows.copy(),
            self.history,
            self._known_facts.copy(),
            self._digests.copy(),
            self._threads.copy(),
        )

    def restore(self, snapshot: Snapshot) -> None:
        self._world, self.watcher = thaw(snapshot.world)
        self.rows = snapshot.rows.copy()
        self.history = snapshot.history
        self._known_facts = snapshot.known_facts.copy()
        self._digests = snapshot.digests.copy()
        self._threads = snapshot.threads.copy()

    # Judging

    def judge(self) -> tuple[str, ...]:
        """End the run and return a sentence for each broken promise."""
        self.world.heal()
        self.world.end()
        report = check(self.rows, self._manifest())
        judged = zip(report.verdicts, report.profile.entries, strict=True)
        return tuple(
            f"{verdict.property} {verdict.validity}: {verdict.reason}"
            for verdict, entry in judged
            if verdict.validity not in (Validity.OK, Validity.VACUOUS)
            and entry.standing is not Standing.OPTIONAL
        )

    def _manifest(self) -> Manifest:
        return Manifest(
            run="explore",
            nodes=self.world.nodes,
            protocol=self.setup.engine,
            mode="views",
            fsync=str(self.setup.policy) if self.setup.journals else "",
            rows=Counter(f"{row.proc}.{row.inc}" for row in self.rows),
        )

    def _append_row(self, row: Row) -> None:
        self.rows.append(row)
        if row.layer == "net" or row.kind in (Kind.TOKEN, Kind.GATHER, Kind.FAULT):
            return
        if row.kind == Kind.RECEIVE:
            name = (row.proc, row.inc, row.m_src, row.m_inc, row.m_seq, row.c_seq, row.c_rep)
            if name in self._known_facts:
                return  # That it came again proves nothing new.
            self._known_facts.add(name)
        fact = hash((word(row.kind), word(row.layer), *_facts(row)))
        self._extend_thread((row.proc,), fact)
        if row.m_src is not None:
            self._extend_thread((row.m_src, row.m_inc, row.m_seq), fact)

    def _extend_thread(self, thread: Thread, fact: int) -> None:
        """Add a fact to a thread. The history does not depend on the order in which different
        threads grew."""
        name = tuple(NOTHING if part is None else part for part in thread)
        old = self._threads.get(thread, 0)
        new = self._threads[thread] = hash((old, fact))
        self.history ^= hash((name, old)) ^ hash((name, new))

    def _observe(self, node: NodeId, verb: str, what: Any) -> None:
        self.watcher(self.world, node, verb, what)
        if verb == "sends" and what.tag in self._noted:
            self._add_fact(content(what))
        elif verb == "installs":
            self._add_fact(hash((word(node), digest(what), self._last_number(node))))

    def _add_fact(self, fact: int) -> None:
        """Add to the history a fact that the invariants of the watch depend on and that no row
        tells."""
        if fact not in self._known_facts:
            self._known_facts.add(fact)
            self.history ^= fact

    def _last_number(self, node: NodeId) -> int:
        """The last number of the exchange that leads to the view being installed."""
        core = self.world.hosts[node].core
        recovery = core.membership.recovery if isinstance(core, Stack) else None
        number = None if recovery is None else recovery.install_seq
        return NOTHING if number is None else number


def _of_log(argument: Any) -> bool:
    """Whether a call of the loop is about a log, and not a frame or a timer."""
    return type(argument[1]) is tuple


def _concerns(host: Host, what: Any, time: int) -> bool:
    """Whether something happens to a node: a timer runs out that is armed, or a disk answers."""
    return type(what) is tuple or host.timers.get(what) == time


def _settled(host: Host) -> bool:
    """Whether a node has no log, or one in which nothing waits for the others."""
    status = host.core.status.log
    if status is None or status.state == "closed":
        return True
    done = status.committed == status.stored == status.length and not status.waiting
    return done and (status.state, status.condition) == ("open", "able")


def content(transmission: Transmission) -> int:
    """A number for a frame without its frame number, which only traces read."""
    frame = transmission.frame
    to = transmission.to or ""
    return hash((digest(frame.origin), word(to), word(transmission.tag), digest(frame.message)))


def _facts(row: Row) -> Iterator[int]:
    """The columns of a row that properties read, apart from its kind: its node, message, key, level
    and view, and the number of messages."""
    for fact in (row.proc, row.inc, *row[_MESSAGE:_DIGEST], row.digest, row.count):
        yield fact if type(fact) is int else NOTHING if fact is None else digest(fact)


_SHOWN = (Kind.DELIVER, Kind.INSTALL)
_MESSAGE, _DIGEST = Row._fields.index("m_src"), Row._fields.index("digest")


def _grain(ns: int) -> int:
    return (ns + GRAIN_NS // 2) // GRAIN_NS
