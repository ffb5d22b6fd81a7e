"""A node: drives one stack, as the simulator's host does, with real time, disk and network."""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, assert_never

from roundelay.core.contract import Boot, Origin
from roundelay.core.contract import QueueFullError as StackFullError
from roundelay.core.effects import (
    CancelTimer,
    Deliver,
    Differ,
    Effect,
    Install,
    Kind,
    Persist,
    Receipt,
    Record,
    Refuse,
    Send,
    SetTimer,
    Suspect,
)
from roundelay.core.ids import NodeId, Service, Span, View
from roundelay.group.stack import Stack
from roundelay.membership.messages import FIRST_TAG, Join
from roundelay.runtime.disputes import Disputes, Objections
from roundelay.runtime.errors import (
    ClosedError,
    FailedError,
    NameTakenError,
    QueueFullError,
    SendError,
    StateError,
)
from roundelay.runtime.events import Arrival, Batch, Payload, Position
from roundelay.runtime.inbox import Inbox
from roundelay.runtime.meter import Meter
from roundelay.runtime.narrator import Narrator, log
from roundelay.runtime.neighbours import Neighbours
from roundelay.runtime.port import Port
from roundelay.runtime.receipts import Receipts
from roundelay.runtime.state import Storage
from roundelay.runtime.tape import Input, Tape, join_run
from roundelay.runtime.terms import peers_differ, settings_differ
from roundelay.runtime.timers import Timers
from roundelay.runtime.tracing import Tracing
from roundelay.runtime.whereabouts import Whereabouts
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import VERSION, Frame, version_of
from roundelay.wire.primitives import Reason

_TOKEN = Kind.TOKEN

CROWD_PACKETS = 300
"""That wait for the application before the group is slowed down."""
CROWD_BYTES = 4 * 1024 * 1024
SMALL_FRAME_BYTES = 600
"""Packets that may be needed to keep a group going, and fill little memory."""
DRAIN_TURNS = 8
"""Turns of reading before expired timers have theirs, even if there is more to read."""
BURST_BYTES = 32_768
"""Gathered before it is sent: others begin to work on it while the rest is made."""
RESERVE_SHARE = 0.25
"""Of what may be unread, kept for an application that itself waits for the group."""
HOUSEKEEPING_S = 1.0
NEVER_HEARD_S = 5.0
"""After the start, before peers that were never heard are told of."""
REPEATS_SHARE = 0.1
"""Of packets that came more than once, before the log tells of it ..."""
REPEATS_PACKETS = 200
"""... if so many came at all."""


