"""A world: hosts on a network, under faults, in virtual time."""

import itertools
from collections.abc import Callable, Container, Iterable
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from roundelay.core.contract import Boot, Core, Origin
from roundelay.core.ids import NodeId, Service
from roundelay.group.log.generation import standing_of
from roundelay.sim.capture import Capture
from roundelay.sim.costs import Costs
from roundelay.sim.disk import Mood
from roundelay.sim.faults import PLAIN, Choices, Rates
from roundelay.sim.host import Host
from roundelay.sim.log_clients import LogClients
from roundelay.sim.loop import Loop
from roundelay.sim.network import Manual, Network
from roundelay.sim.transmission import Arrival, Transmission
from roundelay.trace.recorder import Append, Recorder
from roundelay.trace.schema import WORLD, frame_key

if TYPE_CHECKING:
    from roundelay.sim.host_log import Journals, PowerCut
    from roundelay.sim.intruder import Intruder
    from roundelay.sim.sealed import Sealing

Factory = Callable[[Boot], Core[Any]]
"""Makes the core of a node: a static group's, or a whole stack."""

Storage = Literal["kept", "lost", "torn", "rot"]
"""What a node finds of its stable storage: all, nothing, the beginning of its standing; or all, but
with one bit wrong in its journal."""

Filter = Callable[[Transmission, NodeId], bool]
"""Whether a copy of a frame on its way to a node is lost."""

Observer = Callable[[NodeId, str, Any], None]
"""Told what happens as it happens: node, verb, and the effect, view or transmission."""


