"""Nodes that hear nothing of us, and how long we leave them alone.

A node that is there but does not receive would be readmitted by its Joins as soon as it was
expelled, and expelled again at the next message, for ever. So whoever was expelled more than once
is not merged with for a while, which doubles every time. A view that lasts, and a restart, make a
clean record.
"""

from collections.abc import Iterable

from roundelay.core.contract import Origin
from roundelay.core.ids import NodeId


class Expulsions:
    """Whom this node helped to expel, and whom it leaves alone now."""

    def __init__(self, pause_s: float, pause_max_s: float) -> None:
        self.paused: set[NodeId] = set()
        self._pause_s = pause_s
        self._pause_max_s = pause_max_s
        self._deaf: set[NodeId] = set()
        self._times: dict[NodeId, int] = {}
        self._lives: dict[NodeId, int] = {}

    @property
    def any(self) -> bool:
        return bool(self._times)

    def accuse(self, nodes: Iterable[NodeId]) -> None:
        """These are being expelled, not for silence but for not hearing us."""
        self._deaf.update(nodes)

    def settle(self, gone: Iterable[NodeId]) -> list[tuple[NodeId, float]]:
        """A view was installed without `gone`; says whom to leave alone, and for how long."""
        pauses = []
        for node in sorted(self._deaf.intersection(gone)):
            times = self._times[node] = self._times.get(node, 0) + 1
            if times > 1:
                self.paused.add(node)
                pause = self._pause_s * 2.0 ** (times - 2)
                pauses.append((node, min(pause, self._pause_max_s)))
        self._deaf = set()
        return pauses

    def forgive(self, nodes: Iterable[NodeId]) -> None:
        for node in nodes:
            self._times.pop(node, None)

    def resume(self, node: NodeId) -> None:
        self.paused.discard(node)

    def meet(self, origin: Origin) -> None:
        """Somebody shows up; if it restarted, nothing is held against it."""
        if origin.incarnation != self._lives.get(origin.node, 0):
            self._lives[origin.node] = origin.incarnation
            self._times.pop(origin.node, None)
            self.paused.discard(origin.node)
