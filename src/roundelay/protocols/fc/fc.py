"""FC, the engine: under which rules it runs, its options say."""

from collections.abc import Mapping, Sequence
from typing import Any

from roundelay.core.contract import Outlet
from roundelay.core.description import Capacity, Description, OneOrder, Promises, Properties
from roundelay.core.ids import NodeId
from roundelay.protocols.fc.config import Config
from roundelay.protocols.fc.literal import LiteralMember
from roundelay.protocols.fc.messages import Message, Req
from roundelay.protocols.fc.safe import SafeMember


class Engine(SafeMember):
    """A member that keeps the rules of its configuration."""

    def __new__(cls, node: NodeId = "", outlet: Any = None, config: Config | None = None) -> Any:
        """Another class of members, under the rules that ask nobody; a copy is made without
        arguments."""
        if config is not None and config.rules != "safe":
            return LiteralMember(node, outlet, config)
        return super().__new__(cls)

    def __init__(self, node: NodeId, outlet: Outlet, config: Config | None = None) -> None:
        super().__init__(node, outlet, config or Config())


BUFFER_BYTES = 32 * 1024 * 1024
"""Bytes of packets that a real node keeps for members that are behind. Smaller: a failure is masked
for a shorter time if much is sent. Larger: memory."""


def _tune(capacity: Capacity, timers: Mapping[str, float]) -> Mapping[str, float]:
    """All timers are parts of the wait, which is part of the time-out; every sender has a window of
    its own: together they fill the receive buffer."""
    wait_s = timers["wait_s"]
    window = max(2, capacity.window_packets // max(1, capacity.nodes - 1))
    kept = min(Config().buffer_packets, BUFFER_BYTES // capacity.datagram_bytes)
    return {
        "stagger_s": wait_s / 10,
        "idle_s": wait_s / 3,
        "repeat_s": wait_s / 3,
        "window_packets": window,
        "buffer_packets": max(4 * window * capacity.nodes, kept),
    }


def _check(config: Config, nodes: Sequence[NodeId]) -> None:
    most = (len(nodes) - 1) // 2
    unset = config.rules == "safe" and config.k == Config().k
    if config.k > most and not unset:
        raise ValueError(
            f"k={config.k} members that fail together are too many for a group of {len(nodes)}; "
            f"choose {most} at most"
        )


def _packets_in(message: Message) -> int:
    return type(message) is Req


DESCRIPTION = Description(
    name="fc",
    summary="A token goes round, is made anew without a new view, and a majority confirms.",
    engine=Engine,
    config=Config,
    data_tags=("REQ",),
    packets_in=_packets_in,
    promises=Promises(
        Properties("D8 O3f O3i O4 O5 O6 O10 S4 N1 N2 N3 L6", derived="D6 O1 O1r O5p O11"),
        in_views=Properties("S2 S3"),
        rules=(
            ("safe", Properties("D8u", derived="O2 O2r O9")),
            ("paper", Properties("N4")),
            ("link", Properties("N4")),
        ),
        envelope="E2",
        one_order=OneOrder.CONFIRMED,
    ),
    envelope_options=("k",),
    alarm="silence_s",
    shared_options=("rules", "k", "wait_s"),
    tune=_tune,
    check_options=_check,
    simulation="roundelay.sim.engines.fc",
    static_rules=("paper", "link"),
)
