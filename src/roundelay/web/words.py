"""What the numbers of the page mean, and which setting to look at: a sentence for each."""

from typing import NamedTuple


class Word(NamedTuple):
    """A number of the page."""

    label: str
    unit: str
    about: str
    setting: str = ""
    """What to look at if it is not as it should be; a setting, a command or a page."""


WORDS: dict[str, Word] = {
    "messages_per_s": Word(
        "Delivered",
        "messages/s",
        "Messages that this node delivered to its application; at members of one view it is the "
        "same everywhere, as all deliver the same.",
        "timeout_s, datagram_bytes",
    ),
    "bytes_per_s": Word("Volume", "B/s", "The same in bytes of the messages.", "datagram_bytes"),
    "frames_per_s": Word(
        "Frames",
        "frames/s",
        "Frames that this node sent, tokens and acknowledgments too; many frames for few messages "
        "mean that messages are not packed together.",
        "send more at a time",
    ),
    "visits_per_s": Word(
        "Token",
        "visits/s",
        "How often the token comes here. When nobody has anything to say it rests, so few visits "
        "are normal then.",
        "idle_rotations",
    ),
    "p50_ms": Word(
        "Latency, median",
        "ms",
        "Half of the messages sent here came back in order within this time, in the last seconds.",
        "the slowest member",
    ),
    "p99_ms": Word(
        "Latency, 99 %",
        "ms",
        "All but one in a hundred messages came back within this time, in the last seconds.",
        "timeout_s, a busy machine",
    ),
    "rotation_ms": Word(
        "Rotation",
        "ms",
        "The mean time between two visits of the token here, in the last seconds.",
        "the slowest member",
    ),
    "packets_to_send": Word(
        "To send",
        "packets",
        "Packets that wait for the token. A queue that grows means that more is sent than the "
        "group orders.",
        "queue_bytes, datagram_bytes",
    ),
    "packets_to_read": Word(
        "To read",
        "packets",
        "Packets that were delivered and that the application has not read. A slow reader slows "
        "the whole group down.",
        "backlog_bytes; read events faster",
    ),
    "repeats_per_s": Word(
        "Repeats",
        "packets/s",
        "Packets that came more than once, as they were lost here or at others and were sent "
        "again.",
        "net.core.rmem_max, datagram_bytes, the network",
    ),
    "drops_per_s": Word(
        "Drops",
        "datagrams/s",
        "Datagrams that were thrown away, for the reasons listed.",
        "docs/security.md, What the counters mean",
    ),
    "uptime_s": Word("Up", "s", "How long this life of the node lasts."),
    "views": Word("Views", "", "Views since the node started.", "timeout_s"),
    "suspicions": Word(
        "Suspicions",
        "",
        "How often this node suspected another one, or the token, to be lost.",
        "timeout_s",
    ),
    "pauses": Word(
        "Pauses",
        "",
        "How often this process did nothing for long: it was stopped, the machine was overloaded, "
        "or the application held up the event loop.",
        "timeout_s, a busy machine",
    ),
}

DROPS: dict[str, str] = {
    "unsent": "the system did not take a datagram that was to be sent",
    "buffer_full": "the socket's receive buffer was full; raise net.core.rmem_max",
    "other_groups": "they were of a group that no node here is in",
    "held_too_long": "they waited for a node that did not read",
    "refused": "too much waited for the application; read events faster, or raise backlog_bytes",
    "probe": "probes, which nodes that search for each other send; no reason to worry",
}
"""What reasons mean that are not explained in docs/security.md, or that everybody meets."""


def document() -> dict[str, object]:
    """All of it, as the page gets it."""
    return {"numbers": {key: word._asdict() for key, word in WORDS.items()}, "drops": DROPS}
