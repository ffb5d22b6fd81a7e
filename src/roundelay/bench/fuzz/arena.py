"""A simulated group under load, whose frames are forged while they are on their way.

Every frame that a node sends may bring forth forged ones: the same with fields changed and a right
checksum, under any name; copies of earlier ones; damaged ones; bytes without any sense. They reach
nodes at about the time of the real one, so that they fall into every phase of a group's life.
Nodes crash, restart and are cut off meanwhile.

Safety is not promised under forged frames and is not judged. What is judged: no input raises, none
takes long, and once the forging has stopped the group comes together and delivers again.
"""

import struct
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from roundelay.bench.fuzz.mutations import STRANGER, Mutator
from roundelay.core.contract import Boot, Codec, Core, CoreStatus, Origin
from roundelay.core.effects import Deliver, Effect
from roundelay.core.ids import NodeId, Service, ViewId
from roundelay.group.engines import describe, engine_factory
from roundelay.group.stack import Stack
from roundelay.group.static import StaticStack
from roundelay.membership.codec import MembershipCodec
from roundelay.sim.network import Lan
from roundelay.sim.transmission import Transmission
from roundelay.sim.world import World
from roundelay.wire.frame import encode, encode_origin
from roundelay.wire.primitives import I64_MAX, U32_MAX

GROUP = "sim"
NODES = ("a", "b", "c", "d")
LATENCY_NS = 100_000
STEP_NS = 1_000_000
"""Virtual time between two decisions on what to submit and which fault to cause."""
INTENSITIES = (0.02, 0.1, 0.5, 1.0, 2.0)
"""Forged frames for each real one; drawn anew every now and then."""
SPELL_STEPS = 60
"""Steps that an intensity lasts."""
BOUND_NS = 15_000_000_000
"""Within this time after the last forged frame all nodes are in one view and deliver. The longest
pause between two that expelled each other is 3 s, and there may be one after the other."""
SLICE_NS = 50_000_000
"""Virtual time between two checks whether the group has recovered."""
KEPT = 40
"""Frames of each type that are kept to be forged or repeated later."""
TRIES = 8
"""Attempts to change a frame so that it can still be encoded; then the frame goes as it is."""


