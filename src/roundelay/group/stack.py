"""The whole stack: messages in packets, an engine that orders them, views that come and go."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from roundelay.core.contract import Boot, Codec, EngineFactory, Origin
from roundelay.core.effects import Deliver, Effect, Install, Kind, Record
from roundelay.core.ids import NodeId, Packet, Service
from roundelay.group.packer import Packer
from roundelay.membership.machine import Membership, MembershipConfig
from roundelay.membership.messages import FIRST_TAG, MembershipCodec, Message


class StackCodec:
    """Two codecs on one wire: membership's tags begin where engines' end."""

    def __init__(self, engine: Codec[Any]) -> None:
        self._engine = engine
        self._membership = MembershipCodec()
        self.tags: Mapping[int, str] = {**engine.tags, **self._membership.tags}

    def encode(self, message: Any) -> tuple[int, bytes]:
        if isinstance(message, Message):
            return self._membership.encode(message)
        return self._engine.encode(message)

    def decode(self, tag: int, data: bytes, start: int) -> Any:
        codec: Codec[Any] = self._membership if tag >= FIRST_TAG else self._engine
        return codec.decode(tag, data, start)


class Stack:
    """A Core for a node of a group that anybody may join, leave and find again."""

    def __init__(
        self,
        boot: Boot,
        founders: tuple[NodeId, ...],
        engine: EngineFactory,
        config: MembershipConfig | None = None,
    ) -> None:
        self.packer = Packer(boot.node, boot.incarnation)
        self.engine = engine(boot.node, self.packer)
        self.membership = Membership(boot, founders, self.engine, config)
        self.delivered = 0
        """Messages delivered in the present view: the index of the next one."""
        self._codec = StackCodec(self.engine.codec)

    @property
    def codec(self) -> Codec[Any]:
        return self._codec

    def start(self) -> list[Effect[Any]]:
        return self._finish(self.membership.start())

    def submit(
        self,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> list[Effect[Any]]:
        packet = self.packer.put(payload, service, destinations)
        return [Record(Kind.SUBMIT, packet), *self._finish(self.membership.submit())]

    def receive(self, origin: Origin, message: Any) -> list[Effect[Any]]:
        return self._finish(self.membership.receive(origin, message))

    def expire(self, timer: str) -> list[Effect[Any]]:
        return self._finish(self.membership.expire(timer))

    def _finish(self, effects: list[Effect[Any]]) -> list[Effect[Any]]:
        """Number deliveries, and take back what a view did not deliver."""
        for i, effect in enumerate(effects):
            match effect:
                case Deliver():
                    effects[i] = replace(effect, index=self.delivered)
                    self.delivered += effect.packet.span.count
                case Install():
                    if not effect.view.transitional:
                        self.delivered = 0
                case Record() if effect.kind is Kind.WITHDRAW:
                    assert isinstance(effect.subject, Packet)
                    self.packer.put_back(effect.subject)
                case _:
                    pass
        return effects
