"""FC in the simulator: its goals, its mishaps and its invariants."""

from collections.abc import Mapping
from random import Random

from roundelay.sim.engines.fc import goals
from roundelay.sim.engines.fc.mishaps import MISHAPS
from roundelay.sim.engines.fc.static import STATIC_NODES_MIN, draw
from roundelay.sim.engines.fc.watch import FcWatch
from roundelay.sim.simulation import Simulation, Tuning

TIMES: tuple[Mapping[str, object], ...] = (
    {},
    {},
    {"wait_s": 0.01, "stagger_s": 0.001, "idle_s": 0.002, "repeat_s": 0.002, "silence_s": 0.06},
    {"wait_s": 0.04, "stagger_s": 0.005, "idle_s": 0.02, "repeat_s": 0.01},
)
"""Timers: those of a LAN, shorter ones, and a token that rests long."""


def _options(random: Random, nodes: int, static: bool) -> Mapping[str, object]:
    """Buffers are small where views end: a static group goes on without whoever is behind."""
    drawn = {
        **random.choice(TIMES),
        "batch_packets": random.choice((None, None, 1, 3)),
        "window_packets": random.choice((None, None, 16, 2)),
    }
    if not static and random.random() < 0.3:
        drawn |= {"batch_packets": 3, "window_packets": 4, "buffer_packets": 48}
    return drawn


SIMULATION = Simulation(
    goals=goals.ALWAYS,
    goals_in_views=goals.IN_VIEWS,
    goals_of_rules={"paper": goals.LITERAL, "link": goals.LITERAL},
    watch=FcWatch,
    mishaps=MISHAPS,
    options=_options,
    static_nodes_min=STATIC_NODES_MIN,
    conditions=draw,
    carriers=("REQ", "DEC"),
    # The token rests long, so that few frames go round a quiet group.
    tuning=Tuning(
        "wait_s=0.012 stagger_s=0.001 idle_s=0.006 repeat_s=0.004 silence_s=0.03",
        "27ms",
        repeating=frozenset({"tick"}),
        noted=frozenset({"DEC"}),
    ),
)
