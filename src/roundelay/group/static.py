"""An engine alone on a fixed group: the papers' model, and the smallest stack there is.

No membership: the group never changes, a suspicion is only recorded, and whoever crashes stays
away. There is one view for ever, which is not announced.
"""

from dataclasses import replace
from typing import Any

from roundelay.core.contract import Boot, Codec, EngineFactory, Origin
from roundelay.core.effects import Deliver, Effect, Kind, Record
from roundelay.core.ids import NodeId, Service, View, ViewId
from roundelay.group.packer import Packer


class StaticStack:
    """A Core for a node of a static group with these members."""

    def __init__(self, boot: Boot, members: tuple[NodeId, ...], engine: EngineFactory) -> None:
        members = tuple(sorted(members))
        if boot.node not in members:
            raise ValueError(f"{boot.node} is not one of the members {', '.join(members)}")
        self.view = View(ViewId(0, members[0]), members, primary=True)
        self.packer = Packer(boot.node, boot.incarnation)
        self.engine = engine(boot.node, self.packer)
        self.delivered = 0
        """Messages delivered so far: the index of the next one."""
        self._incarnation = boot.incarnation

    @property
    def codec(self) -> Codec[Any]:
        return self.engine.codec

    def start(self) -> list[Effect[Any]]:
        effects: list[Effect[Any]] = []
        if self._incarnation:
            effects.append(Record(Kind.RECOVER))
        return effects + self._count(self.engine.start(self.view))

    def submit(
        self,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> list[Effect[Any]]:
        packet = self.packer.put(payload, service, destinations)
        return [Record(Kind.SUBMIT, packet), *self._count(self.engine.submit())]

    def receive(self, origin: Origin, message: Any) -> list[Effect[Any]]:
        if origin.view != self.view.id or origin.node not in self.view.members:
            return []  # A stranger, or a neighbour group of the same name.
        return self._count(self.engine.receive(origin, message))

    def expire(self, timer: str) -> list[Effect[Any]]:
        return self._count(self.engine.expire(timer))

    def _count(self, effects: list[Effect[Any]]) -> list[Effect[Any]]:
        """Give each delivery its index in the group's order."""
        for i, effect in enumerate(effects):
            if type(effect) is Deliver:
                effects[i] = replace(effect, index=self.delivered)
                self.delivered += effect.packet.span.count
        return effects
