"""What DTP, CM and Pinwheel promise, and what their frames carry: it is the same for all three."""

from roundelay.core.description import OneOrder, Promises, Properties
from roundelay.protocols.dtp.messages import Message, Msg

DATA_TAGS = ("MSG",)
ALARM = "watch_s"
SHARED_OPTIONS = ("batch_packets", "resilience", "rules", "silence_s")

PROMISED = "O3f O3i O4 O5 O6 O10 S1 S1d S4 S6 K1 K2 K4 L1 L4"
DERIVED = "D6 D8 O1 O1r O2 O2r O5p O9 O11 K3"
"""The token's holder numbers what was sent before. Safe messages are safe whatever F is; with
F = n - 1 all are treated like that."""


def promises(static: Properties) -> Promises:
    """The promises of a protocol of this family, given those on a static group."""
    return Promises(
        static,
        in_views=Properties("S2"),
        envelope="E3",
        resilient=True,
        one_order=OneOrder.HALF,
    )


def packets_in(message: Message) -> int:
    return type(message) is Msg
