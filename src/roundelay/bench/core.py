"""How many deliveries a second do the engines' cores make, with no network and no wire?

Five stacks of a static group in one process. Their effects are routed at once: a message goes to
its receivers as the object it is, in the order in which all were sent; nothing is encoded, traced
or lost. Every node always has messages waiting: as many are submitted as were delivered of its
own. What is timed is everything from `submit` to the delivery, this routing included.

Timers run in virtual time, which passes only when no message is under way. A core that is kept busy
needs none; one that does is waiting for something other than its processor, and the figures say
how often.

Engines take turns, round after round, so that a busy machine slows all of them alike; ratios are
taken within a round.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from statistics import median
from typing import Any

from roundelay.core.contract import Boot, Origin
from roundelay.core.effects import CancelTimer, Deliver, Effect, Receipt, Record, Send, SetTimer
from roundelay.core.ids import NodeId, Service, ViewId
from roundelay.group.engines import describe, engine_factory
from roundelay.group.packer import GroupConfig
from roundelay.group.static import StaticStack

NODES = ("a", "b", "c", "d", "e")
MESSAGE_BYTES = 100
_PAYLOAD = bytes(MESSAGE_BYTES)
BACKLOG_MESSAGES = 300
"""Messages that wait at each node at any time. Fewer: engines with large windows run dry. More:
memory."""
IDLE_EXPIRIES_MAX = 200
"""Timers in a row without a delivery after which an engine counts as stuck. Fewer: an engine that
waits for a few timers is given up. More: a stuck engine is found later."""
SAME_MESSAGES = 20
"""Messages of a node in a row that go to the same subset. Fewer: packets hold less."""
PEER = "totem"
"""The engine that the others are compared with."""

Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one engine did, once."""

    seconds: float
    events: int
    """Calls of a core: submissions, receptions and timers."""
    deliveries: int
    packets: int
    """Delivered, over all nodes."""
    expiries: int
    """Of timers, while nothing else was to be done."""
    complete: bool
    messages: float
    """Sent and delivered by all whom they are for."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One engine over all rounds; medians."""

    engine: str
    packing: bool
    events_per_s: float
    deliveries_per_s: float
    messages_per_s: float
    ns_per_delivery: float
    ratio: float
    """Its deliveries per second to totem's, in the same round."""
    event_ratio: float
    """The cost of one of its events to that of one of totem's, in the same round."""
    messages_per_packet: float
    expiries: int
    """Waits for a timer, in one run."""
    complete: bool
    """Whether all was delivered. Without it the engine does not run saturated on static groups,
    and its figures mean nothing."""


