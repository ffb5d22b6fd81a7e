"""Runs of ATOP, All-Ack and causal multicast with fast and slow senders, as in [ATOP98], section 6.

    the paper                           here
    6 machines, all connected           a static group of 6 in one view
    two senders at 10 messages/s, one   the first three members; each gap between two messages of a
    at 20/s, three much slower          sender is its period, give or take a tenth by chance
    50-byte messages                    the same, each in a packet of its own (`packet_messages=1`)
    the view-synchronous layer of       our links on a network that loses nothing: each frame takes
    Transis on a 10 Mbit/s Ethernet     1 ms and an exponential time of 0.3 ms on average to each
                                        receiver, and never overtakes another on its way
    processors                          take no time
    a random list of slots              each seed has another one: it is the number of the view
    window factor, epsilon, threshold   `factor=32`, `scale=16` (epsilon is 1/16), 10 %, every
    and period of the book-keeper       0.25 s. The book-keeper is the first member, at 10/s

The paper gives neither latencies nor the length of its runs, nor any of the book-keeper's settings,
nor whether dummies were sent, and when. Here messages are sent from the beginning on. Those sent
from 20 s to 60 s count; by then the book-keeper has adapted. The members go on sending until all
that count are delivered everywhere, and give up after 100 s more.

Heartbeats of links tell what was received. Nothing is lost, so nothing waits for them: they are
made rare, so that minutes of virtual time are cheap. Windows are so large that no sender ever waits
for one, which would hide latency.

*Latency* runs from the moment that the application hands a message over to each delivery, at the
sender too, and is the mean over all. What is not delivered when the run is given up counts with the
time that it has waited, so that the mean is then too small. *Dummies a message* are the frames that
carry no message, of ATOP or (null messages) of All-Ack, divided by the messages, both sent between
20 s and 60 s. *Variance* is that of the number of messages of the first member that are delivered
in a tick of 100 ms between 20 s and 60 s: the mean over the members that deliver.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from statistics import fmean, pvariance
from typing import Any, Literal

from roundelay.core.contract import Boot, Core, EngineFactory
from roundelay.core.effects import Kind
from roundelay.core.ids import NodeId, View, ViewId
from roundelay.experiments.results import Measures
from roundelay.group.engines import engine_factory
from roundelay.group.packer import GroupConfig
from roundelay.group.static import StaticStack
from roundelay.protocols.allack import AllAckEngine
from roundelay.protocols.atop.atop import AtopEngine
from roundelay.sim.faults import Choices
from roundelay.sim.world import World
from roundelay.trace.schema import Row

MS = 1_000_000
S = 1_000_000_000

NAMES = ("a", "b", "c", "d", "e", "f")
FAST_PER_S = (10.0, 10.0, 20.0)
JITTER = 0.1
"""A gap between two messages of a sender differs from its period by up to this share of it."""
SIZE_BYTES = 50
GROUP = GroupConfig(packet_messages=1)
DELAY_NS = 1 * MS
"""What every frame takes to every receiver, at least ..."""
EXTRA_NS = 300_000
"""... and what it takes beyond that, on average."""
TICK_NS = S // 10
ADAPTING_S = 20.0
"""Messages sent in this time do not count. A window of the book-keeper takes five seconds."""
PATIENCE_NS = 100 * S
"""How long a run goes on for messages that count and are not delivered."""
WINDOW_PACKETS = 4096
"""Largest window of links. Whoever waits for a window sends later than it would."""
SECONDS_MAX = 80.0
"""Longest time in which messages count: in a longer run the fastest sender might fill a window."""
LINKS = {
    "heartbeat_s": "1",
    "ack_s": "1",
    "ack_packets": "4096",
    "silence_s": "1000",
    "window_packets": str(WINDOW_PACKETS),
    "fill_packets": "0",
}
"""Settings of links, on which nothing depends where nothing is lost and nobody fails."""

Protocol = Literal["atop", "allack", "causal"]
Dummies = Literal["cover", "demand", "switch", "none"]


@dataclass(frozen=True, slots=True)
class Cell:
    """The parameters of a run, without its seed."""

    protocol: Protocol
    period_s: float
    """From one message of a slow sender to its next."""
    dummies: Dummies = "none"
    """Of ATOP: when a member sends dummies. Of All-Ack: `demand` is null messages."""
    adapts: bool = True
    """Of ATOP: whether there is a book-keeper; if not, all members have the same weight."""
    threshold_share: float = 0.1
    """Of ATOP: how much the shares of members change before weights are changed."""
    hold_ms: float = 2.0
    """Until a dummy or a null message is sent."""
    seconds: float = 40.0
    """In which the messages are sent that count."""

    def __post_init__(self) -> None:
        if self.period_s <= 0 or self.hold_ms <= 0:
            raise ValueError("period and hold are more than 0")
        if not 0 < self.seconds <= SECONDS_MAX:
            raise ValueError(f"seconds are more than 0 and at most {SECONDS_MAX:g}")
        if not 0 <= self.threshold_share <= 2:
            raise ValueError("threshold is a share between 0 and 2, twice the whole")
        if self.protocol != "atop" and not self.adapts:
            raise ValueError("adapts = false is for atop alone")
        allowed = {"allack": ("none", "demand"), "causal": ("none",)}.get(self.protocol)
        if allowed is not None and self.dummies not in allowed:
            raise ValueError(f"dummies of {self.protocol} are {' or '.join(allowed)}")

    @property
    def rates(self) -> tuple[float, ...]:
        """By member: messages a second."""
        slow = len(NAMES) - len(FAST_PER_S)
        return (*FAST_PER_S, *(1 / self.period_s,) * slow)

    @property
    def cost(self) -> float:
        """About how many seconds of virtual time pass, each as dear as its frames are many."""
        waits = {"allack": self.period_s, "atop": PATIENCE_NS / S / 2}.get(self.protocol, 0.0)
        if self.dummies == "none":
            return ADAPTING_S + self.seconds + waits
        return (ADAPTING_S + self.seconds) * (3 if self.adapts else 4)


class Delays:
    """A network on which every frame takes its own time to every receiver, and those of one sender
    stay in order."""

    jitter_ns = 0
    reflects = False
    by_size = False

    def __init__(self, random: Random) -> None:
        self._random = random
        self._last: dict[tuple[NodeId, NodeId], int] = {}
        """By sender and receiver: when the last frame arrives."""

    def arrival(self, now: int, sender: NodeId, receiver: NodeId, size: int) -> int | None:
        takes = DELAY_NS + round(self._random.expovariate(1.0) * EXTRA_NS)
        time = max(now + takes, self._last.get((sender, receiver), 0))
        self._last[sender, receiver] = time
        return time

    def arrivals(
        self, now: int, sender: NodeId, receivers: tuple[NodeId, ...], size: int
    ) -> list[int | None]:
        return [self.arrival(now, sender, receiver, size) for receiver in receivers]


def run(cell: Cell, seed: int) -> Measures:
    """What comes of a cell, by name. A pure function."""
    return _Measurement(cell, seed).measure()


class _Measurement:
    """One run while it is measured: a group, its applications, and what is counted."""

    def __init__(self, cell: Cell, seed: int) -> None:
        self._cell = cell
        self._begin = round(ADAPTING_S * S)
        self._end = self._begin + round(cell.seconds * S)
        self.world = World(
            NAMES,
            partial(_stack, factory=_factory(cell), view=seed),
            Delays(Random(f"roundelay/{seed}/atop/network")),
            self._append,
            choices=Choices(seed, record=False),
            net_rows=False,
        )
        self._random = [Random(f"roundelay/{seed}/atop/{name}") for name in NAMES]
        self._numbers = [0] * len(NAMES)
        """By member: messages handed over."""
        self._born: dict[tuple[int | None, int | None], list[int]] = {}
        """By sender and number, messages that count and are not delivered everywhere: when they
        were handed over, and to how many members they have yet to be delivered."""
        self._counted = 0
        self._latency_ns = 0
        self._deliveries = 0
        self._sent = Counter[int]()
        """By tick: messages of the first member."""
        self._delivered = [Counter[int]() for _ in NAMES]
        """The same, by the member that delivers."""

    def measure(self) -> Measures:
        self.world.start()
        for member in range(len(NAMES)):
            self._schedule_next(member, self._random[member].random())
        self.world.run(self._begin)
        before = self._dummies()
        self.world.run(self._end - self._begin)
        dummies = self._dummies() - before
        while self._born and self.world.loop.now < self._end + PATIENCE_NS:
            self.world.run(S)
        return self._measures(dummies)

    # The applications

    def _schedule_next(self, member: int, periods: float) -> None:
        after_ns = round(periods * S / self._cell.rates[member])
        self.world.loop.at(self.world.loop.now + after_ns, self._submit, member)

    def _submit(self, member: int) -> None:
        now = self.world.loop.now
        if self._begin <= now < self._end:
            self._born[member, self._numbers[member]] = [now, len(NAMES)]
            self._counted += 1
            if not member:
                self._sent[now // TICK_NS] += 1
        self._numbers[member] += 1
        self.world.submit(NAMES[member], bytes(SIZE_BYTES))
        self._schedule_next(member, self._random[member].uniform(1 - JITTER, 1 + JITTER))

    def _append(self, row: Row) -> None:
        if row.kind != Kind.DELIVER:
            return
        if not row.m_src and self._begin <= row.t_ns < self._end:
            self._delivered[row.proc][row.t_ns // TICK_NS] += 1
        message = row.m_src, row.m_seq
        born = self._born.get(message)
        if born is not None:
            self._latency_ns += row.t_ns - born[0]
            self._deliveries += 1
            born[1] -= 1
            if not born[1]:
                del self._born[message]

    # Figures

    def _dummies(self) -> int:
        return sum(dummies_of(host.core) for host in self.world.hosts.values())

    def _measures(self, dummies: int) -> Measures:
        wanted = self._counted * len(NAMES)
        now = self.world.loop.now
        waited = sum((now - time) * left for time, left in self._born.values())
        ticks = range(self._begin // TICK_NS, self._end // TICK_NS)
        received = [[delivered[tick] for tick in ticks] for delivered in self._delivered]
        return {
            "latency_ms": (self._latency_ns + waited) / wanted / MS,
            "delivered_share": self._deliveries / wanted,
            "dummies_per_message": dummies / self._counted,
            "sending_variance": pvariance([self._sent[tick] for tick in ticks]),
            "delivery_variance": fmean(map(pvariance, received)),
            "delivery_rate": fmean(map(sum, received)) / sum(self._sent.values()),
            "empty_ticks_share": fmean(counts.count(0) for counts in received) / len(ticks),
            "fullest_tick": max(map(max, received)),
            "distributions": distributions_of(self.world.hosts[NAMES[0]].core),
        }


def dummies_of(core: Core[Any]) -> int:
    """Frames without a message that a member has sent."""
    assert isinstance(core, StaticStack)
    engine = core.engine
    if isinstance(engine, AtopEngine):
        return engine.dummies
    return engine.nulls if isinstance(engine, AllAckEngine) else 0


def distributions_of(core: Core[Any]) -> int:
    """How often the weights were changed."""
    assert isinstance(core, StaticStack)
    engine = core.engine
    return engine.atom.newest if isinstance(engine, AtopEngine) else 0


def _factory(cell: Cell) -> EngineFactory:
    options = dict(LINKS)
    hold_s = str(cell.hold_ms / 1000)
    if cell.protocol == "allack":
        options |= {"nulls": "no" if cell.dummies == "none" else "yes", "hold_s": hold_s}
    elif cell.protocol == "atop":
        permille = str(round(cell.threshold_share * 1000))
        options |= {"dummies": cell.dummies, "hold_s": hold_s, "threshold_permille": permille}
        if not cell.adapts:
            options |= {"policy": "given", "weights": f"{NAMES[0]}:1"}
    return engine_factory(cell.protocol, options)


def _stack(boot: Boot, *, factory: EngineFactory, view: int) -> StaticStack:
    """A member of a group whose only view has this number, from which slots are drawn."""
    core = StaticStack(replace(boot, traced=False), NAMES, factory, GROUP)
    core.view = View(ViewId(view, NAMES[0]), NAMES, primary=True)
    return core
