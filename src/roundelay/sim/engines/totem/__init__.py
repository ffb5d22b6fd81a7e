"""Totem in the simulator: its goals, its invariants, and how long its window lets a load take."""

import re
from collections.abc import Mapping
from random import Random

from roundelay.group.body import PIECE_OVERHEAD_BYTES
from roundelay.protocols.totem import Config
from roundelay.sim.engines.totem import goals
from roundelay.sim.engines.totem.watch import TotemWatch
from roundelay.sim.simulation import Simulation, Tuning


def _options(random: Random, nodes: int, static: bool) -> Mapping[str, object]:
    window = random.choice((None, None, 16, 4))
    visit = random.choice((None, 2))
    deaf = random.choice((None, 40, 8))
    return {
        "window_packets": window,
        "visit_packets": visit,
        # On a static group nobody starts a ring again that was stopped for a deaf member.
        "fail_to_receive_visits": None if static else deaf,
        "accelerated": _apart(random).choice((None, None, 1, 3, 20)),
    }


def _apart(random: Random) -> Random:
    """Draws of its own, besides all others of a seed: those stay what they are without it."""
    apart = Random()
    apart.setstate(random.getstate())
    return Random(apart.getrandbits(64))


def _sending_ns(scenario: str, rotation_ns: int) -> int:
    return rotations(scenario) * rotation_ns


def rotations(text: str) -> int:
    """After how many rotations of a token without losses all that is submitted was sent.

    A rotation carries half a window at least, since a node keeps back for others at most every
    other time, or as much as one visit may, if one node alone has anything left.
    """

    def setting(name: str, default: int) -> int:
        found = re.search(rf" {name}=(\d+)", text)
        return int(found[1]) if found else default

    room = setting("packet_bytes", 0) - PIECE_OVERHEAD_BYTES
    loads = re.findall(r"^load messages=(\d+) rate=\S+(?: size=(\d+))?", text, re.MULTILINE)
    packets = sum(int(count) * -(-int(size or 0) // room) for count, size in loads)
    default = Config()
    window = setting("window_packets", default.window_packets)
    visit = setting("visit_packets", default.visit_packets)
    return packets // min(visit, -(-window // 2))


SIMULATION = Simulation(
    goals=goals.ALWAYS,
    goals_in_views=goals.IN_VIEWS,
    watch=TotemWatch,
    options=_options,
    sending_ns=_sending_ns,
    tuning=Tuning(
        "token_loss_s=0.025 token_retransmit_s=0.015",
        "17ms",
        repeating=frozenset({"token_retransmit", "token_hold"}),
        noted=frozenset({"TOKEN"}),
    ),
)
