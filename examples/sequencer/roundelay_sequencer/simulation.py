"""The sequencer in the simulator: what must sometimes happen, and what must never."""

from collections import defaultdict
from collections.abc import Mapping
from random import Random
from typing import Any

from roundelay.core.ids import NodeId, View, ViewId
from roundelay.sim.coverage import links
from roundelay.sim.coverage.evidence import Evidence, Life, life, when
from roundelay.sim.simulation import Simulation, Tuning
from roundelay.sim.world import World
from roundelay_sequencer.messages import Order


def several_in_one(run: Evidence) -> bool:
    """An order gives several packets their numbers."""
    orders = (sent.message.content for sent in run.sent("DATA"))
    return any(isinstance(order, Order) and len(order.senders) > 1 for order in orders)


def order_before_packet(run: Evidence) -> bool:
    """An order arrives before a packet that it gives a number."""
    packets: dict[tuple[Life, ViewId | None, int], int] = defaultdict(int)
    ordered: dict[tuple[Life, ViewId | None, int], int] = defaultdict(int)
    told: set[tuple[Life, ViewId | None, int]] = set()
    for row in sorted((*run.kinds["arrive"], *run.kinds["send"]), key=when):
        if row.tag != "DATA":
            continue
        sent = run.frame(row)
        m, where = sent.message, (life(row), sent.view)
        if not isinstance(m.content, Order):
            packets[*where, m.sender] = max(packets[*where, m.sender], m.number)
        elif (*where, m.number) not in told:
            told.add((*where, m.number))
            for sender in m.content.senders:
                ordered[*where, sender] += 1
                if sender and ordered[*where, sender] > packets[*where, sender]:
                    return True
    return False


def delivered_without_a_number(run: Evidence) -> bool:
    """A view ends, and a packet that has no number where it is known is delivered without one."""
    return any(delivery.place is None for delivery in run.deliveries)


class SequencerWatch:
    """Raises AssertionError at the first breach: in a view, orders come from its smallest member,
    and one is never followed by another of the same number."""

    def __init__(self) -> None:
        self._orders: dict[tuple[ViewId, int], Order] = {}
        self._members: dict[ViewId, tuple[NodeId, ...]] = {}

    def __call__(self, world: World, node: NodeId, verb: str, what: Any) -> None:
        if verb == "installs":
            view: View = what
            self._members[view.id] = view.members
        elif verb == "sends" and what.tag == "DATA":
            m, view_id = what.frame.message, what.frame.origin.view
            if isinstance(m.content, Order):
                first = self._orders.setdefault((view_id, m.number), m.content)
                assert first == m.content, f"order {m.number} of {view_id} is {first}, {m.content}"
                members = self._members.get(view_id, world.nodes)
                again = what.to is not None
                assert again or node == members[0], f"{node} orders in {view_id}"


def _options(random: Random, nodes: int, static: bool) -> Mapping[str, object]:
    return {
        "window_packets": random.choice((None, None, 16, 3)),
        "order_packets": random.choice((None, None, 2)),
        "stall_s": random.choice((None, 0.3, 0.15)),
    }


SIMULATION = Simulation(
    goals=(*links.ALWAYS, several_in_one, order_before_packet),
    goals_in_views=(*links.IN_VIEWS, delivered_without_a_number),
    watch=SequencerWatch,
    options=_options,
    tuning=Tuning("silence_s=0.04", "37ms", repeating=frozenset({"heartbeat", "missing"})),
)
