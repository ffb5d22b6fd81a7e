"""Losses on one channel, and what ST sends again, as in [TachikawaTakizawa], section 5.

    the paper                            here
    a cluster of n processes on one      `nodes` members; in runs of the engine a static group on
    high-speed channel                   the simulator's network `channel`, `medium=channel`
    L messages on the channel (RL)       a *round* of `length` messages; a run has many rounds
    d destinations on average            each message is for exactly d members, drawn by chance;
                                         the sender may be among them
    f, the probability that a message    every destination loses a message with probability f, or,
    is lost by one process               as the formulas have it (`thinned`), f d / n
    time 1 to insert a message, h to     the same
    sort h of them

The paper gives neither n nor L. There are two workloads.

`losses` draws which destination loses what, without any protocol, as the formulas do. A run has as
many rounds as give `losses` losses, about, so that small f are as exact as large ones.

`engine` is the engine itself under its safe rules. Only frames with packets are lost, to others and
to the sender itself; control frames are not. Each message is a packet of its own. Messages come one
after the other at `GAP_NS`, each from a member drawn by chance, and a round ends when all of its
messages are delivered.

*Missed* are messages that one of their destinations lost, or in runs of the engine one that is not
the sender: that one has what it sent. *Sent again* are messages of which a member asked another for
a copy and got one. What *go-back-n* would send again is counted on the same losses, in two ways.
The formula takes all messages of the round from the first missed one on. The text says more: who
lost a message removes all that follow it; if one of these is for another member as well, that
member removes it with all that follow it there, and so on. *Linked* counts the messages removed in
this way, and those missed.

*Cost* is the time to recover from the losses of a round in time for its messages: nothing if there
is no loss, 1/n if one destination lost one message, and else the number of messages that go-back-n
sends again by the formula.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil, log
from random import Random
from typing import Any, Literal

from roundelay.core.contract import Boot
from roundelay.core.effects import Kind
from roundelay.core.ids import NodeId
from roundelay.experiments.results import Measures
from roundelay.group.engines import engine_factory
from roundelay.group.packer import GroupConfig
from roundelay.group.static import StaticStack
from roundelay.protocols.st.messages import Again, Placed
from roundelay.sim.faults import Choices
from roundelay.sim.network import Channel
from roundelay.sim.transmission import Transmission
from roundelay.sim.world import World
from roundelay.trace.schema import Row

MS = 1_000_000
GAP_NS = MS // 5
"""From one message of a round to the next, in runs of the engine."""
PAYLOAD = bytes(100)
RATE_BPS = 1_000_000_000
OPTIONS = {"medium": "channel", "window_packets": "256", "repeat_s": "0.5"}
"""Nobody waits for a window. Nothing is asked for twice: only frames with packets are lost, and the
lists of a recovery take their time on the channel."""
GROUP = GroupConfig(packet_messages=1)
ROUND_NS_MAX = 1000 * MS
"""A round of the engine that takes longer is not coming to its end."""
ROUNDS_MAX = 10_000_000


@dataclass(frozen=True, slots=True)
class Cell:
    """The parameters of a run, without its seed."""

    workload: Literal["losses", "engine"]
    loss_share: float
    """f."""
    to_share: float
    """d/n: the share of the group that a message is for."""
    thinned: bool = True
    """Whether a destination loses a message with probability f d / n, as in the formulas, or f."""
    nodes: int = 10
    length: int = 100
    """L, messages of a round."""
    losses: int = 10_000
    """Of `losses`: about how many copies are lost in a run."""
    rounds: int = 0
    """Of `engine`: rounds of a run."""

    def __post_init__(self) -> None:
        if self.nodes < 2 or self.length < 1 or self.losses < 1:
            raise ValueError("nodes are 2 at least, length and losses 1 at least")
        if not 0 < self.loss_share < 1:
            raise ValueError("loss is a share between 0 and 1, like 0.01")
        if abs(self.destinations - self.to_share * self.nodes) > 1e-9 or self.destinations < 1:
            raise ValueError(
                f"to = {self.to_share:g} of {self.nodes} nodes is no whole number of members"
            )
        if (self.workload == "engine") is not bool(self.rounds):
            raise ValueError("rounds are for workload = 'engine', which needs them")
        if self.workload == "losses" and self.drawn_rounds > ROUNDS_MAX:
            raise ValueError(f"losses = {self.losses} take too long at such a small loss")

    @property
    def destinations(self) -> int:
        """d."""
        return round(self.to_share * self.nodes)

    @property
    def copy_loss(self) -> float:
        """The probability that one destination loses a message."""
        return self.loss_share * (self.to_share if self.thinned else 1.0)

    @property
    def drawn_rounds(self) -> int:
        """Of `losses`: rounds of a run."""
        return ceil(self.losses / (self.length * self.destinations * self.copy_loss))

    @property
    def cost(self) -> float:
        """About how many messages are looked at; those of the engine are dear."""
        if self.workload == "engine":
            return 200.0 * self.rounds * self.length * self.nodes
        return float(min(self.losses, self.drawn_rounds) * self.length)


def run(cell: Cell, seed: int) -> Measures:
    """What comes of a cell, by name. A pure function."""
    if cell.workload == "engine":
        return _EngineRun(cell, seed).measure()
    return _drawn(cell, Random(f"roundelay/{seed}/st/losses"))


@dataclass(slots=True)
class Sent:
    """A message on the channel."""

    to: tuple[int, ...]
    """The members that it is for."""
    losers: tuple[int, ...] = ()
    """Those of them that lost it."""


class Tally:
    """What the losses of several rounds mean."""

    def __init__(self, nodes: int, length: int) -> None:
        self._nodes = nodes
        self._length = length
        self.rounds = 0
        self._missed = 0
        self._go_back = 0
        self._linked = 0
        self._cost = 0.0
        self._single = 0
        self._clean = 0

    def skip(self, rounds: int) -> None:
        """Rounds without a loss."""
        self.rounds += rounds
        self._clean += rounds

    def add(self, rest: list[Sent]) -> None:
        """A round with a loss: its messages from the first one that was lost."""
        lost = [len(sent.losers) for sent in rest if sent.losers]
        self.rounds += 1
        self._missed += len(lost)
        self._go_back += len(rest)
        self._linked += linked(rest)
        single = lost == [1]
        self._single += single
        self._cost += 1 / self._nodes if single else len(rest)

    def measures(self) -> Measures:
        messages = self.rounds * self._length
        return {
            "missed_share": self._missed / messages,
            "goback_share": self._go_back / messages,
            "linked_share": self._linked / messages,
            "recovery_share": self._cost / messages,
            "single_share": self._single / self.rounds,
            "clean_share": self._clean / self.rounds,
        }


def linked(messages: list[Sent]) -> int:
    """How many of these go-back-n sends again, as one removal leads to the next."""
    removing: set[int] = set()
    count = 0
    for sent in messages:
        removed = not removing.isdisjoint(sent.to)
        if removed:
            removing.update(sent.to)
        removing.update(sent.losers)
        count += removed or bool(sent.losers)
    return count


# Losses without a protocol


def _drawn(cell: Cell, random: Random) -> Measures:
    tally = Tally(cell.nodes, cell.length)
    members = range(cell.nodes)
    everybody = tuple(members)
    for number, lost in _rounds(cell, random):
        tally.skip(number - tally.rounds)
        rest = []
        for message in range(min(lost), cell.length):
            all_ = cell.destinations == cell.nodes
            to = everybody if all_ else tuple(random.sample(members, cell.destinations))
            rest.append(Sent(to, tuple(to[place] for place in lost.get(message, ()))))
        tally.add(rest)
    tally.skip(cell.drawn_rounds - tally.rounds)
    return tally.measures()


def _rounds(cell: Cell, random: Random) -> Iterator[tuple[int, Mapping[int, list[int]]]]:
    """Rounds with losses: the number of the round, and by message which of its destinations lost
    it. From one loss to the next is a geometric number of copies."""
    d, copies = cell.destinations, cell.destinations * cell.length
    scale = log(1 - cell.copy_loss)
    number, lost = -1, dict[int, list[int]]()
    at = -1
    while True:
        at += 1 + int(log(1 - random.random()) / scale)
        if at >= cell.drawn_rounds * copies:
            break
        if at // copies != number:
            if lost:
                yield number, lost
            number, lost = at // copies, {}
        lost.setdefault(at % copies // d, []).append(at % d)
    if lost:
        yield number, lost


# The engine


class _EngineRun:
    """A group that runs ST, and what is lost and sent again in it."""

    def __init__(self, cell: Cell, seed: int) -> None:
        self._cell = cell
        self._names = tuple(f"{i:03}" for i in range(cell.nodes))
        self._number = {name: number for number, name in enumerate(self._names)}
        factory = engine_factory("st", OPTIONS)
        self.world = World(
            self._names,
            partial(_stack, members=self._names, factory=factory),
            Channel(rate_bps=RATE_BPS),
            self._append,
            choices=Choices(seed, record=False),
            net_rows=False,
        )
        self.world.filters.append(self._loses)
        self._random = Random(f"roundelay/{seed}/st/engine")
        self._order: list[Sent] = []
        """What was put on the channel in this round, in its order."""
        self._frame = (-1, "")
        """The last frame that was put on the channel: its number, and its sender."""
        self._left = 0
        """Deliveries of this round that are still to come."""
        self._again: set[tuple[NodeId, int]] = set()
        """Messages that were sent again."""
        self._copies = 0
        self._needed = 0
        """Messages that a destination other than the sender lost."""

    def measure(self) -> Measures:
        tally = Tally(self._cell.nodes, self._cell.length)
        self.world.start()
        self.world.run(50 * MS)
        for _ in range(self._cell.rounds):
            self._play_round()
            first = next((k for k, sent in enumerate(self._order) if sent.losers), None)
            if first is None:
                tally.skip(1)
            else:
                tally.add(self._order[first:])
        messages = tally.rounds * self._cell.length
        return tally.measures() | {
            "needed_share": self._needed / messages,
            "again_share": len(self._again) / messages,
            "again_copies_share": self._copies / messages,
            "recoveries_per_round": self._recoveries() / tally.rounds,
        }

    def _play_round(self) -> None:
        cell, loop = self._cell, self.world.loop
        self._order = []
        self._left = cell.length * cell.destinations
        for number in range(cell.length):
            to = sorted(self._random.sample(range(cell.nodes), cell.destinations))
            names = None if len(to) == cell.nodes else tuple(self._names[i] for i in to)
            sender = self._random.choice(self._names)
            loop.at(loop.now + number * GAP_NS, self._submit, (sender, names))
        end = loop.now + cell.length * GAP_NS + ROUND_NS_MAX
        while self._left:
            if loop.now >= end:
                raise RuntimeError(f"{self._left} deliveries of a round never came")
            self.world.run(5 * MS)

    def _submit(self, message: tuple[NodeId, tuple[NodeId, ...] | None]) -> None:
        sender, to = message
        self.world.submit(sender, PAYLOAD, destinations=to)

    def _append(self, row: Row) -> None:
        if row.kind == Kind.DELIVER:
            self._left -= 1

    def _loses(self, sent: Transmission, receiver: NodeId) -> bool:
        """Whether a copy is lost. Asked of every copy, frame by frame."""
        if sent.tag == "RET":
            self._sent_again(sent.frame.message)
        if sent.tag != "DT":
            return False
        lost = self._random.random() < self._cell.copy_loss
        message = sent.frame.message
        assert isinstance(message, Placed)
        packet = message.transmission.packet
        assert packet is not None
        if (sent.number, sent.sender) != self._frame:
            self._frame = (sent.number, sent.sender)
            to = packet.destinations or self._names
            self._order.append(Sent(tuple(self._number[name] for name in to)))
        on_channel, member = self._order[-1], self._number[receiver]
        if lost and member in on_channel.to:
            if receiver != sent.sender and not set(on_channel.losers) - {self._number[sent.sender]}:
                self._needed += 1
            on_channel.losers += (member,)
        return lost

    def _sent_again(self, message: object) -> None:
        assert isinstance(message, Again)
        self._again.add((message.packet.span.node, message.packet.span.first))
        self._copies += 1

    def _recoveries(self) -> int:
        core: Any = self.world.hosts[self._names[0]].core
        return int(core.engine.logs.epoch)


def _stack(boot: Boot, *, members: tuple[NodeId, ...], factory: Any) -> StaticStack:
    return StaticStack(boot, members, factory, GROUP)
