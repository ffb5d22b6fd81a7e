"""ST, the engine: under which rules and over which medium it runs, its options say."""

from collections.abc import Mapping
from typing import Any

from roundelay.core.contract import Outlet
from roundelay.core.description import Capacity, Description, OneOrder, Promises, Properties
from roundelay.core.ids import NodeId
from roundelay.protocols.st.config import Config
from roundelay.protocols.st.literal import LiteralMember
from roundelay.protocols.st.literal_messages import Ret
from roundelay.protocols.st.member import StMember
from roundelay.protocols.st.messages import (
    PART_BYTES,
    Again,
    Message,
    Placed,
    Raised,
    transmission_bytes,
)

LIST_HEADERS_BYTES = 416
"""Bytes of a datagram that hold no part of a list: headers of frames and of recovery, and names of
the greatest length."""


class Engine(StMember):
    """A member that keeps the rules of its configuration."""

    def __new__(cls, node: NodeId = "", outlet: Any = None, config: Config | None = None) -> Any:
        """Another class of members, under the rules of the paper; a copy is made without
        arguments."""
        if config is not None and config.rules == "paper":
            return LiteralMember(node, outlet, config)
        return super().__new__(cls)

    def __init__(self, node: NodeId, outlet: Outlet, config: Config | None = None) -> None:
        super().__init__(node, outlet, config or Config())


def _tune(capacity: Capacity, timers: Mapping[str, float]) -> Mapping[str, float]:
    """Every sender has a window of its own: together they fill the receive buffer."""
    window = max(2, capacity.window_packets // max(1, capacity.nodes))
    return {
        "window_packets": window,
        "ack_packets": max(1, window // 4),
        "part_bytes": max(1, min(PART_BYTES, capacity.datagram_bytes - LIST_HEADERS_BYTES)),
    }


def _packets_in(message: Message | Ret) -> int:
    if isinstance(message, Placed | Raised):
        return message.transmission.packet is not None
    return type(message) in (Again, Ret)


DESCRIPTION = Description(
    name="st",
    summary="One order for packets to any subset of the group, over one channel.",
    engine=Engine,
    config=Config,
    data_tags=("DT", "UPDT"),
    packets_in=_packets_in,
    promises=Promises(
        Properties("D8 D9 D10 O1 O1r O5 S1 S4 S7 L1 L4", derived="D6 O5p"),
        in_views=Properties("S2 S3"),
        rules=(("safe", Properties(derived="O2")),),
        envelope="E1 E4",
        one_order=OneOrder.NEVER,
    ),
    alarm="silence_s",
    shared_options=("rules", "medium", "ready_s", "part_bytes"),
    simulation="roundelay.sim.engines.st",
    tune=_tune,
    header_bytes=transmission_bytes,
    static_rules=("paper",),
    channel_options=("medium=channel", "rules=paper"),
    recovery_tag="RST",
)
