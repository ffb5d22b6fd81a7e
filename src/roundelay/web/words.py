"""What the numbers of the page mean, and what to look at: a sentence for each."""

from typing import NamedTuple


class Word(NamedTuple):
    """A number of the page."""

    label: str
    unit: str
    about: str
    look_at: str = ""
    """What to look at if it is not as it should be, with commas between: settings, options of the
    engine or of the kernel by their names, everything else in words."""


WORDS: dict[str, Word] = {
    "messages_per_s": Word(
        "Delivered",
        "messages/s",
        "Messages that this node delivered to its application; at members of one view it is the "
        "same everywhere, as all deliver the same.",
        "the slowest member, datagram_bytes",
    ),
    "bytes_per_s": Word("Volume", "B/s", "The same in bytes of the messages.", "datagram_bytes"),
    "frames_per_s": Word(
        "Frames",
        "frames/s",
        "Frames that this node sent, tokens and acknowledgments too; many frames for few messages "
        "mean that messages are not packed together.",
        "how much the program sends at a time",
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
        "timeout_s, the load of the machine",
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
        "how fast the program reads, backlog_bytes",
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
        "the reasons below the numbers",
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
        "timeout_s, the load of the machine",
    ),
}

DROPS: dict[str, str] = {
    "unsent": "the system did not take a datagram that was to be sent",
    "buffer_full": "the socket's receive buffer was full; raise net.core.rmem_max",
    "other_groups": "they were of a group that no node here is in",
    "held_too_long": "they waited for a node that did not read",
    "refused": "too much waited for the application; read events faster, or raise backlog_bytes",
    "foreign": "they were no datagrams of Roundelay; another program sends to this port",
    "version": "they were of another version of Roundelay; run the same release everywhere",
    "truncated": "they were shorter than they say; the network or another program damages them",
    "oversized": "they were longer than they may be; another program sends to this port",
    "checksum": "they were damaged on their way",
    "group": "they were of another group; compare the addresses of the peers",
    "own": "they were this node's own and came back by multicast; no reason to worry",
    "malformed": "they could be read but made no sense; look for a node of another release",
    "implausible": "they said what cannot be true; look for a node of another release",
    "settings": "their sender has other settings; the log names it, and what differs",
    "probe": "probes, which nodes that search for each other send; no reason to worry",
    "plain": "they were not sealed, and this node has a key; give their sender the key file",
    "sealed": "they were sealed, and this node has no key; start it with the setting key",
    "key": "they were sealed with a key that this node does not have; maybe it missed a change",
    "seal": "they were damaged or forged; a few are normal, many are an attack",
    "replay": "they came before, or were too old to tell; a few are normal, many are an attack",
    "unproven": "their sender had not proven yet to be alive; some are normal at every start",
    "stranger": "their sender is not among the peers; compare the lists of peers",
    "impostor": "their sender is not the node that they name; a member of the group lies",
    "own name": "they name this node, which did not send them; look for a second one of its name",
}
"""What each reason means, and what to do. docs/security.md says more of those of sealed groups."""


def document() -> dict[str, object]:
    """All of it, as the page gets it."""
    return {"numbers": {key: word._asdict() for key, word in WORDS.items()}, "drops": DROPS}
