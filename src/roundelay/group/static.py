"""An engine alone on a fixed group: the papers' model, and the smallest stack there is.

No membership: the group never changes, a suspicion is only recorded, and whoever crashes stays
away. There is one view for ever, which is not announced.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from roundelay.core.contract import (
    Boot,
    Codec,
    CoreStatus,
    EngineFactory,
    Origin,
    burst_engine,
)
from roundelay.core.effects import Effect, Kind, Record
from roundelay.core.ids import NodeId, Terms, View, ViewId
from roundelay.group.delivery import Delivery
from roundelay.group.packer import GroupConfig


class StaticStatus:
    """The status of a StaticStack: its view never changes, and it has no peers to compare with."""

    phase = "operational"
    gather = ""
    terms = Terms()
    lives: Mapping[NodeId, int] = {}
    log = None

    def __init__(self, delivery: Delivery) -> None:
        self._packer = delivery.packer
        self._assembler = delivery.assembler

    @property
    def accepted(self) -> int:
        return self._packer.next

    @property
    def waiting_packets(self) -> int:
        return self._packer.waiting

    @property
    def incomplete_bytes(self) -> int:
        return self._assembler.bytes


class StaticStack:
    """A Core for a node of a static group with these members."""

    def __init__(
        self,
        boot: Boot,
        members: tuple[NodeId, ...],
        engine: EngineFactory,
        group: GroupConfig | None = None,
    ) -> None:
        members = tuple(sorted(members))
        if boot.node not in members:
            raise ValueError(f"{boot.node} is not one of the members {', '.join(members)}")
        self.view = View(ViewId(0, members[0]), members, primary=True)
        self.delivery = Delivery(boot, group)
        self.engine = engine(boot.node, self.delivery.packer)
        self.delivery.serve(self.engine)
        self._burst_engine = burst_engine(self.engine)
        self.accept = self.delivery.packer.accept  # Bound here: every message passes it.
        self._status = StaticStatus(self.delivery)
        self._incarnation = boot.incarnation

    @property
    def codec(self) -> Codec[Any]:
        return self.engine.codec

    @property
    def status(self) -> CoreStatus:
        return self._status

    def start(self) -> list[Effect[Any]]:
        effects: list[Effect[Any]] = []
        if self._incarnation:
            effects.append(Record(Kind.RECOVER))
        return effects + self.delivery.to_driver(self.engine.start(self.view))

    def flush(self) -> list[Effect[Any]]:
        effects = self.delivery.accepted()
        submitted = self.engine.submit()
        if submitted:
            effects += self.delivery.to_driver(submitted)
        return effects

    def receive(self, origin: Origin, message: Any) -> list[Effect[Any]]:
        if origin.view != self.view.id or origin.node not in self.view.members:
            return []  # A stranger, or a neighbour group of the same name.
        return self.delivery.to_driver(self.engine.receive(origin, message))

    def receive_many(self, origin: Origin, messages: Sequence[Any]) -> list[Effect[Any]]:
        if self._burst_engine is None:
            return [effect for message in messages for effect in self.receive(origin, message)]
        if origin.view != self.view.id or origin.node not in self.view.members:
            return []
        return self.delivery.to_driver(self._burst_engine.receive_many(origin, messages))

    def leave(self) -> list[Effect[Any]]:
        return []  # A static group has no way to go on without a member.

    def expire(self, timer: str) -> list[Effect[Any]]:
        return self.delivery.to_driver(self.engine.expire(timer))
