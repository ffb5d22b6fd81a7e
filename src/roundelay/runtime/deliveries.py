"""The delivering side of a node: messages and views on their way to the application."""

from collections.abc import Callable

from roundelay.core.effects import Deliver, Install
from roundelay.core.ids import NodeId, View
from roundelay.runtime.events import Arrival, Batch
from roundelay.runtime.inbox import Inbox
from roundelay.runtime.meter import Meter

Listener = Callable[[Arrival], None]
"""Called with every arrival, in order; it must not call the node."""


class Deliveries:
    """Puts what the core delivers into the inbox, and keeps the present view."""

    def __init__(self, node: NodeId, meter: Meter) -> None:
        self.inbox = Inbox()
        self.view: View | None = None
        self.able = False
        """Whether this node may vote on primary views."""
        self.why = ""
        """Why the view is not primary, in words; empty if it is."""
        self.joined = False
        """Whether this node was ever in a view with others."""
        self.listeners: list[Listener] = []
        self.on_view: Callable[[View], None] = lambda view: None
        self._node = node
        self._meter = meter

    @property
    def members(self) -> tuple[NodeId, ...]:
        """The members of the present view; none before the first."""
        return () if self.view is None else self.view.members

    def deliver(self, effect: Deliver) -> None:
        meter, payloads = self._meter, effect.payloads
        meter.packets_delivered += 1
        if effect.packet.span.node == self._node:
            meter.packets_own += 1
        if payloads:
            assert self.view is not None, "a delivery before the first view"
            batch = Batch(effect, self.view)
            meter.messages_delivered += len(payloads)
            meter.bytes_delivered += batch.size
            self.inbox.put(batch)
            for listener in self.listeners:
                listener(batch)

    def install(self, effect: Install) -> None:
        self.view = view = effect.view
        self.able, self.why = effect.able, effect.why
        self.joined = self.joined or len(view.members) > 1
        self._meter.views += 1
        self.inbox.put(view)
        for listener in self.listeners:
            listener(view)
        self.on_view(view)
