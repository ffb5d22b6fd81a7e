"""What the simulator knows of DTP, CM and Pinwheel alike."""

from collections.abc import Mapping, Sequence
from random import Random

from roundelay.sim.engines.dtp import goals
from roundelay.sim.engines.dtp.mishaps import MISHAPS
from roundelay.sim.engines.dtp.watch import DtpWatch
from roundelay.sim.simulation import Detector, Options, Simulation

LOAD_MESSAGES_MAX = 60
PACKET_BYTES_MIN = 400
"""Less to do than other engines are given: each transfer of the token orders one packet, or what
waits."""


def options(random: Random, nodes: int, static: bool) -> Mapping[str, object]:
    resilience = random.choice((0, nodes // 2, nodes - 1))
    silence_s, ack_repeat_s, watch_s = random.choice(
        ((None, None, None), (0.02, 0.05, 0.5), (0.005, 0.03, 0.25))
    )
    return {
        "resilience": resilience,
        "silence_s": silence_s,
        "ack_repeat_s": ack_repeat_s,
        "watch_s": watch_s,
        "attempts": random.choice((None, 3)),
        "window_packets": random.choice((None, None, 2, 8)),
    }


def simulation(own: Sequence[Detector] = (), options: Options = options) -> Simulation:
    """The simulation of one of them, with goals of its own and perhaps other options."""
    return Simulation(
        goals=(*goals.ALWAYS, *own),
        goals_in_views=goals.IN_VIEWS,
        watch=DtpWatch,
        mishaps=MISHAPS,
        options=options,
        carriers=("MSG", "ACK"),
        load_messages_max=LOAD_MESSAGES_MAX,
        packet_bytes_min=PACKET_BYTES_MIN,
    )
