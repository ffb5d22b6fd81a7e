"""The whole stack: messages in packets, an engine that orders them, views that come and go."""

from collections.abc import Mapping, Sequence
from typing import Any

from roundelay.core.contract import Boot, Codec, CoreStatus, EngineFactory, Origin
from roundelay.core.effects import Effect
from roundelay.core.ids import NodeId, Terms
from roundelay.core.log import LogStatus
from roundelay.group.delivery import Delivery
from roundelay.group.packer import GroupConfig
from roundelay.membership.codec import MembershipCodec
from roundelay.membership.config import MembershipConfig
from roundelay.membership.machine import Membership
from roundelay.membership.messages import FIRST_TAG, MESSAGES, NO_TERMS


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


class StackStatus:
    """The status of a Stack, read from the parts that know it."""

    def __init__(self, delivery: Delivery, membership: Membership) -> None:
        self._packer = delivery.packer
        self._assembler = delivery.assembler
        self._membership = membership

    @property
    def accepted(self) -> int:
        return self._packer.next

    @property
    def waiting_packets(self) -> int:
        return self._packer.waiting

    @property
    def incomplete_bytes(self) -> int:
        return self._assembler.bytes

    @property
    def lives(self) -> Mapping[NodeId, int]:
        return self._membership.lives

    @property
    def phase(self) -> str:
        return str(self._membership.phase)

    @property
    def gather(self) -> str:
        return str(self._membership.gather_reason)

    @property
    def terms(self) -> Terms:
        return self._membership.terms

    @property
    def log(self) -> LogStatus | None:
        return None


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
        self._status = StackStatus(self.delivery, self.membership)
        self.accept = self.delivery.packer.accept  # Bound here: every message passes it.

    @property
    def codec(self) -> Codec[Any]:
        return self._codec

    @property
    def status(self) -> CoreStatus:
        return self._status

    def start(self) -> list[Effect[Any]]:
        return self._to_driver(self.membership.start())

    def flush(self) -> list[Effect[Any]]:
        effects = self.delivery.accepted()
        submitted = self.membership.submit()
        if submitted or self.membership.waiting:
            effects += self._to_driver(submitted)
        return effects

    def receive(self, origin: Origin, message: Any) -> list[Effect[Any]]:
        effects = self.membership.receive(origin, message)
        if self.membership.waiting:
            return self._to_driver(effects)
        return self.delivery.to_driver(effects)

    def receive_many(self, origin: Origin, messages: Sequence[Any]) -> list[Effect[Any]]:
        effects = self.membership.receive_many(origin, messages)
        if effects is None:
            return [effect for message in messages for effect in self.receive(origin, message)]
        return self._to_driver(effects)

    def expire(self, timer: str) -> list[Effect[Any]]:
        return self._to_driver(self.membership.expire(timer))

    def leave(self) -> list[Effect[Any]]:
        return self._to_driver(self.membership.leave())

    def _to_driver(self, effects: list[Effect[Any]]) -> list[Effect[Any]]:
        """Effects for the driver. A new view's engine starts once the queue knows what the old
        view left to be sent again."""
        made = self.delivery.to_driver(effects)
        while self.membership.waiting:
            made += self.delivery.to_driver(self.membership.begin())
        return made
