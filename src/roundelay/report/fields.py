"""Parameters and measures of experiments in words: code has `gap_ms`, readers do not."""

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "activity": "how busy the members are",
    "adapts": "adapts its weights",
    "again_copies_share": "copies sent again, share of all copies",
    "again_share": "messages sent again, share of all",
    "assume": "assumption about failures",
    "batch": "most messages in an acknowledgment",
    "buffer": "messages and acknowledgments held",
    "buffer_acks_max": "most acknowledgments held",
    "buffer_msgs_max": "most messages held",
    "busiest_share": "share of ordering done by the busiest member",
    "clean_share": "rounds without a loss, share of all",
    "confirmation_hops": "hops until an order is confirmed",
    "confirmation_most_hops": "most hops until an order is confirmed",
    "crash_ms": "recovery from the crash (ms)",
    "crashes": "groups with a crash",
    "delay_ms": "delay of a request (ms)",
    "delivered_share": "delivered within the run, share of all",
    "delivery_rate": "delivered / sent",
    "delivery_variance": "variance of deliveries in a tick",
    "distributions": "changes of weights",
    "divergent": "runs that broke agreement",
    "dummies": "when dummies are sent",
    "dummies_per_message": "dummies a message",
    "empty_ticks_share": "ticks without a delivery, share of all",
    "expiry_ms": "recovery from the expiry of the timer (ms)",
    "failed": "members that crash together",
    "flow": "flow control",
    "forming_ms": "time to form a ring (ms)",
    "frames_per_message": "frames a message",
    "fullest_tick": "most deliveries in a tick",
    "gap_ms": "mean time between two messages of a member (ms)",
    "goback_share": "sent again by go-back-n, share of all",
    "hold_ms": "hold before a dummy (ms)",
    "hop_ms": "processor time of a token hop (ms)",
    "hop_us": "token hop, as measured (\u00b5s)",
    "hops": "token hops",
    "idlest_share": "share of ordering done by the idlest member",
    "k": "neighbours that may fail together (k)",
    "latency_us": "latency of the network (\u00b5s)",
    "latency_p50_ms": "latency, median (ms)",
    "latency_p99_ms": "latency, 99 of 100 within (ms)",
    "length": "messages of a round",
    "linked_share": "sent again as linked, share of all",
    "loss_ms": "until a lost token is made good (ms)",
    "loss_share": "share that is lost",
    "losses": "losses",
    "missed_share": "missed by somebody, share of all",
    "needed_share": "messages that must be sent again, share of all",
    "nodes": "size of the group",
    "order_ms": "from the expiry until it orders (ms)",
    "ordering_variation": "variation of ordering over the members",
    "overhead": "overhead messages a message",
    "period_s": "time between two messages of a slow sender (s)",
    "rate_per_s": "messages a second",
    "recoveries_per_round": "recoveries a round",
    "recovery_share": "recovery / normal processing time",
    "safe_share": "share of safe messages",
    "seconds": "length of the run (s)",
    "sending_variance": "variance of sending in a tick",
    "silence_ms": "silence after a failure (ms)",
    "single_share": "rounds with one loss, share of all",
    "size_bytes": "size of a message (bytes)",
    "thinned": "losses as the formulas have them",
    "threshold_share": "change of shares before weights change",
    "to_share": "share of the group that a message is for",
    "total_ms": "until a new ring orders, timeout included (ms)",
    "work_variation": "variation of frames sent over the members",
}

UNITS: Mapping[str, str] = {
    "_per_s": " a second",
    "_ms": " (ms)",
    "_us": " (\u00b5s)",
    "_s": " (s)",
    "_bytes": " (bytes)",
    "_share": ", share",
    "_max": ", largest",
}
"""By the end of a name: how its words end."""

MEASURED = "measured "
"""Begins the name of a measure that a parameter shares."""


def in_words(name: str) -> str:
    """What a parameter or a measure is; of one that is not known, its name without underscores."""
    if name.startswith(MEASURED):
        return f"{in_words(name.removeprefix(MEASURED))}, measured"
    if name in WORDS:
        return WORDS[name]
    for end, words in UNITS.items():
        if name.endswith(end):
            return name.removesuffix(end).replace("_", " ") + words
    return name.replace("_", " ")
