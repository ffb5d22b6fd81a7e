"""Pinwheel: the token goes round and orders all that waits, and everything tells who holds what."""

from collections.abc import Mapping

from roundelay.core.contract import Outlet
from roundelay.core.description import Capacity, Description, Properties
from roundelay.core.ids import NodeId
from roundelay.protocols.dtp.engine import DtpEngine
from roundelay.protocols.dtp.policy import PINWHEEL, PinwheelConfig
from roundelay.protocols.dtp.promises import (
    ALARM,
    DATA_TAGS,
    DERIVED,
    PROMISED,
    SHARED_OPTIONS,
    packets_in,
    promises,
)


class Engine(DtpEngine):
    """One member of a group that runs Pinwheel."""

    __slots__ = ()

    def __init__(self, node: NodeId, outlet: Outlet, config: PinwheelConfig | None = None) -> None:
        super().__init__(node, outlet, config or PinwheelConfig(), policy=PINWHEEL)


def _tune(capacity: Capacity, timers: Mapping[str, float]) -> Mapping[str, float]:
    """Every sender has a window of its own: together they fill the receive buffer."""
    return {"window_packets": max(2, capacity.window_packets // max(1, capacity.nodes - 1))}


DESCRIPTION = Description(
    name="pinwheel",
    summary="A token goes round, and its holder orders all that waits; all frames tell who has it.",
    engine=Engine,
    config=PinwheelConfig,
    data_tags=DATA_TAGS,
    packets_in=packets_in,
    promises=promises(Properties(PROMISED, DERIVED)),
    alarm=ALARM,
    shared_options=SHARED_OPTIONS,
    tune=_tune,
    simulation="roundelay.sim.engines.pinwheel",
)
