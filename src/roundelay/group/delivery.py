"""The upper half of both stacks: turns the packets of the layers below into messages.

A delivered packet is unpacked, and its messages get their index in the view. Own messages get a
receipt as well. Own packets that a view did not deliver go back into the queue.
"""

from typing import Any

from roundelay.core.contract import Boot, Engine
from roundelay.core.effects import Deliver, Effect, Install, Kind, Receipt, Record
from roundelay.core.ids import Packet, Span, ViewId
from roundelay.group.assembler import Assembler
from roundelay.group.body import is_log_body
from roundelay.group.log.log import ReplicatedLog
from roundelay.group.packer import GroupConfig, Packer

_SUBMIT, _WITHDRAW = Kind.SUBMIT, Kind.WITHDRAW  # Slow to get at in an Enum.


class Delivery:
    """The upper half of a stack: submissions down, deliveries up."""

    def __init__(self, boot: Boot, config: GroupConfig | None = None) -> None:
        config = config or GroupConfig()
        self.packer = Packer(boot.node, boot.incarnation, config)
        self.packer.traced = boot.traced
        self.index = 0
        """Messages delivered in the present view, be it regular or transitional."""
        self._view: ViewId | None = None
        self._node = boot.node
        self._incarnation = boot.incarnation
        self.assembler = Assembler(config.message_bytes_max)
        self.log: ReplicatedLog | None = None
        """The replicated log, if this node keeps one: packets for it go there."""

    def serve(self, engine: Engine[Any]) -> None:
        """Say which engine orders what is submitted here."""
        self.packer.selective = engine.selective

    def accepted(self) -> list[Effect[Any]]:
        """Records of the messages accepted since the last call; none if nobody reads records."""
        return [Record(_SUBMIT, stretch) for stretch in self.packer.unrecorded()]

    def to_driver(self, effects: list[Effect[Any]]) -> list[Effect[Any]]:
        """The effects that the driver gets, made from those of the layers below."""
        made: list[Effect[Any]] = []
        for effect in effects:
            if type(effect) is Record:
                made.append(effect)
                if effect.kind is _WITHDRAW:
                    assert isinstance(effect.subject, Packet)
                    self.packer.put_back(effect.subject)
            elif type(effect) is Deliver:
                packet = effect.packet
                span = packet.span
                if self.log is not None and is_log_body(packet.body):
                    made.append(Deliver(packet, effect.view, effect.key, self.index))
                    self.index += span.count
                    self.log.deliver(packet)
                    made += self.log.pop()
                    continue
                own = span.node == self._node and self._own(span)
                payloads = (own and self.packer.release(span)) or self.assembler.messages_of(packet)
                made.append(Deliver(packet, effect.view, effect.key, self.index, payloads))
                if own:
                    made.append(Receipt(span, self._view or effect.view, self.index))
                self.index += span.count
            elif type(effect) is Install:
                self._enter(effect, made)
            elif type(effect) is Receipt:  # Of an own packet that is for others.
                self.packer.release(effect.span)
                made.append(Receipt(effect.span, self._view or effect.view, self.index))
            else:
                made.append(effect)
        return made

    def _enter(self, install: Install, made: list[Effect[Any]]) -> None:
        view, log = install.view, self.log
        if log is not None and not view.transitional:
            log.withdraw()
            made += log.pop()
        made.append(install)
        if log is not None:
            log.enter(install)
            made += log.pop()
        self._view = view.id
        self.index = 0
        if not view.transitional:
            self.assembler.forget()
            self.packer.start_view()

    def _own(self, span: Span) -> bool:
        """Whether this life of the node submitted these messages. If it did not, a packet under its
        name is forged."""
        return (
            span.incarnation == self._incarnation
            and span.count > 0
            and span.first + span.count <= self.packer.next
        )
