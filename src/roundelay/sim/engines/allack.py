"""All-Ack in the simulator: equal stamps, null messages, and that places follow from stamps."""

from collections import defaultdict
from collections.abc import Mapping
from random import Random
from typing import Any

from roundelay.core.ids import ViewId
from roundelay.links.messages import Data
from roundelay.sim.coverage import links
from roundelay.sim.coverage.evidence import Evidence
from roundelay.sim.engines.links_watch import OneOrderWatch
from roundelay.sim.simulation import Simulation, Tuning
from roundelay.sim.world import World


class AllAckWatch(OneOrderWatch):
    """Raises AssertionError at the first breach: of what every one order keeps, and of this.

    - A sender's stamps grow, and a packet is delivered at the place that its stamp gives.
    """

    def __init__(self) -> None:
        super().__init__()
        self._clocks: dict[tuple[ViewId, int], int] = defaultdict(int)
        """By view and place of the sender: its last stamp."""

    def places(self, world: World, view: ViewId, data: Data[Any]) -> list[int]:
        clock: int = data.content.clock
        last = self._clocks[view, data.sender]
        assert clock > last, f"a stamp of {clock} follows {last}"
        self._clocks[view, data.sender] = clock
        return [clock * len(self.members(world, view)) + data.sender]


def equal_stamps(run: Evidence) -> bool:
    """Two packets have equal stamps, and are delivered in the order of their senders."""
    places: dict[tuple[ViewId, int], set[int]] = defaultdict(set)
    for delivery in run.deliveries:
        if delivery.ordered is not None and delivery.place is not None:
            size = len(run.members(delivery.ordered))
            places[delivery.ordered, delivery.place // size].add(delivery.place)
    return any(len(equal) > 1 for equal in places.values())


def null_sent(run: Evidence) -> bool:
    """A member that has nothing to send tells its clock, since others wait for it."""
    return any(sent.message.content.packet is None for sent in run.sent("DATA"))


def delivered_unheard(run: Evidence) -> bool:
    """A view ends, and a packet is delivered though some member was not heard behind it."""
    last: dict[tuple[ViewId | None, int], int] = defaultdict(int)
    for sent in run.sent("DATA"):
        key = sent.view, sent.message.sender
        last[key] = max(last[key], sent.message.content.clock)
    for delivery in run.deliveries:
        if delivery.ordered is not None and delivery.place is not None:
            members = len(run.members(delivery.ordered))
            clock, sender = divmod(delivery.place, members)
            words = [last[delivery.ordered, member] for member in range(members)]
            if members > 1 and any(w < clock for i, w in enumerate(words) if i != sender):
                return True
    return False


def _options(random: Random, nodes: int, static: bool) -> Mapping[str, object]:
    """Null messages are always sent: without them, nobody promises that the last messages of a
    quiet group are delivered."""
    return {
        "hold_s": random.choice((None, None, 0.0005, 0.01)),
        "window_packets": random.choice((None, None, 16, 3)),
        "stall_s": random.choice((None, 0.3, 0.15)),
    }


ALWAYS = (equal_stamps, null_sent)
IN_VIEWS = (delivered_unheard,)

SIMULATION = Simulation(
    goals=(*links.ALWAYS, *ALWAYS),
    goals_in_views=(*links.IN_VIEWS, *IN_VIEWS),
    watch=AllAckWatch,
    options=_options,
    tuning=Tuning(
        "silence_s=0.04",
        "37ms",
        repeating=frozenset({"heartbeat", "missing"}),
        noted=frozenset({"DATA"}),
    ),
)
