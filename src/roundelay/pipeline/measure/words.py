"""What each measure is, in words for people who read a table of them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """One measure, for a reader."""

    title: str
    meaning: str
    """A sentence."""


MEANINGS: Mapping[str, Words] = {
    "delivery": Words(
        "delivery",
        "Time from handing a message over until it is delivered, counted at every node.",
    ),
    "own": Words(
        "delivery to the sender",
        "Time from handing a message over until it is delivered at the node that sent it: how long "
        "a sender waits for its place in the order.",
    ),
    "order": Words(
        "ordering",
        "Time from the first sending of a message until its place in the order is decided.",
    ),
    "stability": Words(
        "stability",
        "Time from handing a message over until the last node knows that all have it.",
    ),
    "outage": Words(
        "outage",
        "Time between a node's last delivery in one view and its first delivery in the next.",
    ),
    "view change": Words(
        "view change",
        "Time from the first sign of a failure, or of its end, until a node enters the next "
        "regular view. Most of it is the timeout after which a silent node counts as failed.",
    ),
    "recovery": Words("recovery", "Time from the start of a node until it enters its first view."),
    "frames": Words(
        "frames a message",
        "Frames that all nodes sent, tokens and acknowledgments included, for each message of the "
        "application.",
    ),
    "bytes": Words(
        "bytes a byte",
        "Bytes of all frames for each byte of the messages: the smaller the messages and the "
        "idler the group, the more.",
    ),
    "fairness of ordering": Words(
        "fairness of ordering",
        "How evenly the nodes decide places in the order: 1 if all decide the same number, 1/n if "
        "one of n decides all (Jain's index).",
    ),
    "fairness of sending": Words(
        "fairness of sending",
        "How evenly the nodes send: 1 if all send the same number of messages, 1/n if one of n "
        "sends all (Jain's index).",
    ),
}
"""By the name of the measure in the table."""


def words_of(measure: str) -> Words:
    """A measure that has no words is called what the table calls it."""
    return MEANINGS.get(measure, Words(measure, ""))
