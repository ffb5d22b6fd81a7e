"""Whose frames a node hears, and what happens when two nodes have one name.

Frames of peers are heard, frames of strangers are not. A frame under the name of a member of our
view, but of another life, may come from the same node after a restart or from a second node of that
name: `name_conflicts` finds out. A frame under our own name comes from a second node of our name,
or is left over from an earlier life of this one.
"""

from collections.abc import Callable

from roundelay.core.contract import Boot, CoreStatus, Origin
from roundelay.runtime.deliveries import Deliveries
from roundelay.runtime.errors import ClosedError, NameTakenError
from roundelay.runtime.known_peers import KnownPeers
from roundelay.runtime.name_conflicts import NameConflicts, TakenReports
from roundelay.runtime.node_log import NodeLog
from roundelay.runtime.peer_addresses import PeerAddresses
from roundelay.runtime.port import Port


class Admission:
    """Decides which origins of frames one node hears."""

    def __init__(
        self,
        boot: Boot,
        status: CoreStatus,
        port: Port,
        deliveries: Deliveries,
        peer_addresses: PeerAddresses,
        node_log: NodeLog,
        clock: Callable[[], float],
        *,
        answer_s: float,
        receive: Callable[[bytes], None],
        close: Callable[[ClosedError], None],
    ) -> None:
        """A member may take `answer_s` to prove that it is there. `receive` is given a frame that
        was held back and is admitted after all; `close` ends this node if another one has its
        name."""
        self.known_peers = KnownPeers(peer_addresses.peers, node_log, clock)
        self._boot = boot
        self._status = status
        self._port = port
        self._deliveries = deliveries
        self._node_log = node_log
        self._close = close
        self._conflicts = NameConflicts(
            node_log, clock, answer_s, peer_addresses.ask, peer_addresses.tell_taken, receive
        )
        self._taken_reports = TakenReports(clock)
        peer_addresses.on_answer = self._conflicts.on_answer
        peer_addresses.on_taken = self._on_taken
        node_log.silence_s = self.known_peers.silence_s

    def admits(self, origin: Origin, data: bytes | None) -> bool:
        """Whether a frame is heard, of a life that is not the last one heard of its node. `data` is
        the frame, where it can be held back and received later."""
        if origin.node == self._boot.node:
            self._on_namesake(origin)
            return False
        source = self._port.source
        member = self._status.lives.get(origin.node)
        if member is None or member == origin.incarnation:
            return self.known_peers.admits(origin, source)
        allowed = self._conflicts.allows(origin, member, data, source)
        return allowed and self.known_peers.admits(origin, source)

    def _on_namesake(self, origin: Origin) -> None:
        """Somebody else sends under our name: another node, an earlier life of this one whose
        frames are late, or a forger. A node that was ever with others stays in any case."""
        if not self.known_peers.namesake_persists(origin.incarnation):
            return
        if self._deliveries.joined:
            self._node_log.twins(self._boot.node)
        else:
            self._close_for_name()

    def _on_taken(self, life: int) -> None:
        """A peer says that another node has our name. A node that is with others stays."""
        if life != self._boot.incarnation:
            return
        if len(self._deliveries.members) > 1:
            self._node_log.twins(self._boot.node)
            self._taken_reports.reset()
        elif self._taken_reports.count():
            self._close_for_name()

    def _close_for_name(self) -> None:
        self._close(
            NameTakenError(
                f"another node of group {self._boot.group!r} is called {self._boot.node!r} too; "
                "stop it, or give this node another name"
            )
        )
