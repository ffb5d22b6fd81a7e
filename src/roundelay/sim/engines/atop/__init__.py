"""ATOP in the simulator: how slots are shared, its goals, its mishaps and its invariants."""

import re
from collections.abc import Mapping
from random import Random

from roundelay.sim.coverage import links
from roundelay.sim.engines.atop import goals
from roundelay.sim.engines.atop.mishaps import MISHAPS
from roundelay.sim.engines.atop.watch import AtopWatch
from roundelay.sim.simulation import Simulation, Tuning, packets_in

DEMAND_SLOT_NS = 4_000_000
"""How long a slot takes with `dummies=demand`, besides what frames take: the owner holds its dummy
back for 2 ms, and a lost one is repeated after 5 ms. Smaller: sound runs end too early."""


def _options(random: Random, nodes: int, static: bool) -> Mapping[str, object]:
    """Dummies are `cover`, or `demand`: with `switch` and `none`, nobody promises that the last
    messages of a quiet group are delivered. Books are kept over few packets and looked at often, so
    that weights change several times within a second."""
    drawn: dict[str, object] = {
        "hold_s": random.choice((None, None, 0.0005, 0.01)),
        "window_packets": random.choice((None, None, 16, 3)),
        "stall_s": random.choice((None, 0.3, 0.15)),
    }
    kind = random.choice(("changing", "changing", "changing", "default", "given", "demand"))
    if kind == "changing":
        drawn["factor"] = random.choice((1, 2, 8))
        drawn["period_s"] = random.choice((0.003, 0.02, 0.1))
        drawn["threshold_permille"] = random.choice((None, 0, 0))
        drawn["scale"] = random.choice((None, None, 1))
    elif kind == "given":
        names = [chr(ord("a") + i) for i in range(nodes)]
        named = random.sample(names, random.randint(1, nodes))
        weights = [f"{name}:{random.choice((1, 2, 5, 40))}" for name in sorted(named)]
        drawn["policy"] = "given"
        drawn["weights"] = ",".join(weights)
    elif kind == "demand":
        # One slot at a time: with large weights, a message of a slow sender would take seconds.
        drawn |= {"dummies": "demand", "hold_s": None, "scale": 1, "factor": 1, "period_s": 0.02}
    return drawn


def _sending_ns(scenario: str, rotation_ns: int) -> int:
    """With `dummies=demand`, a packet waits until as many slots as there are nodes, or twice that,
    were filled one after the other."""
    if "dummies=demand" not in scenario:
        return 0
    nodes = len(re.findall(r"^nodes (.+)$", scenario, re.MULTILINE)[0].split())
    return packets_in(scenario) * 2 * nodes * (DEMAND_SLOT_NS + rotation_ns // nodes)


SIMULATION = Simulation(
    goals=(*links.ALWAYS, *goals.ALWAYS),
    goals_in_views=(*links.IN_VIEWS, *goals.IN_VIEWS),
    watch=AtopWatch,
    mishaps=MISHAPS,
    options=_options,
    sending_ns=_sending_ns,
    # Few packets are explored: too few for a book-keeper. Given weights change the distribution in
    # every view, since the first member begins with them and the others have to hear of them.
    tuning=Tuning(
        "silence_s=0.04 policy=given weights=a:3",
        "37ms",
        repeating=frozenset({"heartbeat", "missing"}),
        noted=frozenset({"DATA"}),
    ),
)
