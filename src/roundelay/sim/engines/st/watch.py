"""Invariants of ST over all hosts: one order of all packets, and what members believe of others."""

from collections import defaultdict
from typing import Any

from roundelay.core.effects import Deliver
from roundelay.core.ids import NodeId, Packet, ViewId
from roundelay.group.stack import Stack
from roundelay.protocols.st.member import StMember
from roundelay.protocols.st.messages import Done, ListPart, Name, Reset, Transmission, Want
from roundelay.sim.engines.st.order import GrowingOrder
from roundelay.sim.world import World

Life = tuple[ViewId, NodeId, int]
"""A node in one incarnation, in one view."""

CHATTER = 4
"""How many frames, in units of all lists to everybody, belong to a recovery between two
repetitions; frames may be doubled on their way, and so are the answers. More would be answers to
answers, which never end."""

FASTEST = 0.8
"""How long a timer may take, of the time that it was set to."""

SECOND_NS = 1_000_000_000


class StWatch:
    """Raises AssertionError at the first breach. Numbers are those of the specification.

    - I1, I6: a member delivers, of each source, the packets that are for it, in their order, each
      once, and none that is not for it.
    - I2, I3, I4: as long as the view lasts there is one order of all packets, which agrees with the
      order in which each member delivers, and in which a packet comes after what its source had
      delivered or sent before.
    - I7: what a member expects, and what it knows of others, never goes back within an epoch.
    - I8: nothing is pre-acknowledged that is not expected no more, nor delivered that is not
      pre-acknowledged; nobody is believed to have said more than is true, and what is delivered
      outside of a recovery was pre-acknowledged by all whom it is for.
    - I9: a member makes one list of an epoch, whoever hands it out.
    - I11: nobody has more packets under way than its window allows, or more undelivered ones than
      it has room for, and one of each source.
    - A recovery takes a bounded number of frames.
    """

    def __init__(self) -> None:
        self._sent: dict[tuple[ViewId, int], list[tuple[tuple[int, ...], Packet]]] = defaultdict(
            list
        )
        """By view and source: its packets in their order, and whom they are for."""
        self._orders: dict[ViewId, GrowingOrder[Name]] = defaultdict(GrowingOrder)
        self._last: dict[Life, Name] = {}
        """What was delivered last, as long as the view lasted."""
        self._next: dict[tuple[Life, int], int] = defaultdict(int)
        """By member and source: how many of its packets are behind it."""
        self._logs: dict[Life, tuple[int, list[int], list[tuple[int, ...]]]] = {}
        """What may only grow within an epoch, as it was at the last look."""
        self._lists: dict[tuple[ViewId, int, int, int], bytes] = {}
        self._chatter: dict[tuple[Life, int], int] = defaultdict(int)
        """By member and epoch: frames that it has sent to end it."""
        self._began: dict[tuple[ViewId, int], int] = {}
        """By epoch: when the first of them was sent."""
        self._parts: dict[ViewId, int] = defaultdict(lambda: 1)
        self._members: dict[ViewId, tuple[NodeId, ...]] = {}
        self._stopped = False

    def __call__(self, world: World, node: NodeId, verb: str, what: Any) -> None:
        if self._stopped:
            return
        if verb == "sends":
            view = what.frame.origin.view
            engine = _engine(world, node, view)
            if engine is not None:
                self._on_frame(world, engine, what.tag, what.frame.message)
                self._look(world, engine)
        elif verb == "delivers":
            self._on_delivery(world, node, what)
        elif verb == "installs":
            self._members.setdefault(what.id, what.members)
        elif verb == "restarts" and not isinstance(world.hosts[node].core, Stack):
            # In a static group a node that restarts numbers its packets anew, in the same view.
            self._stopped = True

    @staticmethod
    def _literal(world: World) -> bool:
        """Whether the group runs under the rules of the paper, which keep nothing of this."""
        engines = (getattr(host.core, "engine", None) for host in world.hosts.values())
        return any(isinstance(e, StMember) and e.config.rules != "safe" for e in engines)

    # What is sent

    def _on_frame(self, world: World, engine: StMember, tag: str, message: Any) -> None:
        if tag in ("DT", "RR", "UPDT", "UPRR"):
            t: Transmission = message.transmission
            if t.source == engine.me:
                self._on_transmission(world, engine, t)
            return
        if isinstance(message, ListPart):
            key = (engine.view.id, message.epoch, message.member, message.part)
            first = self._lists.setdefault(key, message.data)
            assert first == message.data, (
                f"{engine.node} tells another list of member {message.member + 1} than there was"
            )
            self._parts[engine.view.id] = max(self._parts[engine.view.id], message.parts)
        if isinstance(message, ListPart | Reset | Want | Done):
            self._on_chatter(world, engine, message.epoch)

    def _on_transmission(self, world: World, engine: StMember, t: Transmission) -> None:
        node, view = engine.node, engine.view.id
        for h in range(engine.size):
            assert t.done[h] <= t.pack[h] <= t.ack[h], f"{node} says {t} {t.pack} {t.done}"
        if t.packet is None:
            return
        sent = self._sent[view, t.source]
        if t.number <= len(sent):
            return  # It is sent again.
        assert t.number == len(sent) + 1, f"{node} sends number {t.number} after {len(sent)}"
        to = _places(engine, t.packet)
        assert to, f"{node} sends a packet for nobody"
        sent.append((to, t.packet))
        own = engine.logs.next - engine.logs.least()
        window = engine.config.window_packets
        assert own <= window, f"{node} has {own} packets under way"
        name, order = Name(t.source, t.number), self._orders[view]
        order.add(name)
        if t.number > 1:
            order.put(Name(t.source, t.number - 1), name)
        life = (view, node, world.hosts[node].incarnation)
        if life in self._last:
            order.put(self._last[life], name)

    def _on_chatter(self, world: World, engine: StMember, epoch: int) -> None:
        life = (engine.view.id, engine.node, world.hosts[engine.node].incarnation)
        self._chatter[life, epoch] += 1
        began = self._began.setdefault((engine.view.id, epoch), world.loop.now)
        repeats = (world.loop.now - began) / (engine.config.repeat_s * SECOND_NS * FASTEST)
        most = CHATTER * engine.size**2 * self._parts[engine.view.id] * (2 + int(repeats))
        count = self._chatter[life, epoch]
        assert count < most, f"{engine.node} sends {count} frames to end epoch {epoch}"

    # What is delivered

    def _on_delivery(self, world: World, node: NodeId, effect: Deliver) -> None:
        view, incarnation = effect.view, world.hosts[node].incarnation
        assert view is not None, f"{node} delivers in no view"
        members = self._members.get(view, world.nodes)
        if len(members) == 1 or self._literal(world):
            return
        me, source = members.index(node), members.index(effect.packet.span.node)
        life = (view, node, incarnation)
        sent = self._sent[view, source]
        number = self._next[life, source]
        while number < len(sent) and me not in sent[number][0]:
            number += 1
        assert number < len(sent), f"{node} delivers {effect.packet}, which nobody sent to it"
        to, packet = sent[number]
        assert packet == effect.packet, f"{node} delivers {effect.packet}, and {packet} is due"
        self._next[life, source] = number + 1
        engine = _engine(world, node, view)
        if engine is None or engine.frozen:
            return  # The end of a view: only those who move on together agree.
        name = Name(source, number + 1)
        if life in self._last:
            self._orders[view].put(self._last[life], name)
        self._last[life] = name
        self._check_beliefs(world, engine)
        if name in engine.logs.known:  # Not the end of a recovery, which forgets everything.
            for other in _engines(world, view):
                if other.me in to and other.logs.epoch == engine.logs.epoch:
                    pack = other.logs.pack()[source]
                    assert pack > number + 1, f"{node} delivers {name}, not agreed at {other.node}"

    # What members have

    def _look(self, world: World, engine: StMember) -> None:
        logs = engine.logs
        life = (engine.view.id, engine.node, world.hosts[engine.node].incarnation)
        now = (
            logs.epoch,
            [*logs.expected, *logs.got, *logs.seen],
            [*logs.acks, *logs.packs, *logs.dones],
        )
        before = self._logs.get(life, now)
        assert before[0] <= now[0], f"{engine.node} goes back to epoch {now[0]}"
        if before[0] == now[0]:
            assert all(map(int.__le__, before[1], now[1])), (
                f"{engine.node} expected {before[1]}, and now {now[1]}"
            )
            for old, new in zip(before[2], now[2], strict=True):
                assert old is new or all(map(int.__le__, old, new)), (
                    f"{engine.node} knew {old} of others, and now {new}"
                )
        self._logs[life] = now
        most = engine.config.buffer_packets + engine.size
        assert logs.waiting <= most, f"{engine.node} has {logs.waiting} undelivered packets"

    def _check_beliefs(self, world: World, engine: StMember) -> None:
        """Nobody is believed to have said more than is true."""
        for other in _engines(world, engine.view.id):
            if other is engine or other.logs.epoch != engine.logs.epoch:
                continue
            logs, k = other.logs, other.me
            for believed, is_so in (
                (engine.logs.acks[k], logs.expected),
                (engine.logs.packs[k], logs.pack()),
                (engine.logs.dones[k], logs.done()),
            ):
                assert all(map(int.__le__, believed, is_so)), (
                    f"{engine.node} believes {believed} of {other.node}, and it is {is_so}"
                )


def _places(engine: StMember, packet: Packet) -> tuple[int, ...]:
    members = engine.view.members
    if packet.destinations is None:
        return tuple(range(len(members)))
    return tuple(i for i, member in enumerate(members) if member in packet.destinations)


def _engines(world: World, view: ViewId) -> list[StMember]:
    found = (_engine(world, node, view) for node in world.nodes)
    return [engine for engine in found if engine is not None]


def _engine(world: World, node: NodeId, view: ViewId | None) -> StMember | None:
    """The engine of a node, if it runs in this view now, with others, under rules that are
    watched."""
    host = world.hosts[node]
    engine = getattr(host.core, "engine", None) if host.alive else None
    if not isinstance(engine, StMember) or not hasattr(engine, "view"):
        return None
    if engine.config.rules != "safe" or engine.size == 1:
        return None
    return engine if engine.view.id == view else None