class Put(Protocol):
    """Queues a message and returns its number."""

    def __call__(
        self,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> int: ...


Tap = Callable[[Arrival], None]
"""Told of every arrival, in order; it must not call the node."""


class Node:
    """One member of one group, from its start until it is closed.

    The core is never called from inside an effect: effects only send, store, arm timers and
    append to queues. Whatever the core raises, apart from its refusal of a message, is a bug in
    it, and ends the node.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        port: Port,
        stack: Stack,
        boot: Boot,
        storage: Storage,
        narrator: Narrator,
        whereabouts: Whereabouts,
        *,
        timeout_s: float,
        backlog_bytes: int,
        tracing: Tracing | None = None,
        tape: Tape | None = None,
    ) -> None:
        """`whereabouts` are those of all other nodes of the group."""
        self.group = boot.group
        self.name = boot.node
        self.incarnation = boot.incarnation
        self.stack = stack
        self.endpoint: Endpoint[Any] = Endpoint(boot, stack.codec)
        self.pause_s = timeout_s / 4
        self.stall_s = timeout_s / (2 * (len(whereabouts.peers) + 1))
        self.inbox = Inbox()
        self.receipts = Receipts()
        self.meter = Meter()
        self.narrator = narrator
        self.view: View | None = None
        self.able = False
        """Whether this node may vote on primary views ..."""
        self.why = ""
        """... and why its view is not primary, for people."""
        self.error: ClosedError | None = None
        """Why it does not run any more."""
        self.ended = asyncio.Event()
        self.taps: list[Tap] = []
        self.leftovers: list[Callable[[], None]] = []
        """What else to let go of if the event loop is closed under this node."""
        self.on_view: Callable[[View], None] = lambda view: None
        self.on_close: Callable[[ClosedError], None] = lambda error: None
        self.whereabouts = whereabouts
        self.neighbours = Neighbours(whereabouts.peers, narrator, loop.time)
        self._lives = self.neighbours.lives
        self._heard = self.neighbours.heard
        self._disputes = Disputes(
            narrator,
            loop.time,
            timeout_s / 2,
            whereabouts.ask,
            whereabouts.tell_taken,
            self.receive,
        )
        self._objections = Objections(loop.time)
        whereabouts.answered, whereabouts.taken = self._disputes.answered, self._on_taken
        narrator.silence_s = self.neighbours.silence_s
        self._began = loop.time()
        self.refused = 0
        """Frames for which the application left no room."""
        self._loop = loop
        self._clock = loop.time
        self._port = port
        self._storage = storage
        self._tracing = tracing
        self.check = None if tracing is None else tracing.check
        self._tape = tape
        for file in (tracing, tape):
            if file is not None:
                file.trouble = self.narrator.trouble
        self._backlog_bytes = backlog_bytes
        self._refuse_bytes = int(backlog_bytes * (1 - RESERVE_SHARE))
        self._assembler = stack.delivery.assembler
        self._crowd_bytes = min(CROWD_BYTES, backlog_bytes // 2)
        self._relocate()
        whereabouts.serve(lambda data, address: port.socket.send(data, (address,)), self._relocate)
        self._joined = False
        """Whether it was ever in a view with others."""
        self._timers = Timers(loop, self._tick)
        self._housekeeping: asyncio.TimerHandle | None = None
        self._counted = (0, 0)
        self.flush_due = False
        """Messages were accepted, and leave in the next turn."""
        self._launched = 0
        """The first message that was accepted since the last flush."""
        self._landed = 0
        """Own messages delivered here."""
        self.put: Put = stack.accept if tape is None else self._accept_on_tape
        """The stack's `accept`."""
        self._senders: list[asyncio.Future[None]] = []
        """Who waits for room in the queue."""

    @property
    def wake(self) -> float:
        return self._timers.wake

    @property
    def never_heard(self) -> list[tuple[NodeId, str]]:
        """Peers of which nothing was heard since this node started, and where they should be."""
        return [
            (peer, str(address))
            for peer, address in self.whereabouts.peers.items()
            if peer not in self._heard
        ]

    def start(self) -> None:
        self._port.attach(self)
        self._housekeeping = self._loop.call_later(HOUSEKEEPING_S, self._keep_house)
        self._step(Input.START, b"", self.stack.start)

    def leave(self) -> None:
        """Tell the others, and stop."""
        if self.error is None:
            self._step(Input.LEAVE, b"", self.stack.leave)
            self.close(ClosedError(f"group {self.group!r} was left"))

    def close(self, error: ClosedError) -> None:
        """Stop at once; whoever waits for anything is told."""
        if self.error is not None:
            return
        self.error = error
        self.flush_due = False
        self._port.detach(self)
        self._timers.clear()
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        self.narrator.look(last=True)
        self.inbox.close(error)
        self.receipts.fail(error)
        self._wake_senders()
        self.ended.set()
        self.on_close(error)
        self._close_files()

    def abandon(self) -> None:
        """Its event loop was closed under it: let go of files and locks, for whoever is next."""
        if self.error is None:
            self.error = ClosedError(f"the event loop of group {self.group!r} ended without leave")
            self._close_files()
            for release in self.leftovers:
                release()

    def _close_files(self) -> None:
        self._storage.close()
        if self._tape is not None:
            self._tape.close()
        if self._tracing is not None:
            self._tracing.close()

    # The application

    def accept(
        self,
        payload: Payload,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> int:
        """Queue a message and return its number; it leaves in the next turn of the event loop."""
        try:
            if type(payload) is not bytes:
                payload = _copy(payload)
            number = self.put(payload, service, destinations)
        except StackFullError as e:
            raise QueueFullError(f"{e}; use `await send`, which waits for room") from None
        except (ValueError, TypeError) as e:
            raise SendError(str(e)) from None
        if not self.flush_due:
            self._plan_flush(number)
        return number

    def _plan_flush(self, number: int) -> None:
        """The first message since the last flush was accepted."""
        if self.error is not None:
            raise self.error
        self.flush_due = True
        self._launched = number
        self._loop.call_soon(self.flush)

    def _accept_on_tape(
        self,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> int:
        number = self.stack.accept(payload, service, destinations)
        assert self._tape is not None
        self._tape.accept(payload, service, destinations)
        return number

    def flush(self) -> None:
        """Let the engine send what was accepted."""
        if self.flush_due and self.error is None:
            self.flush_due = False
            self.meter.launched(self._launched, time.monotonic())
            self._step(Input.FLUSH, b"", self.stack.flush)

    async def settled(self) -> None:
        """Wait until everything accepted so far is delivered here."""
        accepted = self.stack.delivery.packer.next
        if accepted > self._landed:
            await self.receipts.give(accepted - 1)

    async def room(self) -> None:
        """Wait until the queue has moved on, or raise what ended the node."""
        if self.error is None:
            future = self._loop.create_future()
            self._senders.append(future)
            await future
        if self.error is not None:
            raise self.error

    def _wake_senders(self) -> None:
        senders, self._senders = self._senders, []
        for future in senders:
            if not future.done():
                future.set_result(None)

    # The port

    def receive(self, data: bytes, *, stale: bool = False) -> None:
        frame = self.endpoint.receive(data)
        if type(frame) is not Frame:
            assert isinstance(frame, Reason)
            self._refused(frame, data)
            return
        origin, message, meter = frame.origin, frame.message, self.meter
        if stale and isinstance(message, Join):
            return  # It tells of a time gone by; whoever sent it will repeat it.
        # Asked of every frame, so the usual answer is looked up here.
        if self._lives.get(origin.node) != origin.incarnation and not self._welcome(origin, data):
            return
        self._heard[origin.node] = self._clock()
        if self.inbox.bytes + self._assembler.bytes > self._refuse_bytes and self._refuses(frame):
            return
        meter.frames_received += 1
        if hasattr(message, "packet"):
            meter.packets_received += 1
        if self._tracing is not None:
            self._tracing.arrive(frame, self.endpoint)
        try:
            effects = self.stack.receive(origin, message)
            if self._tape is not None:
                self._tape.write(Input.RECEIVE, data, effects)
            self._run(effects)
        except Exception as e:
            self._fail(e)

    def receive_run(self, run: Sequence[bytes]) -> None:
        """As `receive` for each; but what comes from one node goes through the core at once."""
        if self.unread_bytes + len(run) * len(run[0]) > self._refuse_bytes:
            for data in run:  # There may be no room for all of them.
                if self.error is None:
                    self.receive(data)
            return
        taken: list[tuple[Frame[Any], bytes]] = []
        for data in run:
            frame = self.endpoint.receive(data)
            if type(frame) is not Frame:
                assert isinstance(frame, Reason)
                self._refused(frame, data)
                continue
            if taken and frame.origin is not taken[0][0].origin:
                self._take(taken)
                taken = []
            taken.append((frame, data))
        if taken:
            self._take(taken)

    def _take(self, taken: list[tuple[Frame[Any], bytes]]) -> None:
        """Frames of one node that came together."""
        if self.error is not None:
            return  # What came before them ended this node.
        origin = taken[0][0].origin
        if self._lives.get(origin.node) != origin.incarnation and not self._welcome(origin, None):
            return
        self._heard[origin.node] = self._clock()
        if self._tracing is not None:
            for frame, _ in taken:
                self._tracing.arrive(frame, self.endpoint)
        messages = [frame.message for frame, _ in taken]
        self.meter.frames_received += len(messages)
        self.meter.packets_received += sum([hasattr(message, "packet") for message in messages])
        try:
            effects = self.stack.receive_run(origin, messages)
            if self._tape is not None:
                self._tape.write(Input.RUN, join_run([data for _, data in taken]), effects)
            self._run(effects)
        except Exception as e:
            self._fail(e)

    def _welcome(self, origin: Origin, data: bytes | None) -> bool:
        """Whether a frame is heard of a life that is not the last one heard of its node."""
        if origin.node == self.name:
            self._on_namesake(origin)
            return False
        source = self._port.source
        member = self.stack.membership.lives.get(origin.node)
        if member is None or member == origin.incarnation:
            return self.neighbours.meet(origin, source)
        allowed = self._disputes.allows(origin, member, data, source)
        return allowed and self.neighbours.meet(origin, source)

    def _on_taken(self, life: int) -> None:
        """A peer says that another node has our name. Who is with others stays."""
        if life != self.incarnation or self.error is not None:
            return
        if self.view is not None and len(self.view.members) > 1:
            self.narrator.twins(self.name)
            self._objections.forget()
        elif self._objections.count():
            self._close_for_name()

    def _close_for_name(self) -> None:
        self.close(
            NameTakenError(
                f"another node of group {self.group!r} is called {self.name!r} too; stop it, or "
                "give this node another name"
            )
        )

    def slept(self, duration_s: float) -> None:
        self.meter.pauses += 1
        self.narrator.paused(duration_s)
        self._timers.put_off(duration_s)

    def stalled(self, duration_s: float) -> None:
        self.meter.stalls += 1
        if duration_s >= self.stall_s:
            self.narrator.slow_reader(self.inbox.bytes)
        self._timers.hold_up(duration_s)

    def crowded(self) -> bool:
        inbox = self.inbox
        packets = len(inbox.waiting)
        many = packets > CROWD_PACKETS or (packets and self.unread_bytes > self._crowd_bytes)
        return bool(many) and not self._senders and not self.receipts.awaited

    @property
    def unread_bytes(self) -> int:
        """What waits to be read, and the pieces of large messages that are not complete."""
        return self.inbox.bytes + self._assembler.bytes

    def _refuses(self, frame: Frame[Any]) -> bool:
        """Whether a frame brings what there is no room for: then it counts as lost on its way. The
        engine's own flow control makes the group wait, and go on with every packet that fits."""
        small = frame.size <= SMALL_FRAME_BYTES
        if frame.tag >= FIRST_TAG or (small and not _carries(frame.message)):
            return False
        if not self.inbox.waiting:
            return False  # What waits are pieces of large messages, and here are more of them.
        # Who waits for the group may be the reader itself: the last part is kept for it, and for
        # what is small.
        if (small or not self.crowded()) and self.unread_bytes <= self._backlog_bytes:
            return False
        self.refused += 1
        self.narrator.full(self.unread_bytes)
        return True

    def _refused(self, reason: Reason, data: bytes) -> None:
        if reason is Reason.PROBE:
            self.whereabouts.receive(data, self._port.source)
            return
        if self._tracing is not None:
            self._tracing.recorder.drop(reason)
        if reason is Reason.GROUP:
            self.narrator.wrong_group(self.endpoint.drops[reason])
        elif reason is Reason.VERSION:
            self.narrator.version(version_of(data), VERSION, self._port.source)

    def _on_namesake(self, origin: Origin) -> None:
        """Somebody else sends under our name: another node, an earlier life of this one whose
        frames are late, or a forger. Who was ever with others stays, whoever it is."""
        if not self.neighbours.namesake(origin.incarnation):
            return
        if self._joined:
            self.narrator.twins(self.name)
            return
        self._close_for_name()

    # Time

    def _tick(self) -> None:
        """Timers may have expired; frames that came before that go first."""
        if self._port.stalls(self):
            self._timers.rest()  # The end of the stall sets it right.
            return
        for _ in range(DRAIN_TURNS):
            if not self._port.read():
                break
        self.expire()
        if self.error is None:
            self._timers.resume()

    def expire(self) -> None:
        for timer in self._timers.expired():
            if self._tracing is not None:
                self._tracing.recorder.expire(timer)
            self._step(Input.EXPIRE, timer.encode(), partial(self.stack.expire, timer))

    def _keep_house(self) -> None:
        self._housekeeping = self._loop.call_later(HOUSEKEEPING_S, self._keep_house)
        meter = self.meter
        received, delivered = meter.packets_received, meter.packets_delivered - meter.packets_own
        then_received, then_delivered = self._counted
        self._counted = (received, delivered)
        self.whereabouts.look(self.view.members if self.view is not None else ())
        self.narrator.look()
        if self._loop.time() - self._began >= NEVER_HEARD_S:
            for peer, address in self.never_heard:
                self.narrator.never_heard(peer, address)
        came = received - then_received
        repeated = came - (delivered - then_delivered)
        if came >= REPEATS_PACKETS and repeated > came * REPEATS_SHARE:
            self.narrator.repeats(repeated, came)
        if self._tape is not None:
            self._tape.flush()
        if self._tracing is not None:
            self._tracing.flush()

    # The core

    def _step(self, kind: Input, data: bytes, call: Callable[[], list[Effect[Any]]]) -> None:
        """One input of the core, and all that it wants done."""
        try:
            effects = call()
            if self._tape is not None:
                self._tape.write(kind, data, effects)
            self._run(effects)
        except Exception as e:
            self._fail(e)

    def _fail(self, error: Exception) -> None:
        """Storage failed, or there is a bug in the core: this node cannot go on."""
        if isinstance(error, StateError):
            self.close(FailedError(str(error)))
            return
        log.error("%s/%s stops: a bug in its core", self.group, self.name, exc_info=error)
        self.close(
            FailedError(f"this node stopped on a bug ({error!r}); please report it with its log")
        )

    def _run(self, effects: list[Effect[Any]]) -> None:
        tracing, socket = self._tracing, self._port.socket
        burst: list[bytes] = []  # For everybody: it may leave with one call.
        waits = 0
        landed: Span | None = None  # The last own messages that were delivered.
        for effect in effects:
            # By type, the most frequent first: every packet has some.
            if type(effect) is Deliver:
                if tracing is not None:
                    tracing.recorder.deliver(effect)
                    tracing.settle()
                self._deliver(effect)
            elif type(effect) is SetTimer:
                self._timers.set(effect.timer, effect.delay_s)
            elif type(effect) is Send:
                if effect.to is None:
                    burst.append(self._encode(effect))
                    waits += len(burst[-1])
                if burst and (effect.to is not None or waits >= BURST_BYTES):
                    socket.send_all(burst, self._everybody)
                    burst, waits = [], 0
                if effect.to is not None:
                    socket.send(self._encode(effect), self._addresses.get(effect.to, ()))
            elif type(effect) is Record:
                if tracing is not None:
                    tracing.recorder.record(effect)
                if effect.kind is _TOKEN and effect.tag == "acquire":
                    self.meter.token(time.monotonic())
            elif type(effect) is Receipt:
                landed = effect.span
                if self.receipts.concern(landed):
                    self._settle(effect)
            else:
                self._run_rare(effect)
        if burst:
            socket.send_all(burst, self._everybody)
        if landed is not None:
            self._land(landed.first + landed.count)

    def _run_rare(self, effect: Effect[Any]) -> None:
        tracing = self._tracing
        match effect:
            case CancelTimer():
                self._timers.cancel(effect.timer)
            case Install():
                if tracing is not None:
                    tracing.recorder.install(effect.view, able=effect.able)
                    tracing.settle()
                self._install(effect)
            case Persist():
                self._storage.save(effect.state)
            case Refuse():
                self.endpoint.refuse(Reason.IMPLAUSIBLE)
                if tracing is not None:
                    tracing.recorder.refuse(Reason.IMPLAUSIBLE, effect.why)
            case Differ():
                self._on_differ(effect)
            case Suspect():
                if tracing is not None:
                    tracing.recorder.suspect(effect.members, effect.reason)
                self.meter.suspicions += 1
                self.narrator.suspect(effect)
            case Record() | SetTimer() | Send() | Deliver() | Receipt():
                raise AssertionError("run by type")
            case _:
                assert_never(effect)

    def _on_differ(self, effect: Differ) -> None:
        ours = self.stack.membership.terms
        if effect.refused:
            self.endpoint.refuse(Reason.SETTINGS)
            if self._tracing is not None:
                self._tracing.recorder.refuse(Reason.SETTINGS, effect.terms.settings)
            self.narrator.settings(effect.node, settings_differ(effect.node, ours, effect.terms))
        else:
            self.narrator.peers(effect.node, peers_differ(effect.node, ours, effect.terms))

    def _relocate(self) -> None:
        """Somebody is elsewhere now."""
        addresses = self.whereabouts.addresses
        self._addresses = {node: (address,) for node, address in addresses.items()}
        self._everybody = self._port.everybody or tuple(addresses.values())

    def _encode(self, effect: Send[Any]) -> bytes:
        tag, data = self.endpoint.encode(effect.message, effect.view)
        if self._tracing is not None:
            self._tracing.send(effect.to, tag, len(data), self.endpoint)
        self.meter.frames_sent += 1
        return data

    def _deliver(self, effect: Deliver) -> None:
        meter, payloads = self.meter, effect.payloads
        meter.packets_delivered += 1
        if effect.packet.span.node == self.name:
            meter.packets_own += 1
        if payloads:
            assert self.view is not None, "a delivery before the first view"
            batch = Batch(effect, self.view)
            meter.messages_delivered += len(payloads)
            meter.bytes_delivered += batch.size
            self.inbox.put(batch)
            for tap in self.taps:
                tap(batch)

    def _install(self, effect: Install) -> None:
        self.view = view = effect.view
        self.able, self.why = effect.able, effect.why
        self._joined = self._joined or len(view.members) > 1
        self.meter.views += 1
        self.narrator.install(effect)
        self.inbox.put(view)
        for tap in self.taps:
            tap(view)
        self.on_view(view)
        self._wake_senders()

    def _settle(self, effect: Receipt) -> None:
        assert effect.view is not None, "a receipt for what no view ordered"
        assert self.view is not None, "a receipt before the first view"
        self.receipts.settle(effect.span, Position(effect.view, effect.index), self.view)

    def _land(self, end: int) -> None:
        """Own messages up to this number, exclusive, were delivered here. What is for others may
        land later than what was sent after it."""
        self._landed = end = max(end, self._landed)
        self.meter.landed(end, time.monotonic())
        if self._senders:
            self._wake_senders()


def _carries(message: object) -> bool:
    """Whether a message of an engine, or of the link below it, brings a packet."""
    return hasattr(message, "packet") or hasattr(message, "content")


def _copy(payload: object) -> bytes:
    """A message that can be changed by whoever sent it, as it is now."""
    try:
        return memoryview(payload).tobytes()  # type: ignore[arg-type]  # Or it is refused.
    except TypeError:
        kind = type(payload).__name__
        raise TypeError(f"a message is bytes, not {kind}; encode it first") from None
