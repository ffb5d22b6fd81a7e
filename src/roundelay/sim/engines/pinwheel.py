"""Pinwheel in the simulator: as DTP, and with batches of several packets."""

from collections.abc import Mapping
from random import Random

from roundelay.sim.engines.dtp import goals
from roundelay.sim.engines.dtp.family import options, simulation


def _options(random: Random, nodes: int, static: bool) -> Mapping[str, object]:
    return {
        **options(random, nodes, static),
        "batch_packets": random.choice((None, 2)),
    }


SIMULATION = simulation(goals.PINWHEEL, _options)
