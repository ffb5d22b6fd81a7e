"""DTP: the token goes to the member that is known to hold least, so that it is heard of."""

from roundelay.core.contract import Outlet
from roundelay.core.description import Description, Properties
from roundelay.core.ids import NodeId
from roundelay.protocols.dtp.engine import DtpEngine
from roundelay.protocols.dtp.policy import DTP, Config
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
    """One member of a group that runs DTP."""

    __slots__ = ()

    def __init__(self, node: NodeId, outlet: Outlet, config: Config | None = None) -> None:
        super().__init__(node, outlet, config or Config(), policy=DTP)


DESCRIPTION = Description(
    name="dtp",
    summary="A token goes to the member that is known to hold least, and its holder orders.",
    engine=Engine,
    config=Config,
    data_tags=DATA_TAGS,
    packets_in=packets_in,
    promises=promises(Properties(f"{PROMISED} D8", DERIVED)),
    alarm=ALARM,
    shared_options=SHARED_OPTIONS,
    simulation="roundelay.sim.engines.dtp",
)
