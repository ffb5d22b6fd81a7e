"""CM: the token goes round, and only acknowledgments tell who holds what."""

from roundelay.core.contract import Outlet
from roundelay.core.description import Description, Properties
from roundelay.core.ids import NodeId
from roundelay.protocols.dtp.engine import DtpEngine
from roundelay.protocols.dtp.policy import CM, Config
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
    """One member of a group that runs CM."""

    __slots__ = ()

    def __init__(self, node: NodeId, outlet: Outlet, config: Config | None = None) -> None:
        super().__init__(node, outlet, config or Config(), policy=CM)


DESCRIPTION = Description(
    name="cm",
    summary="A token goes round, and its holder orders; only acknowledgments tell who holds what.",
    engine=Engine,
    config=Config,
    data_tags=DATA_TAGS,
    packets_in=packets_in,
    promises=promises(Properties(PROMISED, DERIVED)),
    alarm=ALARM,
    shared_options=SHARED_OPTIONS,
    simulation="roundelay.sim.engines.cm",
)
