"""A simulated machine: it drives one core, with a clock, a processor, a disk and a socket.

It uses the inputs of a core exactly as a real node does. A host handles its inputs in one of three
ways:

- at once, each input the moment it comes: the default;
- in turns, if the world has a turn length: what comes within one turn of the event loop is handled
  at its end. Frames of one origin that follow each other go to the core as one burst, then timers
  that ran out expire, and one flush sends all messages that were accepted;
- one by one from a queue, if inputs cost processor time, or the host is slow or paused.

In the last two ways frames wait in the socket's buffer, which has a limit, and are handed over
before expired timers, as a node drains its socket before it looks at the clock.
"""

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

from roundelay.core.contract import Boot, Core, QueueFullError
from roundelay.core.effects import (
    Appended,
    CancelTimer,
    Committed,
    Cut,
    Deliver,
    Differ,
    Effect,
    Fork,
    Install,
    Kind,
    Load,
    LoadSnapshot,
    LogChanged,
    Persist,
    Receipt,
    Record,
    Refuse,
    Reset,
    Send,
    SetTimer,
    Store,
    StoreSnapshot,
    Suspect,
    Synced,
)
from roundelay.core.ids import NodeId, Service
from roundelay.sim.transmission import Arrival, Intrusion, Transmission
from roundelay.trace.schema import frame_key
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import Frame
from roundelay.wire.primitives import Reason

if TYPE_CHECKING:
    from roundelay.sim.host_log import Call, PowerCut
    from roundelay.sim.sealed import HostSeal
    from roundelay.sim.world import World
    from roundelay.trace.recorder import Recorder


Received = Frame[Any] | Transmission
"""A frame that reached a host: as it was read from bytes, or as it was sent."""

WALL_US = 1_800_000_000_000_000
"""What the wall clock shows when virtual time begins."""


