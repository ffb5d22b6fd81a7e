"""The whole stack: messages in packets, an engine that orders them, views that come and go."""

from collections.abc import Mapping, Sequence
from typing import Any

from roundelay.core.contract import Boot, Codec, EngineFactory, Origin
from roundelay.core.effects import Effect
from roundelay.core.ids import NodeId, Service, Terms
from roundelay.group.delivery import Delivery
from roundelay.group.packer import GroupConfig
from roundelay.membership.config import MembershipConfig
from roundelay.membership.machine import Membership
from roundelay.membership.messages import FIRST_TAG, MESSAGES, NO_TERMS, MembershipCodec


class StackCodec:
    """Two codecs on one wire: membership's tags begin where engines' end."""

    def __init__(self, engine: Codec[Any]) -> None:
        self._membership = MembershipCodec()
        self.tags: Mapping[int, str] = {**engine.tags, **self._membership.tags}
        self._encode_engine = engine.encode
        self._decode_engine = engine.decode

    def encode(self, message: Any) -> tuple[int, bytes]:
        if type(message) in MESSAGES:
            return self._membership.encode(message)
        return self._encode_engine(message)

    def decode(self, tag: int, data: bytes, start: int) -> Any:
        if tag >= FIRST_TAG:
            return self._membership.decode(tag, data, start)
        return self._decode_engine(tag, data, start)


class Stack:
    """A Core for a node of a group that anybody may join, leave and find again."""

    def __init__(
        self,
        boot: Boot,
        founders: tuple[NodeId, ...],
        engine: EngineFactory,
        config: MembershipConfig | None = None,
        group: GroupConfig | None = None,
        terms: Terms = NO_TERMS,
    ) -> None:
        """`terms` are how this node was set up, for its peers to compare."""
        self.delivery = Delivery(boot, group)
        self.engine = engine(boot.node, self.delivery.packer)
        self.delivery.serve(self.engine)
        self.membership = Membership(boot, founders, self.engine, config, terms)
        self._codec = StackCodec(self.engine.codec)
        self.accept = self.delivery.packer.put
        """The first half of `submit`, for drivers that take in many messages at a time: queues a
        message and returns its number, or raises. Nothing happens until `flush`."""

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
        accepted = self.delivery.submit(payload, service, destinations)
        return [*accepted, *self._finish(self.membership.submit())]

    def flush(self) -> list[Effect[Any]]:
        """The second half: let go of what was accepted."""
        return [*self.delivery.accepted(), *self._finish(self.membership.submit())]

    def receive(self, origin: Origin, message: Any) -> list[Effect[Any]]:
        effects = self.membership.receive(origin, message)
        if self.membership.waiting:
            return self._finish(effects)
        return self.delivery.finish(effects)

    def receive_run(self, origin: Origin, messages: Sequence[Any]) -> list[Effect[Any]]:
        """As `receive` for each of these in turn, for drivers that get many at a time."""
        effects = self.membership.receive_run(origin, messages)
        if effects is None:
            return [effect for message in messages for effect in self.receive(origin, message)]
        return self._finish(effects)

    def expire(self, timer: str) -> list[Effect[Any]]:
        return self._finish(self.membership.expire(timer))

    def leave(self) -> list[Effect[Any]]:
        return self._finish(self.membership.leave())

    def _finish(self, effects: list[Effect[Any]]) -> list[Effect[Any]]:
        """Effects for the driver. A new view's engine starts once the queue knows what the old
        view left to be sent again."""
        finished = self.delivery.finish(effects)
        while self.membership.waiting:
            finished += self.delivery.finish(self.membership.begin())
        return finished
