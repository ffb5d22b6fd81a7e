"""Nodes that were expelled because they do not receive, and how long we do not merge with them.

A node that sends but does not receive would be readmitted by its Joins as soon as it was expelled,
and expelled again at the next message, for ever. So a node that was expelled more than once is not
merged with for a pause, which doubles with every expulsion. The count of a node is cleared when a
view with it lasts, and when the node restarts.
"""

from collections.abc import Iterable

from roundelay.core.contract import Origin
from roundelay.core.ids import NodeId


class Expulsions:
    """Which nodes this node helped to expel, and which of them have a pause now."""

    def __init__(self, pause_s: float, pause_max_s: float) -> None:
        self.paused: set[NodeId] = set()
        self._pause_s = pause_s
        self._pause_max_s = pause_max_s
        self._deaf: set[NodeId] = set()
        """Nodes that the next view is to be without because they do not receive."""
        self._counts: dict[NodeId, int] = {}
        self._lives: dict[NodeId, int] = {}

    @property
    def any(self) -> bool:
        """Whether any node was expelled and not forgiven."""
        return bool(self._counts)

    def note_deaf(self, nodes: Iterable[NodeId]) -> None:
        """These are being expelled, not for silence but because they do not receive."""
        self._deaf.update(nodes)

    def note_install(self, gone: Iterable[NodeId]) -> list[tuple[NodeId, float]]:
        """A view was installed without `gone`; returns which nodes have a pause from now on, and
        for how many seconds."""
        pauses = []
        for node in sorted(self._deaf.intersection(gone)):
            count = self._counts[node] = self._counts.get(node, 0) + 1
            if count > 1:
                self.paused.add(node)
                pause = self._pause_s * 2.0 ** (count - 2)
                pauses.append((node, min(pause, self._pause_max_s)))
        self._deaf = set()
        return pauses

    def forgive(self, nodes: Iterable[NodeId]) -> None:
        for node in nodes:
            self._counts.pop(node, None)

    def end_pause(self, node: NodeId) -> None:
        self.paused.discard(node)

    def note_incarnation(self, origin: Origin) -> None:
        """A frame of a node came; if the node restarted, its count is cleared."""
        if origin.incarnation != self._lives.get(origin.node, 0):
            self._lives[origin.node] = origin.incarnation
            self._counts.pop(origin.node, None)
            self.paused.discard(origin.node)
