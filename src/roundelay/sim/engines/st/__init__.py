"""ST in the simulator: its options, its channel, its goals, its mishaps and its invariants."""

import re
from collections.abc import Mapping
from random import Random

from roundelay.sim.draft import Mishap
from roundelay.sim.engines.st import goals, mishaps
from roundelay.sim.engines.st.watch import StWatch
from roundelay.sim.mishaps import MISHAPS as EVERY
from roundelay.sim.simulation import Conditions, Simulation, Tuning, packets_in

OUTLASTED = ("partition", "one-way", "pause", "slow", "drift", "deaf")
"""Mishaps of every engine that a static group outlasts: nobody is gone for good."""

RATES = ("loss", "duplicate", "reorder", "spike", "corrupt")

CHANNEL_SHARE = 0.3
"""How often the network itself is the one channel."""
RECEIVERS = ("", "", " buffer=20 drain=60us", " buffer=6 drain=30us")
"""Receivers on a channel: as fast as it is, or slower than a burst."""
LOSSES = (0, 0, 1, 5, 15, 30)
"""Shares of all frames on a channel that a receiver misses, in percent."""

PACKET_NS = 4_000_000
"""How long a packet takes with a window of one, besides what frames take: acknowledgments wait for
up to 1 ms, and a recovery now and then takes several times as long. Smaller: sound runs end too
early."""


def _options(random: Random, nodes: int, static: bool) -> Mapping[str, object]:
    """Windows and buffers, default or small, and how soon members acknowledge."""
    return {
        "window_packets": random.choice((None, None, 8, 2)),
        "ack_packets": random.choice((None, None, 1, 3)),
        "buffer_packets": random.choice((None, None, 24, 4)),
        "ack_s": random.choice((None, None, 0.0002, 0.004)),
        "silence_s": random.choice((None, None, 0.06)),
    }


def _static(random: Random, nodes: list[str], rules: str) -> Conditions:
    known = {name: EVERY[name] for name in OUTLASTED} | mishaps.ALWAYS
    return _channel(random, known) or Conditions(rates=RATES, mishaps=known)


def _views(random: Random, nodes: list[str], rules: str) -> Conditions | None:
    return _channel(random, {**EVERY, **mishaps.MISHAPS})


def _channel(random: Random, known: Mapping[str, Mishap]) -> Conditions | None:
    """The network is one channel, in some runs. What reorders is no fault of a channel."""
    rate_mbit, receivers = random.choice((100, 100, 20)), random.choice(RECEIVERS)
    loss, corrupt = random.choice(LOSSES), random.choice((0, 0, 1))
    if random.random() >= CHANNEL_SHARE:
        return None
    return Conditions(
        rates=(),
        options={"medium": "channel"},
        network=f"network channel rate={rate_mbit}Mbit{receivers}",
        latency_ns=20_000,
        faults=f"loss={loss}% corrupt={corrupt}%",
        mishaps=known,
    )


def _sending_ns(scenario: str, rotation_ns: int) -> int:
    """With a small window or buffer each packet waits until those before it were heard by all."""
    small = re.findall(r"window_packets=2|buffer_packets=4", scenario)
    return packets_in(scenario) * (PACKET_NS + rotation_ns) // (1 if small else 4)


SIMULATION = Simulation(
    goals=goals.ALWAYS,
    goals_in_views=goals.IN_VIEWS,
    watch=StWatch,
    mishaps=mishaps.MISHAPS,
    options=_options,
    conditions=_static,
    conditions_in_views=_views,
    subsets=(0, 40, 80, 100),
    carriers=("DT", "RR"),
    load_messages_max=100,
    sending_ns=_sending_ns,
    tuning=Tuning(
        "silence_s=0.04",
        "38ms",
        repeating=frozenset({"ready", "repeat"}),
        noted=frozenset({"DT", "PAK"}),
    ),
)