class World:
    """Hosts, a network and faults. All methods act at the present moment of virtual time."""

    def __init__(
        self,
        nodes: Iterable[NodeId],
        factory: Factory,
        network: Network,
        append: Append,
        *,
        choices: Choices | None = None,
        costs: Costs | None = None,
        buffer_frames: int = 4096,
        turn_ns: int = 0,
        group: str = "sim",
        net_rows: bool = True,
        token_rows: bool = True,
        bytes_every: int = 1,
        observer: Observer | None = None,
        sealing: "Sealing | None" = None,
        journal: "Journals | None" = None,
    ) -> None:
        """`append` takes the rows of the trace; `net_rows` includes those of single frames, and
        `token_rows` those of the token's hops, which only K3 reads. One frame of `bytes_every`,
        chosen by the seed, is taken through its bytes; the others reach those who get them whole as
        the objects that were sent. `buffer_frames` is the size of each host's socket buffer, which
        matters once a host is paused, slow or has costs, or handles its inputs in turns. `turn_ns`
        is the length of such a turn; 0 means that each input is handled the moment it comes. With
        `sealing` hosts seal what they send, and everything that is sent is captured. With `journal`
        nodes keep a log."""
        self.nodes = tuple(sorted(nodes))
        self.numbers = {node: number for number, node in enumerate(self.nodes)}
        self.group = group
        self.factory = factory
        self.network = network
        self.choices = choices or Choices(0)
        self.costs = costs or Costs()
        self.costly = bool(self.costs)
        self.buffer_frames = buffer_frames
        self.turn_ns = turn_ns
        self.loop = Loop()
        self.rates = Rates()
        self.cuts: set[tuple[NodeId, NodeId]] = set()
        """Links, sender to receiver, that carry nothing."""
        self.filters: list[Filter] = []
        """What is lost by rule, not by chance."""
        self.held: list[tuple[Transmission, NodeId]] = []
        """On a manual network: copies that wait for the scenario, oldest first."""
        self.frames = 0
        """Frames put on the wire."""
        self.origins: dict[bytes, Origin] = {}
        """Parsed origins of frames, shared by all who decode."""
        self.sealing = sealing
        self.journal = journal
        self.log_clients = LogClients()
        self.capture = None if sealing is None else Capture()
        """What somebody who listens has recorded; None if nobody does."""
        self.intruder: Intruder | None = None
        """Who sends what no host has sent; None if nobody does."""
        self.acts = 0
        """How often intruders have acted."""
        self.bytes_every = bytes_every
        self._sampling = Random(f"roundelay/{self.choices.seed}/bytes")
        self._until_bytes = self._sampling.randint(1, bytes_every)
        """Frames until the next one that is taken through its bytes."""
        self.queued = self.costly or turn_ns > 0
        """Whether no input is handled the moment it comes."""
        self._append = append
        self._net_rows = net_rows
        self._token_rows = token_rows
        self.observer = observer
        self._gseq = itertools.count().__next__
        self._others = {node: tuple(o for o in self.nodes if o != node) for node in self.nodes}
        self._recorder = Recorder(
            append, {**self.numbers, "": WORLD}, "", 0, self.loop, self._gseq, net=net_rows
        )
        self.hosts = {node: Host(self, node) for node in self.nodes}

    def start(self, *nodes: NodeId) -> None:
        """Boot these nodes, or all, in order of their names."""
        for node in sorted(nodes) or self.nodes:
            if self.hosts[node].incarnation < 0:
                self.hosts[node].boot()

    def run(self, duration_ns: int) -> None:
        """Let virtual time pass."""
        self.loop.run(self.loop.now + duration_ns)

    def submit(
        self,
        node: NodeId,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
        appended: bool = False,
    ) -> None:
        """A message of the application, for the replicated log if `appended`; nothing happens on a
        node that is down."""
        host = self.hosts[node]
        if appended and host.log is None:
            raise ValueError(f"{node} has no journal; write before the nodes: journal")
        if host.alive and host.log is not None and appended:
            host.log.append(payload)
        elif host.alive:
            host.submit(payload, service, destinations)

    # Faults

    def set_rates(self, rates: Rates) -> None:
        self.rates = rates
        self._recorder.fault("rates", {"total": rates.total})

    def crash(
        self, node: NodeId, *, after_effects: int = 0, power: "PowerCut | None" = None
    ) -> None:
        """Stop a node at once, or within the step in which it does that many more effects; with
        `power` its whole machine."""
        host = self.hosts[node]
        if not host.alive:
            return
        detail: dict[str, object] = {"node": node, "after_effects": after_effects}
        if power is not None:
            detail["power"] = True
        self._recorder.fault("crash", detail)
        if after_effects:
            host.fuse = after_effects
            host.power = power
        else:
            host.crash(power)

    def leave(self, node: NodeId) -> None:
        """Let a node stop in good order."""
        host = self.hosts[node]
        if host.alive:
            self._recorder.fault("leave", {"node": node})
            host.leave()

    def restart(
        self,
        node: NodeId,
        storage: Storage = "kept",
        torn_bytes: int | None = None,
        rotten: int | None = None,
    ) -> None:
        """Start a crashed node again as its next incarnation. Of torn storage the first
        `torn_bytes` are left, or as many as chance has it; `rotten` is the index of the entry that
        is damaged."""
        host = self.hosts[node]
        if host.alive:
            return
        if host.log is not None and storage == "rot" and rotten is not None:
            host.log.disk.rot(rotten)
        if storage == "lost":
            host.storage = None
            if host.log is not None:
                host.log.disk.wipe()
        elif storage == "torn" and host.storage:
            if torn_bytes is None:
                name = f"torn {node}'{host.incarnation}"
                torn_bytes = self.choices.number(name, len(host.storage) - 1)
            host.storage = host.storage[:torn_bytes]
        self._recorder.fault("restart", {"node": node, "storage": storage})
        self.observe(node, "restarts")
        host.boot()

    def recover(self, *survivors: NodeId, lost: Container[NodeId] = ()) -> None:
        """Let an operator begin a generation of the log with the best log of these nodes, whose
        voters they are; the disks of those that are `lost` are. Nothing happens unless all
        nodes are down and these have one log."""
        hosts = [self.hosts[node] for node in sorted(survivors)]
        logs = {host: host.log for host in hosts if host.log is not None}
        if any(host.alive for host in self.hosts.values()) or len(logs) < len(hosts):
            return
        ranks = {host: log.disk.rank() for host, log in logs.items()}
        ids = {log.disk.log_id() for log in logs.values()}
        if len(ids) != 1 or b"" in ids:
            return
        best = max(hosts, key=lambda host: ranks[host])
        self._recorder.fault("recover", {"survivors": [*survivors], "begins": best.name})
        names = tuple(host.name for host in hosts)
        view = logs[best].disk.recover(best.name, best.storage, best.wall_us(), names)
        self.observe(best.name, "begins", ranks[best][1].length)
        for host, log in logs.items():
            log.disk.follow()
            host.storage = standing_of(host.storage, view)
        for host in self.hosts.values():
            if host.name in lost and host not in logs:
                host.storage = None
                if host.log is not None:
                    host.log.disk.wipe()

    def set_disk(self, node: NodeId, mood: Mood) -> None:
        """Make the disk of a node with a journal slow, full or sound, or let its next sync fail."""
        log = self.hosts[node].log
        assert log is not None, f"{node} has no journal"
        self._recorder.fault("disk", {"node": node, "mood": str(mood)})
        log.disk.mood = mood

    def pause(self, node: NodeId) -> None:
        """Stop a node's processor; its socket goes on filling."""
        self._recorder.fault("pause", {"node": node})
        self.hosts[node].paused = True

    def resume(self, node: NodeId) -> None:
        self._recorder.fault("resume", {"node": node})
        self.hosts[node].resume()

    def slow(self, node: NodeId, extra_ns: int) -> None:
        """Make every input of a node cost this much more."""
        self._recorder.fault("slow", {"node": node, "extra_ns": extra_ns})
        self.hosts[node].slow_ns = extra_ns

    def drift(self, node: NodeId, factor: float) -> None:
        """Make a node's timers, from the next one armed, take `factor` times as long."""
        if factor <= 0:
            raise ValueError(f"a clock cannot run {factor} times as slow")
        self._recorder.fault("drift", {"node": node, "factor": factor})
        self.hosts[node].drift = factor

    def cut(self, links: Iterable[tuple[NodeId, NodeId]]) -> None:
        """Let nothing through from the first to the second of each pair. Frames already under
        way still arrive."""
        links = sorted(links)
        self._recorder.fault("cut", {"links": [f"{a}>{b}" for a, b in links]})
        self.cuts.update(links)

    def partition(self, *components: tuple[NodeId, ...]) -> None:
        """Cut every link between different components, both ways; nodes not named stay with the
        first. Cuts made before are mended."""
        named = [node for component in components for node in component]
        if len(set(named)) != len(named):
            raise ValueError("a node is named in two components")
        rest = tuple(node for node in self.nodes if node not in named)
        sides = [(*components[0], *rest), *components[1:]]
        side = {node: i for i, component in enumerate(sides) for node in component}
        self.cuts = {
            (a, b) for a in self.nodes for b in self.nodes if a != b and side[a] != side[b]
        }
        self._recorder.fault("partition", {"components": [sorted(c) for c in sides]})

    def merge(self) -> None:
        """Mend every cut."""
        self.cuts = set()
        self._recorder.fault("merge")

    def heal(self) -> None:
        """End every fault but crashes: liveness is owed from here on."""
        self.rates = Rates()
        self.cuts = set()
        self.filters = []
        self.choices.heal()
        self.intruder = None
        for host in self.hosts.values():
            host.slow_ns = 0
            host.drift = 1.0
            host.fuse = None
            if host.log is not None:
                host.log.disk.mood = Mood.OK
        self._recorder.fault("heal")
        for host in self.hosts.values():
            if host.paused:
                host.resume()

    def end(self) -> None:
        """Declare the run quiet: one row for each component of live, connected nodes, and an empty
        one if nobody is left."""
        for component in self.components() or [()]:
            self._recorder.end(component)

    def components(self) -> list[tuple[NodeId, ...]]:
        """Live nodes that can reach each other both ways, smallest name first."""
        left = [host.name for host in self.hosts.values() if host.alive]
        components = []
        while left:
            component = [left.pop(0)]
            for node in component:  # Grows while it is walked.
                near = [o for o in left if not {(node, o), (o, node)} & self.cuts]
                component += near
                left = [o for o in left if o not in near]
            components.append(tuple(sorted(component)))
        return components

    # The wire

    def as_bytes(self) -> bool:
        """Whether the next frame is taken through its bytes."""
        if self.bytes_every == 1:
            return True
        self._until_bytes -= 1
        if self._until_bytes:
            return False
        self._until_bytes = self._sampling.randint(1, 2 * self.bytes_every - 1)
        return True

    def depart(self, transmission: Transmission) -> None:
        """Put a frame on the wire."""
        sender = transmission.sender
        if transmission.to is not None:
            if transmission.to not in self.hosts:  # A name that a forged frame brought up.
                self.drop("down", transmission, transmission.to)
                return
            receivers: tuple[NodeId, ...] = (transmission.to,)
        elif self.network.reflects:
            receivers = self.nodes
        else:
            receivers = self._others[sender]
        self.frames += transmission.traced
        if self.capture is not None:
            self.capture.record(self.loop.now, transmission, receivers)
        if self.cuts:
            for receiver in receivers:
                if (sender, receiver) in self.cuts:
                    self.drop("cut", transmission, receiver)
            receivers = tuple(r for r in receivers if (sender, r) not in self.cuts)
        if self.filters:
            receivers = self._filtered(transmission, receivers)
        if type(self.network) is Manual:
            self.held += [(transmission, receiver) for receiver in receivers]
            return
        network, loop, hosts = self.network, self.loop, self.hosts
        size = len(transmission.data) if network.by_size else 0
        whole: Arrival = (transmission, None)
        plain = self.choices.plain and not self.rates.total and not network.jitter_ns
        if plain and len(receivers) == 1:
            receiver = receivers[0]
            time = network.arrival(loop.now, sender, receiver, size)
            if time is None:
                self.drop("overrun", transmission, receiver)
            else:
                loop.at(time, hosts[receiver].arrive, whole)
            return
        times = network.arrivals(loop.now, sender, receivers, size)
        if plain:
            for receiver, time in zip(receivers, times, strict=True):
                if time is None:
                    self.drop("overrun", transmission, receiver)
                else:
                    loop.at(time, hosts[receiver].arrive, whole)
            return
        for receiver, time in zip(receivers, times, strict=True):
            if time is None:
                self.drop("overrun", transmission, receiver)
                continue
            fate = self.choices.fate(
                self.rates,
                network.jitter_ns,
                sender,
                transmission.incarnation,
                transmission.number if transmission.traced else f"p{transmission.number}",
                receiver,
                transmission.tag,
            )
            if fate is PLAIN:
                loop.at(time, hosts[receiver].arrive, whole)
            elif fate.lost:
                self.drop("loss", transmission, receiver)
            else:
                damaged = None if fate.flip is None else _flip(transmission.data, fate.flip)
                arrival: Arrival = (transmission, damaged)
                time += fate.delay_ns
                loop.at(time, hosts[receiver].arrive, arrival)
                if fate.copy_ns is not None:
                    loop.at(time + fate.copy_ns, hosts[receiver].arrive, arrival)

    def _filtered(
        self, transmission: Transmission, receivers: tuple[NodeId, ...]
    ) -> tuple[NodeId, ...]:
        """Those whose copy no rule takes away; each rule is asked once about each copy."""
        kept = []
        for receiver in receivers:
            if any(lost(transmission, receiver) for lost in self.filters):
                self.drop("loss", transmission, receiver)
            else:
                kept.append(receiver)
        return tuple(kept)

    def drop(self, reason: str, transmission: Transmission, receiver: NodeId) -> None:
        """Record that a copy of a frame never got anywhere."""
        if not transmission.traced:
            return
        number = self.numbers[transmission.sender]
        pkt = frame_key(number, transmission.incarnation, transmission.number)
        self._recorder.drop(reason, pkt, receiver)

    # For hosts

    def recorder(self, node: NodeId, incarnation: int) -> Recorder:
        return Recorder(
            self._append,
            self.numbers,
            node,
            incarnation,
            self.loop,
            self._gseq,
            net=self._net_rows,
            tokens=self._token_rows,
        )

    def observe(self, node: NodeId, verb: str, what: Any = None) -> None:
        if self.observer is not None:
            self.observer(node, verb, what)


def _flip(data: bytes, bit: int) -> bytes:
    """The same bytes with one bit the other way round."""
    bit %= len(data) * 8
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)
