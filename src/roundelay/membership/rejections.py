"""Outsiders that have just given up one of our members, and a short time of peace after that.

Two rings that gave each other up are formed while Joins that did so are still under way. A node
that answers such a Join begins the same Gather again, and in a network without jitter for ever. So
a ring that gave somebody up answers no outsider for `settle_s`, and later on does not let itself be
disturbed by an outsider that still leaves its old view because of one of us.
"""

from roundelay.core.contract import Origin
from roundelay.core.ids import NodeId, ViewId


class Rejections:
    """What one node remembers of the last Gather, until the next begins."""

    def __init__(self, most: int) -> None:
        """At most `most` outsiders are remembered."""
        self.settling = False
        """The ring gave somebody up less than `settle_s` ago: no outsider is merged with."""
        self._most = most
        self._views: dict[NodeId, ViewId] = {}
        """Outsiders whose last Join gave up one of us, and the view that they are leaving. Frames
        of that view do not bring us together; frames of their next view may."""

    def clear(self) -> None:
        self.settling = False
        self._views.clear()

    def note(self, origin: Origin) -> None:
        """An outsider gives up one of us."""
        if origin.view is not None:
            if len(self._views) >= self._most:
                self._views.clear()  # Bounded: strangers may have any number of names.
            self._views[origin.node] = origin.view

    def remove(self, node: NodeId) -> None:
        """The last Join of that outsider gave up none of us."""
        self._views.pop(node, None)

    def concern(self, origin: Origin) -> bool:
        """Whether a frame is of a view that its sender is leaving because of one of us."""
        return origin.view is not None and self._views.get(origin.node) == origin.view
