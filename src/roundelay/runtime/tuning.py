"""Limits and timers of the stack, from what is known of the machine and the network.

The defaults of engines are for an undisturbed LAN. Real nodes share their processors with others,
so all timers are scaled until silence is noticed after the timeout that was asked for.
"""

import dataclasses

from roundelay.core.description import Capacity, Description
from roundelay.group.engines import describe
from roundelay.membership.config import MembershipConfig
from roundelay.runtime.errors import ConfigError
from roundelay.runtime.settings import Settings

LAN_TIMEOUT_S = 0.100
"""The time-out, in seconds, that the defaults of membership's timers go with; those of an engine
without an alarm too."""

PROMPT_S = 0.008
"""Timers of an engine below this are answers, such as acknowledgments, and are not scaled. Larger:
nodes with a long time-out answer late. Smaller: answers are delayed as much as alarms."""

MERGE_DETECT_S_MAX = 0.3
"""How often, in seconds, a view shows itself to others at least. Larger: sides of a partition find
each other later than they must. Smaller: frames that tell nothing."""

WINDOWS = ((1472, 100, 300), (16_000, 40, 120), (65_507, 20, 60))
"""For datagrams of up to so many bytes: packets that one sender may send in a row, and packets of
all senders on their way together. Smaller: the network idles. Larger: receive buffers overflow."""

HEADERS_BYTES = 160
"""Bytes of a datagram that hold no part of a packet, names apart: the headers of a frame and a
packet, wrapped up once more by recovery. Smaller: recovery sends datagrams that are too large.
Larger: room is wasted."""

DESTINATIONS_BYTES = 2
"""Bytes of a packet that say how many destinations it has."""

SEAL_BYTES = 52
"""How much larger a frame becomes when it is sealed, in bytes; `sealing` asserts the same."""

PACKET_BYTES_MIN = 64
"""The smallest packets, in bytes, that nodes make. Smaller: large messages go in pieces that are
hardly more than headers. Larger: small datagrams are refused that would do."""


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
    """The largest packet that fits a datagram, also when recovery wraps it up once more, with the
    header of the engine and, if it may have destinations, with their names. ConfigError if none
    does."""
    engine = describe(settings.engine)
    names = [len(name.encode()) for name in settings.peers]
    room = datagram_bytes - HEADERS_BYTES - len(settings.group.encode()) - 3 * max(names)
    room -= engine.header_bytes(len(names))
    if settings.key is not None:
        room -= SEAL_BYTES
    if engine.selective:
        room -= DESTINATIONS_BYTES + sum(names) + len(names)
    if room < PACKET_BYTES_MIN:
        raise ConfigError(
            f"datagrams of {datagram_bytes} bytes have no room for messages: with {len(names)} "
            f"peers and engine {settings.engine!r} they need "
            f"{datagram_bytes - room + PACKET_BYTES_MIN}; set datagram_bytes"
        )
    return room


def wanted_window(datagram_bytes: int) -> tuple[int, int]:
    """Packets of one sender in a row, and of all senders together, for full speed."""
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
    """The engine's options where the settings say nothing: timers scaled to the time-out, and what
    else the engine derives from them and from a receive buffer of `room` datagrams."""
    engine = describe(settings.engine)
    visit, packets = window(datagram_bytes, room)
    timers = _timers(engine, settings.timeout_s)
    capacity = Capacity(len(settings.peers), datagram_bytes, visit, packets)
    return {name: repr(v) for name, v in {**timers, **engine.tune(capacity, timers)}.items()}


def shared_options(engine: str) -> frozenset[str]:
    """Options of an engine that all nodes of a group must have alike."""
    description = describe(engine)
    return frozenset({description.alarm, *description.shared_options})


def _timers(engine: Description, timeout_s: float) -> dict[str, float]:
    """The timers of an engine, in seconds, scaled so that its alarm goes off at the time-out."""
    timers = {
        field.name: field.default
        for field in dataclasses.fields(engine.config)
        if field.name.endswith("_s") and isinstance(field.default, float)
    }
    alarm_s = timers.get(engine.alarm, LAN_TIMEOUT_S)
    return {name: t * timeout_s / alarm_s for name, t in timers.items() if t >= PROMPT_S}