class Bench:
    """Five cores and what is under way between them."""

    def __init__(self, engine: str, messages: int, *, packing: bool, subset: float = 1.0) -> None:
        group = GroupConfig() if packing else GroupConfig(packet_messages=1)
        factory = engine_factory(engine)
        self.cores = {
            node: StaticStack(Boot("bench", node), NODES, factory, group) for node in NODES
        }
        self.events = 0
        self.deliveries = 0
        self.packets = 0
        self.expiries = 0
        self._others = {node: tuple(o for o in NODES if o != node) for node in NODES}
        self._under_way: deque[tuple[NodeId, Origin, Any]] = deque()
        self._origins: dict[tuple[NodeId, ViewId | None], Origin] = {}
        self._deadlines: dict[tuple[NodeId, str], float] = {}
        self._now_s = 0.0
        self._left = dict.fromkeys(NODES, messages)
        """Yet to be submitted, by node."""
        self._refill: list[tuple[NodeId, int]] = []
        self._subsets = _subsets(subset) if describe(engine).selective else [None]
        self._due = messages * len(NODES) * len(self._subsets[0] or NODES)

    def run(self) -> bool:
        """Until everything is delivered everywhere; False if it never will be."""
        for node, core in self.cores.items():
            self._perform(node, core.start())
        self._refill += [(node, BACKLOG_MESSAGES) for node in NODES]
        under_way, cores = self._under_way, self.cores
        idle = delivered = 0
        while self.deliveries < self._due:
            if self._refill:
                self._submit()
            elif under_way:
                node, origin, message = under_way.popleft()
                self.events += 1
                self._perform(node, cores[node].receive(origin, message))
            else:
                idle = idle + 1 if delivered == self.deliveries else 0
                delivered = self.deliveries
                if idle > IDLE_EXPIRIES_MAX or not self._deadlines:
                    return False
                self._expire()
        return True

    def _submit(self) -> None:
        refill, self._refill = self._refill, []
        payload = _PAYLOAD
        for node, wanted in refill:
            count = min(wanted, self._left[node])
            self._left[node] -= count
            self.events += count
            core, subsets = self.cores[node], self._subsets
            first = self._left[node]
            for number in range(first, first + count):
                to = subsets[number // SAME_MESSAGES % len(subsets)]
                core.accept(payload, Service.AGREED, to)
                self._perform(node, core.flush())

    def _expire(self) -> None:
        node, timer = min(self._deadlines, key=self._deadlines.__getitem__)
        self._now_s = max(self._now_s, self._deadlines.pop((node, timer)))
        self.events += 1
        self.expiries += 1
        self._perform(node, self.cores[node].expire(timer))

    def _perform(self, node: NodeId, effects: list[Effect[Any]]) -> None:
        for effect in effects:
            # By type, as drivers do it, so that little of what is timed is spent here.
            if type(effect) is Record:
                continue  # A row for a trace that nobody keeps.
            if type(effect) is Deliver:
                self.deliveries += effect.packet.span.count
                self.packets += 1
            elif type(effect) is Send:
                origin = self._origin(node, effect.view)
                receivers = self._others[node] if effect.to is None else (effect.to,)
                self._under_way += zip(receivers, repeat(origin), repeat(effect.message))
            elif type(effect) is SetTimer:
                self._deadlines[node, effect.timer] = self._now_s + effect.delay_s
            elif type(effect) is CancelTimer:
                self._deadlines.pop((node, effect.timer), None)
            elif type(effect) is Receipt:
                self._refill.append((node, effect.span.count))

    def _origin(self, node: NodeId, view: ViewId | None) -> Origin:
        origin = self._origins.get((node, view))
        if origin is None:
            origin = self._origins[node, view] = Origin("bench", node, 0, view)
        return origin


def _subsets(share: float) -> list[tuple[NodeId, ...] | None]:
    """Subsets of this share of the group, the nodes next to each other; all in turn."""
    size = max(1, round(share * len(NODES)))
    if size >= len(NODES):
        return [None]
    twice = NODES + NODES
    return [tuple(sorted(twice[at : at + size])) for at in range(len(NODES))]


def measure(engine: str, messages: int, *, packing: bool, subset: float = 1.0) -> Measurement:
    """Let each node send so many messages, to this share of the group if the engine can."""
    bench = Bench(engine, messages, packing=packing, subset=subset)
    start = time.process_time()
    complete = bench.run()
    seconds = time.process_time() - start
    return Measurement(
        seconds,
        bench.events,
        bench.deliveries,
        bench.packets,
        bench.expiries,
        complete,
        bench.deliveries / len(bench._subsets[0] or NODES),
    )


def compare(
    engines: Sequence[str], messages: int, rounds: int, report: Report, subset: float = 1.0
) -> list[Figures]:
    """Run these engines in turn, totem always among them."""
    turns = [PEER, *(engine for engine in engines if engine != PEER)]
    plan = [(engine, packing) for packing in (False, True) for engine in turns]
    runs: dict[tuple[str, bool], list[Measurement]] = {turn: [] for turn in plan}
    for i in range(rounds):
        for j, (engine, packing) in enumerate(plan):
            runs[engine, packing].append(measure(engine, messages, packing=packing, subset=subset))
            report(i * len(plan) + j + 1, rounds * len(plan))
    return [
        _figures(engine, packing, runs[engine, packing], runs[PEER, packing])
        for engine, packing in plan
    ]


def _figures(
    engine: str, packing: bool, runs: list[Measurement], peers: list[Measurement]
) -> Figures:
    rates = [run.deliveries / run.seconds for run in runs]
    others = [peer.deliveries / peer.seconds for peer in peers]
    costs = [run.seconds / run.events for run in runs]
    peer_costs = [peer.seconds / peer.events for peer in peers]
    last = runs[-1]
    return Figures(
        engine,
        packing,
        events_per_s=median(run.events / run.seconds for run in runs),
        deliveries_per_s=median(rates),
        messages_per_s=median(run.messages / run.seconds for run in runs),
        ns_per_delivery=median(1e9 / rate if rate else 0.0 for rate in rates),
        ratio=median(a / b if b else 0.0 for a, b in zip(rates, others, strict=True)),
        event_ratio=median(a / b for a, b in zip(costs, peer_costs, strict=True)),
        messages_per_packet=last.deliveries / last.packets if last.packets else 0.0,
        expiries=last.expiries,
        complete=all(run.complete for run in runs),
    )