class Host:
    """One node of a world, over all its incarnations."""

    def __init__(self, world: "World", name: NodeId) -> None:
        self.name = name
        self.incarnation = -1
        self.alive = False
        self.paused = False
        self.slow_ns = 0
        """Added to the cost of every input."""
        self.drift = 1.0
        """Timers take this many times as long."""
        self.fuse: int | None = None
        """Crash after this many more effects."""
        self.power: PowerCut | None = None
        """How the power fails then, if that is why."""
        self.storage: bytes | None = None
        self.refused = 0
        """Messages of the application that found the queue full."""
        self.core: Core[Any]
        self.endpoint: Endpoint[Any]
        self.seal: HostSeal | None = None
        """None where nothing is sealed."""
        journal = world.journal
        self.log = None if journal is None else journal.host_log(self, world)
        """None for a node without a journal."""
        self.recorder: Recorder
        self._world = world
        self._deadlines: dict[str, int] = {}
        self._alarms: dict[str, int] = {}
        """When the loop will call for each timer; a later deadline waits for that call."""
        self._inbox: deque[Arrival] = deque()
        self._submits: deque[tuple[bytes, Service, tuple[NodeId, ...] | None]] = deque()
        self._due: deque[str] = deque()
        self._calls: deque[Call] = deque()
        """Inputs about the log."""
        self._turn_due = False
        """The end of the present turn is on the world's loop."""
        self._flush_due = False
        """Messages were accepted and wait for the end of the turn."""
        self._working = False
        self._receiving = False
        """The input in hand is a frame, whose cost is being paid."""
        self._busy_until = 0

    # Life and death

    def boot(self) -> None:
        """Start the next incarnation from what storage holds."""
        world = self._world
        self.incarnation += 1
        self.alive = True
        wall_us = self.wall_us() + self.incarnation
        boot = Boot(world.group, self.name, self.incarnation, self.storage, wall_us)
        if self.log is not None:
            boot = replace(boot, journal=self.log.boot(), session=self.log.session())
        self.core = world.factory(boot)
        sealing, reflect = world.sealing, world.network.reflects
        self.endpoint = Endpoint(boot, self.core.codec, reflect=reflect, sealed=sealing is not None)
        self.seal = None if sealing is None else sealing.host_seal(world, boot, self.endpoint)
        self.recorder = world.recorder(self.name, self.incarnation)
        self._deadlines = {}
        self._alarms = {}
        self._inbox.clear()
        self._submits.clear()
        self._due.clear()
        self._calls.clear()
        self._turn_due = False
        self._flush_due = False
        self._working = False
        self._busy_until = world.loop.now
        self._perform(self.core.start())

    def crash(self, power: "PowerCut | None" = None) -> None:
        """Everything but stable storage is gone, and of a journal, if the machine loses power, what
        was not synced."""
        tag = ""
        if self.log is not None:
            tag = self.log.crash(power)
        self.recorder.crash(tag)
        self.alive = False
        self.paused = False
        self.fuse = self.power = None
        self._world.observe(self.name, "crashes")

    def leave(self) -> None:
        """Say goodbye and stop."""
        self.recorder.forget_cause()
        self._perform(self.core.leave())
        if self.log is not None:
            self.log.close()
        if self.alive:
            self.crash()

    def wall_us(self) -> int:
        """What the wall clock shows."""
        return WALL_US + self._world.loop.now // 1000

    def resume(self) -> None:
        """Go on after a pause with whatever waited."""
        self.paused = False
        self._work()

    # Inputs

    def submit(
        self, payload: bytes, service: Service, destinations: tuple[NodeId, ...] | None
    ) -> None:
        if self._queues():
            self._submits.append((payload, service, destinations))
            self._work()
        elif self._accept(payload, service, destinations):
            if self._world.turn_ns:
                self._flush_due = True
                self._await_turn()
            else:
                self._flush()

    def arrive(self, arrival: Arrival) -> None:
        if not self.alive:
            self._world.drop("down", arrival[0], self.name)
        elif not (self._world.queued or self.paused or self._working or self.slow_ns):
            self._receive(arrival)
        elif self._queues():
            if len(self._inbox) >= self._world.buffer_frames:
                self._world.drop("overrun", arrival[0], self.name)
                return
            self._inbox.append(arrival)
            self._work()
        else:
            if len(self._inbox) >= self._world.buffer_frames:
                self._world.drop("overrun", arrival[0], self.name)
                return
            self._inbox.append(arrival)
            self._await_turn()

    def expire(self, timer: str) -> None:
        """Let a timer run out now, whatever its deadline."""
        del self._deadlines[timer]
        self.recorder.expire(timer)
        self._world.observe(self.name, "expire", timer)
        self._perform(self.core.expire(timer))

    def call(self, call: "Call") -> None:
        """An input about the log."""
        if self._queues():
            self._calls.append(call)
            self._work()
        elif self._world.turn_ns:
            self._calls.append(call)
            self._await_turn()
        else:
            self._call(call)

    def due(self, what: "tuple[int, Call]") -> None:
        """What the driver of the log has put off is due, if the node still lives."""
        incarnation, call = what
        if self.alive and incarnation == self.incarnation:
            assert self.log is not None
            self.log.due(call)

    @property
    def timers(self) -> dict[str, int]:
        """Armed timers and when they run out."""
        return dict(self._deadlines)

    def _accept(
        self, payload: bytes, service: Service, destinations: tuple[NodeId, ...] | None
    ) -> bool:
        """Whether the core had room for the message."""
        try:
            self.core.accept(payload, service, destinations)
        except QueueFullError:
            self.refused += 1
            return False
        return True

    def _flush(self) -> None:
        self._flush_due = False
        self.recorder.forget_cause()
        self._perform(self.core.flush())

    def _call(self, call: "Call") -> None:
        assert self.log is not None
        self.recorder.forget_cause()
        self._perform(self.log.input(call))

    def _receive(self, arrival: Arrival) -> None:
        frame = self._admit(arrival)
        if frame is not None:
            self._record_arrival(frame)
            self._perform(self.core.receive(frame.origin, frame.message))

    def _receive_burst(self, frames: list[Received]) -> None:
        """Frames of one origin that were read together."""
        for frame in frames:
            self._record_arrival(frame)
        if len(frames) == 1:
            self._perform(self.core.receive(frames[0].origin, frames[0].message))
        elif frames:
            self.recorder.forget_frame()
            messages = [frame.message for frame in frames]
            self._perform(self.core.receive_many(frames[0].origin, messages))

    def _record_arrival(self, frame: Received) -> None:
        origin, recorder = frame.origin, self.recorder
        recorder.lamport = self.endpoint.lamport
        if recorder.net:
            whole = frame if type(frame) is Frame else frame.frame  # type: ignore[union-attr]
            tag, size = self.endpoint.codec.tags[whole.tag], whole.size
            recorder.arrive(origin.node, origin.incarnation, frame.number, tag, size)
        else:
            recorder.arrive(origin.node, origin.incarnation, frame.number)

    def _admit(self, arrival: Arrival) -> Received | None:
        """The frame of an arrival; None if it is refused."""
        transmission, damaged = arrival
        endpoint = self.endpoint
        frame: Received
        if damaged is None and self.seal is None:
            frame = transmission
            refusal = endpoint.admit(frame.origin, frame.lamport)
            if refusal is not None:
                self._refuse(refusal, transmission)
                return None
        else:
            data = transmission.data if damaged is None else damaged
            if self.seal is None:
                received: Frame[Any] | Reason | None = endpoint.receive(data)
            else:
                received = self.seal.open(data)
            if received is None:
                return None  # A challenge or an answer.
            if isinstance(received, Reason):
                self._refuse(received, transmission)
                return None
            frame = received
        if frame.origin.node == self.name and frame.origin.incarnation != self.incarnation:
            refusal = endpoint.refuse(Reason.OWN)  # Of an earlier life, or a namesake.
            self._refuse(refusal, transmission)
            return None
        return frame

    def _refuse(self, refusal: Reason, transmission: Transmission) -> None:
        """Record that an arrival was refused."""
        world = self._world
        if transmission.traced:
            number = world.numbers[transmission.sender]
            pkt = frame_key(number, transmission.incarnation, transmission.number)
            self.recorder.drop(refusal, pkt, transmission.sender)
        elif isinstance(transmission, Intrusion):
            self.recorder.drop(refusal)
        world.observe(self.name, "refuses", (transmission, refusal))

    def _alarm(self, alarm: tuple[int, str]) -> None:
        """The loop calls for a timer, which may have been cancelled or put off meanwhile."""
        incarnation, timer = alarm
        now = self._world.loop.now
        if incarnation != self.incarnation or not self.alive or self._alarms.get(timer) != now:
            return
        del self._alarms[timer]
        deadline = self._deadlines.get(timer)
        if deadline is None:
            return
        if deadline > now:
            self._set_alarm(timer, deadline)
        elif self._queues():
            self._due.append(timer)
            self._work()
        elif self._world.turn_ns:
            self._due.append(timer)
            self._await_turn()
        else:
            self.expire(timer)

    # Turns, for hosts that handle together what came together

    def _await_turn(self) -> None:
        if not self._turn_due:
            self._turn_due = True
            loop = self._world.loop
            loop.at(loop.now + self._world.turn_ns, self._end_turn, self.incarnation)

    def _end_turn(self, incarnation: int) -> None:
        """Handle what came in this turn: frames, then timers, then messages to send."""
        if incarnation != self.incarnation or not self.alive:
            return
        self._turn_due = False
        if self._queues():
            self._work()  # Slow or paused since: its queue takes over.
            return
        self._read_bursts()
        calls, self._calls = self._calls, deque()
        for call in calls:
            if self.alive:
                self._call(call)
        due, self._due = self._due, deque()
        for timer in due:
            if self.alive and self._deadlines.get(timer, self._world.loop.now + 1) <= (
                self._world.loop.now
            ):
                self.expire(timer)
        if self._flush_due and self.alive:
            self._flush()

    def _read_bursts(self) -> None:
        """Hand over the frames that wait; those of one origin that follow each other together."""
        inbox, self._inbox = self._inbox, deque()
        burst: list[Received] = []
        for arrival in inbox:
            frame = self._admit(arrival)
            if frame is None:
                continue
            if burst and burst[0].origin is not frame.origin:
                self._receive_burst(burst)
                burst = []
                if not self.alive:
                    return
            burst.append(frame)
        self._receive_burst(burst)

    # The processor, for hosts on which time passes

    def _queues(self) -> bool:
        """Whether inputs wait their turn; what waits already must not be overtaken."""
        return bool(self.paused or self._working or self.slow_ns or self._world.costly)

    def _work(self) -> None:
        """Begin with the next input that waits, unless one is in hand."""
        if self._working or self.paused or not self.alive:
            return
        cost = self.slow_ns
        if self._inbox:
            transmission, damaged = self._inbox[0]
            size = len(transmission.data if damaged is None else damaged)
            cost += self._world.costs.receiving(transmission.tag, size)
        elif not (self._due or self._calls or self._submits or self._flush_due):
            return
        self._working = True
        self._receiving = bool(self._inbox)
        start = max(self._world.loop.now, self._busy_until)
        self._world.loop.at(start + cost, self._finish, self.incarnation)

    def _finish(self, incarnation: int) -> None:
        if incarnation != self.incarnation or not self.alive:
            return
        self._working = False
        if self.paused:
            return  # Stopped in the middle of it: the input waits for `resume`.
        self._busy_until = self._world.loop.now
        if self._inbox and not self._receiving:
            pass  # A frame came meanwhile; it goes first, and has its own cost.
        elif self._inbox:
            self._receive(self._inbox.popleft())
        elif self._calls:
            self._call(self._calls.popleft())
        elif self._due:
            timer = self._due.popleft()
            if self._deadlines.get(timer, self._busy_until + 1) <= self._busy_until:
                self.expire(timer)  # Unless it was cancelled or put off while it waited.
        elif self._submits:
            if self._accept(*self._submits.popleft()):
                self._flush()
        elif self._flush_due:
            self._flush()
        self._work()

    # Effects

    def _perform(self, effects: list[Effect[Any]]) -> None:
        if self.fuse is None:
            self._perform_each(effects)
            return
        effects = self._before_crash(effects)
        burnt = not self.fuse
        self._perform_each(effects)
        if burnt and self.alive:
            self.crash(self.power)

    def _before_crash(self, effects: list[Effect[Any]]) -> list[Effect[Any]]:
        """The effects that the fuse lets happen. A row that says why the next effects happen is not
        counted: crashing before it or after it is the same."""
        kept: list[Effect[Any]] = []
        for effect in effects:
            if not self.fuse:
                break
            kept.append(effect)
            self.fuse -= not (type(effect) is Record and effect.kind is Kind.GATHER)
        return kept

    def _perform_each(self, effects: list[Effect[Any]]) -> None:
        world, recorder = self._world, self.recorder
        observe = world.observer
        for effect in effects:
            # By type, the most frequent first: a run has millions.
            if type(effect) is Record:
                recorder.record(effect)
            elif type(effect) is SetTimer:
                timer = effect.timer
                deadline = world.loop.now + round(effect.delay_s * 1e9 * self.drift)
                self._deadlines[timer] = deadline
                alarm = self._alarms.get(timer)
                if alarm is None or alarm > deadline:
                    self._set_alarm(timer, deadline)
            elif type(effect) is Send:
                self._send(effect)
            elif type(effect) is Deliver:
                recorder.deliver(effect)
                if observe is not None:
                    observe(self.name, "delivers", effect)
            elif type(effect) is CancelTimer:
                self._deadlines.pop(effect.timer, None)
            else:
                self._perform_rare(effect)
                if not self.alive:
                    return

    def _perform_rare(self, effect: Effect[Any]) -> None:
        match effect:
            case Install():
                self.recorder.install(effect.view, able=effect.able)
                self._world.observe(self.name, "installs", effect.view)
            case Receipt():
                self._world.observe(self.name, "receipt", effect)
            case Persist():
                self.storage = effect.state
            case Refuse():
                self.endpoint.refuse(Reason.IMPLAUSIBLE)
                self.recorder.refuse(Reason.IMPLAUSIBLE, effect.why)
            case Differ():
                if effect.refused:
                    self.endpoint.refuse(Reason.SETTINGS)
                    self.recorder.refuse(Reason.SETTINGS, effect.terms.settings)
            case Suspect():
                self.recorder.suspect(effect.members, effect.reason)
                self._world.observe(self.name, "suspects", effect)
            case Record() | SetTimer() | Send() | Deliver() | CancelTimer():
                raise AssertionError("performed by type")
            case (
                Store()
                | Cut()
                | Reset()
                | Load()
                | StoreSnapshot()
                | LoadSnapshot()
                | Committed()
                | Appended()
                | Synced()
                | LogChanged()
                | Fork()
            ):
                assert self.log is not None, "a core without a journal keeps no log"
                self.log.perform(effect)
            case _:
                assert_never(effect)

    def _set_alarm(self, timer: str, deadline: int) -> None:
        self._alarms[timer] = deadline
        self._world.loop.at(deadline, self._alarm, (self.incarnation, timer))

    def _send(self, effect: Send[Any]) -> None:
        world, recorder = self._world, self.recorder
        transmission = Transmission(
            self.endpoint,
            self.name,
            self.incarnation,
            effect,
            world.origins,
            as_bytes=world.as_bytes(),
        )
        recorder.lamport = self.endpoint.lamport
        size = 0
        if recorder.net or world.costly:
            size = len(transmission.data)
            recorder.send(effect.to, transmission.number, transmission.tag, size)
        if self.seal is not None:
            transmission.seal(self.seal.seal)
        if world.observer is not None:
            world.observer(self.name, "sends", transmission)
        if not world.costly:
            world.depart(transmission)
            return
        cost = world.costs.sending(transmission.tag, size)
        self._busy_until = max(self._busy_until, world.loop.now) + cost
        world.loop.at(self._busy_until, world.depart, transmission)
