"""Invariants of engines on links that no single core can see: what their watches share."""

from collections import defaultdict
from typing import Any

from roundelay.core.effects import Deliver
from roundelay.core.ids import NodeId, Packet, View, ViewId
from roundelay.group.stack import Stack
from roundelay.links.engine import LinkEngine
from roundelay.links.messages import Data
from roundelay.sim.world import World

Member = tuple[ViewId, NodeId, int]
"""A node in one incarnation, in one view."""


class LinksWatch:
    """Raises AssertionError at the first breach.

    - A content is sent first by the member that it names, in the order of its numbers, and what is
      sent again under that number is the same.
    - Nobody has more packets under way that are not delivered at itself than its window allows.

    Subclasses look at contents when they are sent first, and at deliveries.
    """

    def __init__(self) -> None:
        self.contents: dict[tuple[ViewId, int, int], Any] = {}
        """By view, place of the sender and number: what was sent."""
        self._sent: dict[tuple[ViewId, int], int] = defaultdict(int)
        """By view and place of the sender: the number of its last content."""
        self._members: dict[ViewId, tuple[NodeId, ...]] = {}
        self._stopped = False

    def __call__(self, world: World, node: NodeId, verb: str, what: Any) -> None:
        if self._stopped:
            return
        if verb == "sends" and what.tag == "DATA":
            self._on_data(world, node, what.frame.origin.view, what.frame.message)
        elif verb == "delivers":
            self.on_delivery(world, node, what)
        elif verb == "installs":
            self._members.setdefault(what.id, what.members)
            self.on_install(world, node, what)
        elif verb == "restarts" and not isinstance(world.hosts[node].core, Stack):
            # In a static group a node that restarts numbers its contents anew, in the same view.
            self._stopped = True

    def members(self, world: World, view: ViewId) -> tuple[NodeId, ...]:
        """The members of a view, sorted; of a static group all nodes."""
        return self._members.get(view, world.nodes)

    def _on_data(self, world: World, node: NodeId, view: ViewId, data: Data[Any]) -> None:
        place = (view, data.sender, data.number)
        members = self.members(world, view)
        if place in self.contents:
            first = self.contents[place]
            assert first == data.content, f"{node} repeats {data}, which was {first}"
            return
        assert members[data.sender] == node, f"{node} repeats {data}, which nobody has sent"
        last = self._sent[view, data.sender]
        assert data.number == last + 1, f"{node} sends number {data.number} after {last}"
        self._sent[view, data.sender] = data.number
        self.contents[place] = data.content
        engine = engine_in(world, node, view)
        if engine is not None:
            window = engine.link.config.window_packets
            assert engine.own_waiting <= window, f"{node} has {engine.own_waiting} not delivered"
        self.on_first_sent(world, node, view, data)

    def on_first_sent(self, world: World, node: NodeId, view: ViewId, data: Data[Any]) -> None:
        """A member sends a content for the first time."""

    def on_delivery(self, world: World, node: NodeId, effect: Deliver) -> None:
        """A node delivers a packet."""

    def on_install(self, world: World, node: NodeId, view: View) -> None:
        """A node enters a view, perhaps a transitional one."""


class OneOrderWatch(LinksWatch):
    """Where every content has a place in one order, known when it is sent.

    - No two contents have one place, and whoever delivers at a place delivers what was sent for it.
    - Each node delivers in the order of places.
    - Nobody has delivered beyond the place of a content that is only now sent, except at the end
      of its view. So the order is also causal.
    - Nodes that go from one view to the same next one have delivered the same in the same order.
    """

    def __init__(self) -> None:
        super().__init__()
        self._packets: dict[tuple[ViewId, int], Packet | None] = {}
        """By view and place: what was sent for it."""
        self._logs: dict[Member, list[int]] = defaultdict(list)
        """Places at which a node delivered, in their order."""
        self._beyond: dict[ViewId, int] = defaultdict(lambda: -1)
        """By view: the last place at which a member delivered while the view lasted."""
        self._views: dict[tuple[NodeId, int], ViewId] = {}
        """By node and incarnation: the regular view that it is in."""
        self._passed: dict[tuple[ViewId, ViewId], list[int]] = {}
        """By view and the view after it: what was delivered in the first one."""

    def places(self, world: World, view: ViewId, data: Data[Any]) -> list[int]:
        """The places of a content that is sent first; several only if it has no packet."""
        raise NotImplementedError

    def on_first_sent(self, world: World, node: NodeId, view: ViewId, data: Data[Any]) -> None:
        packet: Packet | None = data.content.packet
        for place in self.places(world, view, data):
            assert (view, place) not in self._packets, f"{node} sends a second content for {place}"
            self._packets[view, place] = packet
            if packet is not None:
                beyond = self._beyond[view]
                assert place > beyond, f"{node} sends for {place}, and {beyond} was delivered"

    def on_delivery(self, world: World, node: NodeId, effect: Deliver) -> None:
        view, key = effect.view, effect.key
        assert view is not None, f"{node} delivers in no view"
        assert key is not None, f"{node} delivers without a place"
        log = self._logs[view, node, world.hosts[node].incarnation]
        assert not log or key[0] > log[-1], f"{node} delivers at {key[0]} after {log[-1]}"
        log.append(key[0])
        if len(self.members(world, view)) > 1:  # Else nothing was sent.
            sent = self._packets.get((view, key[0]))
            assert sent == effect.packet, f"{node} delivers {effect.packet} in place of {sent}"
        if engine_in(world, node, view) is not None:
            self._beyond[view] = max(self._beyond[view], key[0])

    def on_install(self, world: World, node: NodeId, view: View) -> None:
        if view.transitional:
            return
        life = (node, world.hosts[node].incarnation)
        left, self._views[life] = self._views.get(life), view.id
        if left is not None:
            log = self._logs.pop((left, *life), [])
            first = self._passed.setdefault((left, view.id), log)
            assert log == first, f"{node} leaves {left} with another log than its peers"


def engine_in(world: World, node: NodeId, view: ViewId) -> LinkEngine[Any] | None:
    """The engine of a node, if it runs in this view now, which has not begun to end."""
    host = world.hosts[node]
    engine = getattr(host.core, "engine", None) if host.alive else None
    if not isinstance(engine, LinkEngine) or not hasattr(engine, "view"):
        return None
    return engine if engine.view.id == view and not engine.link.frozen else None
