"""What both stacks do with the effects of the layers below: give applications messages.

Packets become messages at their index in the view's order, own ones become receipts, and what a
view did not deliver goes back into the queue.
"""

from dataclasses import replace
from typing import Any

from roundelay.core.contract import Boot, Engine
from roundelay.core.effects import Deliver, Effect, Install, Kind, Receipt, Record
from roundelay.core.ids import NodeId, Packet, Service
from roundelay.group.assembler import Assembler
from roundelay.group.packer import GroupConfig, Packer


class Delivery:
    """The upper half of a stack: submissions down, deliveries up."""

    def __init__(self, boot: Boot, config: GroupConfig | None = None) -> None:
        config = config or GroupConfig()
        self._selective = False
        self.packer = Packer(boot.node, boot.incarnation, config)
        self.index = 0
        """Messages delivered in the present view."""
        self._node = boot.node
        self._incarnation = boot.incarnation
        self._assembler = Assembler(config.message_bytes_max)

    def serve(self, engine: Engine[Any]) -> None:
        """Say which engine orders what is submitted here."""
        self._selective = engine.selective

    def submit(
        self, payload: bytes, service: Service, destinations: tuple[NodeId, ...] | None
    ) -> Record:
        """Queue a message, or raise; the record says under which number."""
        if destinations is not None and not self._selective:
            raise ValueError("this engine delivers to everybody; submit without destinations")
        span = self.packer.put(payload, service, destinations)
        return Record(Kind.SUBMIT, Packet(span, service, payload, destinations))

    def finish(self, effects: list[Effect[Any]]) -> list[Effect[Any]]:
        """Effects of the layers below as the driver gets them."""
        finished: list[Effect[Any]] = []
        for effect in effects:
            match effect:
                case Deliver():
                    self._deliver(effect, finished)
                case Install():
                    finished.append(effect)
                    if not effect.view.transitional:
                        self.index = 0
                        self._assembler.forget()
                        self.packer.resume()
                case Record() if effect.kind is Kind.WITHDRAW:
                    assert isinstance(effect.subject, Packet)
                    self.packer.put_back(effect.subject)
                    finished.append(effect)
                case _:
                    finished.append(effect)
        return finished

    def _deliver(self, effect: Deliver, finished: list[Effect[Any]]) -> None:
        span = effect.packet.span
        payloads = self._assembler.take(effect.packet)
        finished.append(replace(effect, index=self.index, payloads=payloads))
        if span.node == self._node and span.incarnation == self._incarnation and span.count:
            self.packer.delivered(span)
            finished.append(Receipt(span, effect.view, self.index))
        self.index += span.count
