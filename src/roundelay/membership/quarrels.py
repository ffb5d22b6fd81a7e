"""Whom a ring that was just formed leaves alone, so that the quarrel that led to it is over.

Joins that gave somebody up are still under way when the rings are there that they led to. Who
heeds them is drawn into the same quarrel again, and in a network without jitter for ever.
"""

from roundelay.core.contract import Origin
from roundelay.core.ids import NodeId, ViewId


class Quarrels:
    """What one node remembers of the last round, until the next begins."""

    def __init__(self, most: int) -> None:
        self.settling = False
        """The ring gave somebody up a moment ago: no outsider is heeded."""
        self._most = most
        self._views: dict[NodeId, ViewId] = {}
        """Outsiders whose last Join gave one of us up, and the view that they are leaving: what
        they still say in it does not bring us together. Their next view may."""

    def forget(self) -> None:
        self.settling = False
        self._views.clear()

    def note(self, origin: Origin) -> None:
        """An outsider gives one of us up."""
        if origin.view is not None:
            if len(self._views) >= self._most:
                self._views.clear()  # Bounded: strangers may have any number of names.
            self._views[origin.node] = origin.view

    def end(self, node: NodeId) -> None:
        """It does so no more."""
        self._views.pop(node, None)

    def with_(self, origin: Origin) -> bool:
        """Whether a frame is of a view that is being left against us."""
        return origin.view is not None and self._views.get(origin.node) == origin.view
