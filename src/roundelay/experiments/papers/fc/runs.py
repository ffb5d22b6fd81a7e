"""Runs of FC and Totem on a model of the five PCs of [WangWu], section 4.2.

    the paper                           here
    5 PCs on a switched 100 Mbit/s      `Switched`: full-duplex links to a switch that stores and
    Ethernet                            forwards, 10 us in the switch. Our headers and 66 bytes for
                                        UDP and Ethernet come on top of a request; a frame is never
                                        split
    Pentium 4 at 1.6 GHz, Windows XP    not told what a frame costs. Two models of other papers:
                                        `hop_ms=1.5` has the costs of [Totem95], 0.8 ms to send a
                                        frame, 0.45 ms to receive one, 0.7 ms if it is a token or a
                                        decision; `hop_ms=0` is [DTP97]'s, processors take no time
    clients                             the applications of the members: 100 requests a second in
                                        all, at random times
    a decision orders one request       `batch_packets=1`, and a message is a packet of any size
    a decision is made also if there    `idle_s` so short that the token never rests. Totem's token
    is nothing to order                 spins as well (`idle_rotations`)
    waiting timer of 100 ms             `wait_s`; Totem's `token_loss_s` is the same
    timers of further members           are longer by a stagger of 10 ms each, a tenth of the timer,
                                        which is the default of the engine; the paper is silent
    up to k members fail together       k = 2

FC runs on a static group, as in the paper: a failure is masked and no view changes. Totem needs a
new view to go on, so it has views where members crash; there the time in which membership gives a
silent member up is 120 ms, its default.

The paper says neither how many clients there were, nor how often they sent, nor from where to where
it measured. *Delay* runs from the moment that the application hands a request over to each
delivery, at the sender too, and is the mean over all. A *hop* is the mean time from one decision to
the next; of Totem, a rotation divided by the members. *Confirmation* is counted in decisions: how
many of those behind a decision a member has when it confirms that one, on average and at most.

For *recovery* one member crashes, or two that follow one another, at a random moment; none of them
made the last decision, so that the token is lost at the first of them. It ends when a request that
was ordered after the token was missed is delivered at all survivors. Four times are measured:

    silence_ms   from the last decision to the first expiry of a waiting timer (Totem: Token Loss)
    order_ms     from that expiry until the next request is ordered
    expiry_ms    from that expiry to the end
    crash_ms     from the crash to the end

*Agreement* is not a matter of chance: all runs of a small group under an assumption about failures
are played, as `roundelay audit fc` does, and those are counted in which two members that function
confirm different decisions. Every seed gives the same count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from statistics import fmean
from typing import Any, Literal

from roundelay.core.contract import Boot, Core, EngineFactory
from roundelay.core.effects import Kind
from roundelay.core.ids import NodeId
from roundelay.experiments.audit.survey import survey
from roundelay.experiments.feed import feed
from roundelay.experiments.meter import Meter
from roundelay.experiments.results import Measures
from roundelay.group.engines import engine_factory
from roundelay.group.packer import GroupConfig
from roundelay.group.stack import Stack
from roundelay.group.static import StaticStack
from roundelay.sim.costs import Costs
from roundelay.sim.faults import Choices
from roundelay.sim.load import Load
from roundelay.sim.network import Switched
from roundelay.sim.world import Observer, World
from roundelay.trace.recorder import Append
from roundelay.trace.schema import Row

MS = 1_000_000
S = 1_000_000_000

NAMES = ("a", "b", "c", "d", "e", "f", "g")
GROUP = GroupConfig(packet_messages=1, packet_bytes=2000)
"""A request is a packet, also if it is larger than our packets are on an Ethernet: in pieces it
would take several decisions."""
RATE_PER_S = 100.0
"""Requests of all members together. Several times as many would wait for one another where a hop
takes 1.5 ms: one decision orders one."""
WAIT_MS = 100.0
STAGGER_MS = 10.0
FC_OPTIONS = {
    "wait_s": str(WAIT_MS / 1000),
    "stagger_s": str(STAGGER_MS / 1000),
    "idle_s": "1e-9",
    "repeat_s": str(WAIT_MS / 4000),
    "silence_s": str(WAIT_MS * 5 / 1000),
    "batch_packets": "1",
}
TOTEM_OPTIONS = {"token_loss_s": str(WAIT_MS / 1000), "idle_rotations": "1000000000"}

TOKENS = ("TOKEN", "COMMIT", "RTOKEN", "DEC")
COSTS: Mapping[float, Costs] = {
    1.5: Costs(send_ns=800_000, receive_ns=450_000, tag_ns=dict.fromkeys(TOKENS, 700_000)),
    0.0: Costs(),
}
"""By the milliseconds of processor that a hop of the token takes."""

WARM_UP_NS = 20 * MS
"""Virtual time at the beginning of each run that is not measured ..."""
FORMING_NS = 500 * MS
"""... and where the members have to form a view first."""
CRASH_NS = 20 * MS
"""A crash comes at a random moment of this time."""
PATIENCE_NS = 5 * S
"""How long a group may take to recover."""

Workload = Literal["delay", "recovery", "agreement"]
Rules = Literal["paper", "link", "safe", "totem"]


@dataclass(frozen=True, slots=True)
class Cell:
    """The parameters of a run, without its seed."""

    workload: Workload
    rules: Rules
    """Of FC; or Totem, which has its own."""
    hop_ms: float = 1.5
    """What a hop costs in processor time: a key of `COSTS`."""
    k: int = 2
    """Of `paper` and `link`: how many members may fail together."""
    nodes: int = 5
    size_bytes: int = 100
    """Of a request."""
    failed: int = 0
    """Of `recovery`: how many crash together, 1 or 2."""
    crashes: int = 0
    """Of `recovery`: how many groups are run until some of their members crash."""
    seconds: float = 0.0
    """Of `delay`: virtual time in which the requests come that count."""
    assume: Literal["A1", "A2"] = "A1"
    """Of `agreement`: whether a failing member's decision never reaches the next, or may."""

    def __post_init__(self) -> None:
        if self.hop_ms not in COSTS:
            raise ValueError(f"hop_ms is {' or '.join(f'{c:g}' for c in COSTS)}, not {self.hop_ms}")
        if not 3 <= self.nodes <= len(NAMES):
            raise ValueError(f"nodes are 3 to {len(NAMES)}, not {self.nodes}")
        if self.rules in ("paper", "link") and not 0 <= self.k <= (self.nodes - 1) // 2:
            raise ValueError(f"k is 0 to {(self.nodes - 1) // 2} with {self.nodes} nodes")
        if self.size_bytes < 1:
            raise ValueError("a request has a byte at least")
        if self.workload == "delay" and (self.seconds <= 0 or self.failed or self.crashes):
            raise ValueError("delay needs seconds, more than 0, and nobody fails")
        if self.workload == "agreement" and (self.rules == "totem" or not self.k):
            raise ValueError("agreement is of FC, with k of 1 or 2")
        if self.workload == "recovery":
            if not 1 <= self.failed <= min(2, (self.nodes - 1) // 2):
                raise ValueError("failed is 1 or 2, and a majority stays")
            if self.crashes < 1 or self.seconds:
                raise ValueError("recovery needs crashes, 1 at least, and no seconds")

    @property
    def cost(self) -> float:
        """About how many thousand frames arrive: the token never rests."""
        if self.workload == "agreement":
            return float(self.nodes ** (self.k + 1))  # About so many.
        hops_per_s = 600 if self.hop_ms else 16_000
        copies = 1 if self.rules == "totem" else self.nodes - 1
        views = self.rules == "totem" and self.workload == "recovery"
        warm_up_s = (FORMING_NS if views else WARM_UP_NS) / S
        seconds = self.seconds + warm_up_s if self.workload == "delay" else self.crashes * warm_up_s
        return seconds * hops_per_s * copies / 1000


def run(cell: Cell, seed: int) -> Measures:
    """What comes of a cell, by name; of crashes, means over them. A pure function."""
    if cell.workload == "delay":
        return delays(cell, seed)
    if cell.workload == "agreement":
        return dict(_agreement(cell))
    found = [_Recovery(cell, seed, i).measure() for i in range(cell.crashes)]
    return {name: fmean(times[name] for times in found) for name in found[0]}


def a_world(
    cell: Cell,
    seed: int,
    append: Append,
    *,
    views: bool = False,
    net_rows: bool = False,
    observer: Observer | None = None,
) -> World:
    """The PCs of a cell; with `views` they form their group by themselves."""
    names = NAMES[: cell.nodes]
    factory = engine(cell)

    def core(boot: Boot) -> Core[Any]:
        if views:
            return Stack(boot, names, factory, group=GROUP)
        return StaticStack(boot, names, factory, GROUP)

    return World(
        names,
        core,
        Switched(),
        append,
        choices=Choices(seed, record=False),
        costs=COSTS[cell.hop_ms],
        net_rows=net_rows,
        observer=observer,
    )


def engine(cell: Cell) -> EngineFactory:
    """The engine of a cell, with its options."""
    if cell.rules == "totem":
        return engine_factory("totem", TOTEM_OPTIONS)
    k = str(cell.k) if cell.rules != "safe" else "0"
    return engine_factory("fc", {**FC_OPTIONS, "rules": cell.rules, "k": k})


def _feed(world: World, cell: Cell, seed: int, meter: Meter | None = None) -> None:
    """Let requests come for ever."""
    load = Load(world.nodes, 1 << 62, RATE_PER_S / cell.nodes, cell.size_bytes)
    feed(world, load.draw(seed, world.loop.now, world.nodes), meter)


# Agreement


@cache
def _agreement(cell: Cell) -> Mapping[str, float]:
    (count,) = survey(
        [cell.assume], cell.nodes, cell.k, cell.rules, jobs=1, report=lambda done, total: None
    )
    return {"runs": count.runs, "divergent": count.divergent}


# Delay


def delays(cell: Cell, seed: int) -> Measures:
    """The means of a run in which nobody fails."""
    end = WARM_UP_NS + round(cell.seconds * S)
    meter = Meter(cell.nodes, WARM_UP_NS, end)
    decisions = Decisions(WARM_UP_NS)
    totem = cell.rules == "totem"

    def append(row: Row) -> None:
        meter.append(row)
        if not totem:
            decisions.append(row)

    world = a_world(cell, seed, append, net_rows=not totem)
    world.start()
    _feed(world, cell, seed, meter)
    world.run(end)
    while meter.flying:
        world.run(10 * MS)
    delay_ms = fmean(meter.latency_ns) / MS
    if totem:
        return {"delay_ms": delay_ms, "hop_us": meter.rotation_ns / cell.nodes / 1000}
    return {
        "delay_ms": delay_ms,
        "hop_us": decisions.hop_ns / 1000,
        "confirmation_hops": decisions.confirmation,
        "confirmation_most_hops": decisions.latest,
    }


class Decisions:
    """Counts decisions, from the rows of a run as they are written, frames included."""

    def __init__(self, start_ns: int = 0) -> None:
        self._start = start_ns
        self._made: dict[int, int] = {}
        """By member: the number of its last decision."""
        self._frames: dict[int, int] = {}
        """By frame that carries a decision: its number."""
        self._known: dict[int, int] = {}
        """By member: the largest number of a decision that it has."""
        self._first = self._last = (0, 0)
        """The first and the last decision that count: when made, and its number."""
        self._confirmed = 0
        self._behind = 0
        """The sum, over what was confirmed, of the decisions behind it."""
        self.latest = 0
        """The most decisions that were behind one when it was confirmed."""

    def append(self, row: Row) -> None:
        """Take the next row of the run."""
        kind, proc = row.kind, row.proc
        if kind == Kind.ORDER:
            assert row.k2 is not None
            self._made[proc] = row.k2
            self._known[proc] = max(row.k2, self._known.get(proc, 0))
            if row.t_ns >= self._start:
                self._last = row.t_ns, row.k2
                self._first = self._first if self._first[1] else self._last
        elif row.tag == "DEC" and row.pkt is not None:
            if kind == Kind.SEND:
                self._frames[row.pkt] = self._made[proc]
            else:
                self._known[proc] = max(self._frames[row.pkt], self._known.get(proc, 0))
        elif kind == Kind.CONFIRM and row.t_ns >= self._start:
            assert row.k2 is not None
            self._confirmed += 1
            behind = self._known[proc] - row.k2
            self._behind += behind
            self.latest = max(self.latest, behind)

    @property
    def hop_ns(self) -> float:
        """The mean time from one decision to the next."""
        (begin, first), (end, last) = self._first, self._last
        return (end - begin) / (last - first)

    @property
    def confirmation(self) -> float:
        """How many decisions are behind one when it is confirmed, on average."""
        return self._behind / self._confirmed


# Recovery


class _Recovery:
    """One group until it has recovered from a crash."""

    def __init__(self, cell: Cell, seed: int, number: int) -> None:
        self._cell = cell
        self._seed = seed * 1_000_003 + number
        self._random = Random(f"roundelay/{seed}/fc/crash/{number}")
        self._timer = "token_loss" if cell.rules == "totem" else "wait"
        self._maker = 0
        """Who ordered last, or had the token last."""
        self._ordered_ns = 0
        """When that was."""
        self._crash_ns: int | None = None
        self._silence_ns = 0
        self._expiry_ns: int | None = None
        self._again_ns = 0
        """When a request was ordered after that expiry."""
        self._request: tuple[int, int | None] | None = None
        """The first request that was."""
        self._lacking: set[int] = set()
        """Survivors that have not delivered it."""
        self._end_ns: int | None = None
        views = cell.rules == "totem"
        self._warm_up_ns = FORMING_NS if views else WARM_UP_NS
        self.world = a_world(cell, seed, self._append, views=views, observer=self._observe)

    def measure(self) -> Measures:
        """The times that the page lists, in milliseconds."""
        world = self.world
        world.start()
        world.run(self._warm_up_ns - WARM_UP_NS)
        _feed(world, self._cell, self._seed)
        world.run(WARM_UP_NS + self._random.randrange(CRASH_NS))
        self._crash()
        limit = world.loop.now + PATIENCE_NS
        while self._end_ns is None:
            assert world.loop.now < limit, f"{self._cell} does not recover"
            world.run(MS)
        assert self._crash_ns is not None
        assert self._expiry_ns is not None
        return {
            "silence_ms": self._silence_ns / MS,
            "order_ms": (self._again_ns - self._expiry_ns) / MS,
            "expiry_ms": (self._end_ns - self._expiry_ns) / MS,
            "crash_ms": (self._end_ns - self._crash_ns) / MS,
        }

    def _crash(self) -> None:
        """Let members crash whom the token reaches before it comes back to its last holder."""
        nodes, failed = self._cell.nodes, self._cell.failed
        # The same first one, whether a second one crashes or not.
        first = self._maker + self._random.randrange(1, nodes - 1)
        victims = [(first + i) % nodes for i in range(failed)]
        self._lacking = set(range(nodes)) - set(victims)
        self._crash_ns = self.world.loop.now
        for victim in victims:
            self.world.crash(self.world.nodes[victim])

    def _observe(self, node: NodeId, verb: str, what: Any) -> None:
        missed = verb == "expire" and what == self._timer and self._crash_ns is not None
        if missed and self._expiry_ns is None:
            self._expiry_ns = self.world.loop.now
            self._silence_ns = self._expiry_ns - self._ordered_ns

    def _append(self, row: Row) -> None:
        if row.kind in (Kind.ORDER, Kind.TOKEN):
            self._ordered(row)
        elif row.kind == Kind.DELIVER and (row.m_src, row.m_seq) == self._request:
            self._lacking.discard(row.proc)
            if not self._lacking and self._end_ns is None:
                self._end_ns = row.t_ns

    def _ordered(self, row: Row) -> None:
        self._maker, self._ordered_ns = row.proc, row.t_ns
        if self._expiry_ns is None or self._request is not None or row.kind != Kind.ORDER:
            return
        if row.m_src is not None:
            self._request = row.m_src, row.m_seq
            self._again_ns = row.t_ns