class TimedCore:
    """A core that measures the CPU time of each of its inputs."""

    def __init__(self, core: Stack | StaticStack, clock: "Stopwatch") -> None:
        self.core = core
        self._clock = clock
        self._receive = core.receive
        self._expire = core.expire

    @property
    def codec(self) -> Codec[Any]:
        return self.core.codec

    @property
    def status(self) -> CoreStatus:
        return self.core.status

    def start(self) -> list[Effect[Any]]:
        return self.core.start()

    def accept(
        self,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> int:
        return self.core.accept(payload, service, destinations)

    def flush(self) -> list[Effect[Any]]:
        return self.core.flush()

    def receive(self, origin: Origin, message: Any) -> list[Effect[Any]]:
        begin = time.thread_time()
        effects = self._receive(origin, message)
        spent = time.thread_time() - begin
        if spent > self._clock.slowest_s:
            self._clock.slowest_s, self._clock.slowest = spent, f"{origin} {message}"[:300]
        return effects

    def receive_many(self, origin: Origin, messages: Sequence[Any]) -> list[Effect[Any]]:
        begin = time.thread_time()
        effects = self.core.receive_many(origin, messages)
        spent = (time.thread_time() - begin) / len(messages)
        if spent > self._clock.slowest_s:
            self._clock.slowest_s, self._clock.slowest = spent, f"{origin} {messages}"[:300]
        return effects

    def expire(self, timer: str) -> list[Effect[Any]]:
        begin = time.thread_time()
        effects = self._expire(timer)
        spent = time.thread_time() - begin
        if spent > self._clock.slowest_s:
            self._clock.slowest_s, self._clock.slowest = spent, timer
        return effects

    def leave(self) -> list[Effect[Any]]:
        return self.core.leave()


class Stopwatch:
    """The slowest input so far, of CPU time."""

    def __init__(self) -> None:
        self.slowest_s = 0.0
        self.slowest = ""


class Arena:
    """One group, from its start on. What it does follows from its seed alone, or, what is forged,
    from other choices if they are given."""

    def __init__(
        self,
        engine: str,
        seed: str,
        clock: Stopwatch,
        *,
        static: bool,
        options: Mapping[str, str] | None = None,
        choices: Random | None = None,
    ) -> None:
        """`options` are those of the engine."""
        self.frames = 0
        """Forged frames that reached a node so far."""
        self.phases: Counter[str] = Counter()
        """By phase of whoever got it: forged frames."""
        self.tags: Counter[str] = Counter()
        """By type: forged frames that were well-formed as far as this can be seen here."""
        self.last: tuple[NodeId, bytes] | None = None
        """The forged frame that arrived last, and where."""
        self._random = Random(seed)
        """Load and faults."""
        self._forging = self._random if choices is None else choices
        """Which frames are forged, how, and for whom."""
        self._mutator = Mutator(self._forging, NODES)
        self._static = static
        self._selective = describe(engine).selective
        self._clock = clock
        self._kept: dict[str, deque[Transmission]] = {}
        self._intensity = 0.0
        self._narrow = False
        """Only frames of the engine are forged, by members in their view: so a view lasts longer,
        and what it comes to is what the engine makes of them."""
        self.steps = 0
        """Milliseconds under load so far."""
        self._submitted = 0
        self._awaited: dict[bytes, set[NodeId]] = {}
        self._drops: Counter[str] = Counter()
        factory = engine_factory(engine, options)

        def core(boot: Boot) -> Core[Any]:
            made: Stack | StaticStack
            made = StaticStack(boot, NODES, factory) if static else Stack(boot, NODES, factory)
            return TimedCore(made, clock)

        self.world = World(
            NODES, core, Lan(LATENCY_NS), lambda row: None, group=GROUP, observer=self._observe
        )
        self.world.start()

    # Running

    def step(self) -> None:
        """A millisecond under load, forged frames and now and then a fault."""
        random = self._random
        if self.steps % SPELL_STEPS == 0:
            self._intensity = random.choice(INTENSITIES)
            self._narrow = random.random() < 0.5
            if not self._static:
                self._fault()
        self.steps += 1
        for _ in range(random.choice((0, 0, 1, 2))):
            self._submit(random.choice(NODES))
        if random.random() < 0.05 and not self._narrow and self._kept:
            self._forge_something()  # Also while nobody says anything.
        self.world.run(STEP_NS)

    def recover(self) -> bool:
        """Stop forging; whether the group comes together, and delivers what each submits then."""
        world = self.world
        self._intensity = 0.0
        world.heal()
        for node in NODES:
            world.restart(node)
        deadline = world.loop.now + BOUND_NS
        while not self._together() and world.loop.now < deadline:
            world.run(SLICE_NS)
        while self._together():
            self._awaited = {f"{node} {self.steps}".encode(): set(NODES) for node in NODES}
            for payload in self._awaited:
                world.submit(payload[:1].decode(), payload)
            until = min(deadline, world.loop.now + BOUND_NS // 5)
            while self._awaited and world.loop.now < until:
                world.run(SLICE_NS)
            if not self._awaited:
                return True
            if world.loop.now >= deadline:
                break
            while not self._together() and world.loop.now < deadline:
                world.run(SLICE_NS)
        return False

    def describe(self) -> str:
        """Where each node is, for reports."""
        return "; ".join(f"{node} {self._where(node)}" for node in NODES)

    def drops(self) -> Counter[str]:
        """Frames that nodes refused, by reason; of crashed lives too."""
        drops = Counter(self._drops)
        for host in self.world.hosts.values():
            if host.alive:
                drops.update({str(reason): n for reason, n in host.endpoint.drops.items()})
        return drops

    def _where(self, node: NodeId) -> str:
        core = self._core(node)
        if isinstance(core, StaticStack):
            return "static"
        membership = core.membership
        return f"{membership.phase} in {membership.view} after {membership.ring_id.seq}"

    def _core(self, node: NodeId) -> Stack | StaticStack:
        core = self.world.hosts[node].core
        assert isinstance(core, TimedCore)
        return core.core

    def _together(self) -> bool:
        cores = [self._core(node) for node in NODES]
        views = {core.membership.view.id for core in cores if isinstance(core, Stack)}
        members = {core.membership.view.members for core in cores if isinstance(core, Stack)}
        phases = {str(core.membership.phase) for core in cores if isinstance(core, Stack)}
        return phases == {"operational"} and len(views) == 1 and members == {NODES}

    def _submit(self, node: NodeId) -> None:
        random = self._random
        self._submitted += 1
        size = random.choice((0, 1, 10, 10, 100, 1000, 5000))
        to = None
        if self._selective and random.random() < 0.3:
            to = tuple(sorted(random.sample(NODES, random.randint(1, 3))))
        service = random.choice((Service.AGREED, Service.AGREED, Service.FIFO, Service.SAFE))
        if self._core(node).delivery.packer.waiting < 50:  # No more than a slow group takes in.
            self.world.submit(node, random.randbytes(size), service, to)

    def _fault(self) -> None:
        world, random = self.world, self._random
        world.merge()
        for node in NODES:
            if not world.hosts[node].alive:
                world.restart(node)
        node = random.choice(NODES)
        match random.randrange(6):
            case 0:
                self._forget(node)
                world.crash(node)
            case 1:
                cut = random.randint(1, 2)
                world.partition(NODES[cut:], NODES[:cut])
            case 2:
                self._forget(node)
                world.crash(node)
                world.restart(node, random.choice(("kept", "lost", "torn")))

    def _forget(self, node: NodeId) -> None:
        """A node is about to lose its counters."""
        host = self.world.hosts[node]
        if host.alive:
            self._drops.update({str(r): n for r, n in host.endpoint.drops.items()})

    # Forging

    def _observe(self, node: NodeId, verb: str, what: Any) -> None:
        if verb == "sends":
            self._sent(what)
        elif verb == "delivers" and self._awaited:
            self._delivered(node, what)

    def _delivered(self, node: NodeId, effect: Deliver) -> None:
        for payload in effect.payloads:
            left = self._awaited.get(payload)
            if left is not None:
                left.discard(node)
                if not left:
                    del self._awaited[payload]

    def _sent(self, transmission: Transmission) -> None:
        """A real frame leaves: keep it, and let forged ones arrive at about the same time."""
        kept = self._kept.setdefault(transmission.tag, deque(maxlen=KEPT))
        kept.append(transmission)
        if not self._intensity:
            return
        random, intensity = self._forging, self._intensity
        if transmission.tag in _MEMBERSHIP:
            intensity = 0.0 if self._narrow else max(intensity, 1.0)
        count = int(intensity) + (random.random() < intensity % 1)
        for _ in range(count):
            self._forge(transmission)

    def _forge_something(self) -> None:
        kept = self._kept[self._forging.choice(sorted(self._kept))]
        self._forge(self._forging.choice(kept))

    def _forge(self, transmission: Transmission) -> None:
        """Let a forged frame arrive soon, at one node or at all."""
        random, loop = self._forging, self.world.loop
        if (
            random.random() < 0.2 and not self._narrow
        ):  # Not this one, but one that was sent earlier.
            transmission = random.choice(self._kept[random.choice(sorted(self._kept))])
        self._mutator.see(transmission.frame.message)
        data = self._forged(transmission)
        if random.random() < 0.3:
            receivers: tuple[NodeId, ...] = NODES
        elif transmission.to is not None and random.random() < 0.7:
            receivers = (transmission.to,)
        else:
            receivers = (random.choice(NODES),)
        due = loop.now + random.randrange(2 * LATENCY_NS)
        for receiver in receivers:
            if receiver in self.world.hosts:
                loop.at(due, self._arrive, (receiver, transmission, data))

    def _arrive(self, forged: tuple[NodeId, Transmission, bytes]) -> None:
        receiver, transmission, data = forged
        host = self.world.hosts[receiver]
        if not host.alive or not self._intensity:
            return
        core = self._core(receiver)
        phase = str(core.membership.phase) if isinstance(core, Stack) else "static"
        self.frames += 1
        self.phases[phase] += 1
        self.last = (receiver, data)
        host.arrive((transmission, data))

    def _forged(self, transmission: Transmission) -> bytes:
        random, data = self._forging, transmission.data
        match random.randrange(20):
            case 0:
                return random.randbytes(random.choice((0, 1, 29, 30, 100, 1500)))
            case 1:
                at = random.randrange(len(data))
                return data[:at] + random.randbytes(1) + data[at + 1 :]
            case 2:
                return data[: random.randrange(len(data))]
            case 3 | 4:
                return data  # Late, or a copy.
            case 5:
                return self._sealed(transmission.frame.origin, random.choice(self._bodies()))
        for _ in range(TRIES):
            message = transmission.frame.message
            if random.random() < 0.9:
                message = self._mutator.mutate(message)
            try:
                body = self._core(NODES[0]).codec.encode(message)
                sealed = self._sealed(self._origin(transmission.frame.origin), body)
            except (ValueError, TypeError, AttributeError, struct.error, OverflowError):
                continue  # A value that has no form on the wire.
            self.tags[transmission.tag] += 1
            return sealed
        return data

    def _bodies(self) -> list[tuple[int, bytes]]:
        """Sound bodies under any tag, cut or with noise."""
        random = self._forging
        kept = self._kept[random.choice(sorted(self._kept))]
        tag, body = self._core(NODES[0]).codec.encode(random.choice(kept).frame.message)
        garbled = bytearray(body)
        for _ in range(min(len(garbled), 3)):
            garbled[random.randrange(len(garbled))] = random.randrange(256)
        cut = body[: random.randrange(len(body) + 1)]
        return [(random.randrange(256), body), (tag, bytes(garbled)), (tag, cut)]

    def _sealed(self, origin: Origin, body: tuple[int, bytes]) -> bytes:
        random = self._forging
        lamport = random.choice((0, 1, 1000, I64_MAX)) if random.random() < 0.1 else 1
        return encode(encode_origin(origin), body[0], lamport, random.randrange(1, 1000), body[1])

    def _origin(self, origin: Origin) -> Origin:
        """As the real frame has it, or another that may be heeded, or neither."""
        random = self._forging
        group, node, incarnation, view = GROUP, origin.node, origin.incarnation, origin.view
        match 1 if self._narrow else random.randrange(10):
            case 0:
                node = random.choice((*NODES, STRANGER))
                incarnation = random.choice((0, incarnation + 1, U32_MAX))
            case 1 | 2:
                node = random.choice(NODES)
                incarnation = max(0, self.world.hosts[node].incarnation)
            case 3:
                view = self._some_view(random.choice(NODES))
            case 4:
                view = random.choice((None, random.choice(self._mutator.views)))
            case 5:
                incarnation = random.choice((0, 1, max(0, incarnation - 1), incarnation + 1))
        return Origin(group, node, incarnation, view)

    def _some_view(self, node: NodeId) -> ViewId:
        core = self._core(node)
        if isinstance(core, StaticStack):
            return core.view.id
        return self._forging.choice((core.membership.view.id, core.membership.ring_id))


_MEMBERSHIP = frozenset(MembershipCodec.tags.values())
"""Frames of which there are few: each brings forth a forged one at least."""
