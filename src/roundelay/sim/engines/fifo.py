"""FIFO in the simulator: goals of links, windows that fill, and links that stall."""

from collections.abc import Mapping
from random import Random

from roundelay.sim.coverage import links
from roundelay.sim.simulation import Simulation, Tuning


def _options(random: Random, nodes: int, static: bool) -> Mapping[str, object]:
    return {
        "window_packets": random.choice((None, None, 16, 3)),
        "stall_s": random.choice((None, 0.3, 0.15)),
    }


SIMULATION = Simulation(
    goals=links.ALWAYS,
    goals_in_views=links.IN_VIEWS,
    options=_options,
    tuning=Tuning("silence_s=0.04", "37ms", repeating=frozenset({"heartbeat", "missing"})),
)
