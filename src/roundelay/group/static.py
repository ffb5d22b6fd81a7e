"""An engine alone on a fixed group: the papers' model, and the smallest stack there is.

No membership: the group never changes, a suspicion is only recorded, and whoever crashes stays
away. There is one view for ever, which is not announced.
"""

from typing import Any

from roundelay.core.contract import Boot, Codec, EngineFactory, Origin
from roundelay.core.effects import Effect, Kind, Record
from roundelay.core.ids import NodeId, Service, View, ViewId
from roundelay.group.delivery import Delivery
from roundelay.group.packer import GroupConfig


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
        self.accept = self.delivery.packer.put
        """The first half of `submit`, for drivers that take in many messages at a time: queues a
        message and returns its number, or raises. Nothing happens until `flush`."""
        self._incarnation = boot.incarnation

    @property
    def codec(self) -> Codec[Any]:
        return self.engine.codec

    def start(self) -> list[Effect[Any]]:
        effects: list[Effect[Any]] = []
        if self._incarnation:
            effects.append(Record(Kind.RECOVER))
        return effects + self.delivery.finish(self.engine.start(self.view))

    def submit(
        self,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> list[Effect[Any]]:
        accepted = self.delivery.submit(payload, service, destinations)
        return [*accepted, *self.delivery.finish(self.engine.submit())]

    def flush(self) -> list[Effect[Any]]:
        """The second half: let go of what was accepted."""
        return [*self.delivery.accepted(), *self.delivery.finish(self.engine.submit())]

    def receive(self, origin: Origin, message: Any) -> list[Effect[Any]]:
        if origin.view != self.view.id or origin.node not in self.view.members:
            return []  # A stranger, or a neighbour group of the same name.
        return self.delivery.finish(self.engine.receive(origin, message))

    def leave(self) -> list[Effect[Any]]:
        return []  # A static group has no way to go on without a member.

    def expire(self, timer: str) -> list[Effect[Any]]:
        return self.delivery.finish(self.engine.expire(timer))
