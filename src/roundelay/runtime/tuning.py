"""Limits and timers of the stack, from what is known of the machine and the network.

The defaults of engines are for an undisturbed LAN. Real nodes share their processors with others,
so all timers are scaled until silence is noticed after the timeout that was asked for.
"""

import dataclasses
import importlib
from typing import Any

from roundelay.group.engines import MODULES
from roundelay.membership.config import MembershipConfig
from roundelay.runtime.settings import Settings

LAN_TIMEOUT_S = 0.100
"""The timeout that the defaults of membership go with."""

ALARMS = ("token_loss_s", "watch_s", "silence_s")
"""How engines call the timer that makes silence a failure; the first that an engine has."""

PROMPT_S = 0.008
"""Shorter timers of an engine are answers, such as acknowledgments: they are not scaled."""

MERGE_DETECT_S_MAX = 0.3

HOLD_SHARE = 0.7
"""Of the time after which a token is sent again, for which that of an idle ring rests: to wake a
process up costs far more than a hop in the simulator."""

WINDOWS = ((1472, 100, 300), (16_000, 40, 120), (65_507, 20, 60))
"""Datagrams of up to so many bytes: packets in one visit, packets of all in one rotation."""

BUFFER_BYTES = 32 * 1024 * 1024
"""Of packets that a ring keeps for the slowest of its members, before it waits for that one."""

HEADERS_BYTES = 160
"""Of a frame and a packet, wrapped up once more by recovery, without the names in them."""


def membership_config(timeout_s: float) -> MembershipConfig:
    """Membership's timers for this timeout; pauses of expelled nodes stay as they are."""
    stretch = timeout_s / LAN_TIMEOUT_S
    lan = MembershipConfig()
    return dataclasses.replace(
        lan,
        join_s=lan.join_s * stretch,
        consensus_s=lan.consensus_s * stretch,
        ring_loss_s=lan.ring_loss_s * stretch,
        ring_retransmit_s=lan.ring_retransmit_s * stretch,
        settle_s=lan.settle_s * stretch,
        merge_detect_s=min(lan.merge_detect_s * stretch, MERGE_DETECT_S_MAX),
    )


def packet_bytes(settings: Settings, datagram_bytes: int) -> int:
    """The largest packet that fits a datagram, also when recovery wraps it up once more."""
    longest = max(len(name.encode()) for name in settings.peers)
    return datagram_bytes - HEADERS_BYTES - len(settings.group.encode()) - 3 * longest


def wanted_window(datagram_bytes: int) -> tuple[int, int]:
    """Packets in one visit, and of all in one rotation, for full speed."""
    return next((visit, window) for most, visit, window in WINDOWS if datagram_bytes <= most)


def window(datagram_bytes: int, room: int) -> tuple[int, int]:
    """The same where a receive buffer holds `room` datagrams."""
    visit, wanted = wanted_window(datagram_bytes)
    spare = max(1, room // 8)  # For retransmissions and tokens.
    packets = max(2, min(wanted, room - spare))
    return min(visit, max(1, packets // 3)), packets


def engine_options(settings: Settings, datagram_bytes: int, room: int) -> dict[str, str]:
    """The engine's options: as `tuned_options`, and above all what the settings say."""
    return {**tuned_options(settings, datagram_bytes, room), **settings.options}


def tuned_options(settings: Settings, datagram_bytes: int, room: int) -> dict[str, str]:
    """The engine's options where the settings say nothing: timers scaled, and the window cut to
    the receive buffer."""
    config = importlib.import_module(MODULES[settings.engine]).Config
    options = _timers(config, settings.timeout_s)
    names = {f.name for f in dataclasses.fields(config)}
    visit, packets = window(datagram_bytes, room)
    if "visit_packets" in names:
        kept = max(2 * packets, min(config().buffer_packets, BUFFER_BYTES // datagram_bytes))
        options |= {
            "visit_packets": str(visit),
            "window_packets": str(packets),
            "buffer_packets": str(kept),
        }
    elif "window_packets" in names:  # Of each sender, not of all.
        options["window_packets"] = str(max(2, packets // max(1, len(settings.peers) - 1)))
    return options


def _timers(config: Any, timeout_s: float) -> dict[str, str]:
    """The timers of an engine, scaled so that its alarm goes off at the timeout."""
    timers = {
        f.name: f.default
        for f in dataclasses.fields(config)
        if f.name.endswith("_s") and isinstance(f.default, float)
    }
    alarm = next((timers[name] for name in ALARMS if name in timers), LAN_TIMEOUT_S)
    scaled = {name: t * timeout_s / alarm for name, t in timers.items() if t >= PROMPT_S}
    if "token_hold_s" in scaled:
        scaled["token_hold_s"] = HOLD_SHARE * scaled["token_retransmit_s"]
    return {name: repr(t) for name, t in scaled.items()}
