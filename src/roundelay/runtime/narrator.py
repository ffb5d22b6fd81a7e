"""What happens to a node, as sentences for its log."""

import logging
import time

from roundelay.core.effects import Suspect
from roundelay.core.ids import NodeId, View

log = logging.getLogger("roundelay")

REPEAT_S = 10.0
"""A warning of one kind is not repeated within this time."""


class Narrator:
    """Tells one node's story: what changed, the likely cause, the setting to look at."""

    def __init__(self, group: str, node: NodeId, timeout_s: float) -> None:
        self._name = f"{group}/{node}"
        self._node = node
        self._timeout_ms = timeout_s * 1e3
        self._members: tuple[NodeId, ...] = ()
        self._suspicion: Suspect | None = None
        self._last: dict[str, float] = {}

    def listening(self, address: object, datagram_bytes: int, incarnation: int) -> None:
        log.info(
            "%s listens on %s, datagrams of up to %d bytes, incarnation %d",
            self._name,
            address,
            datagram_bytes,
            incarnation,
        )

    def small_buffer(self, size: int, window: int, wanted: int) -> None:
        """The system's limit on receive buffers costs throughput."""
        log.warning(
            "%s: the receive buffer is %d KB, so that only %d packets of %d wanted may be under "
            "way; raise the limit with: sysctl -w net.core.rmem_max=4194304",
            self._name,
            size // 1024,
            window,
            wanted,
        )

    def suspect(self, effect: Suspect) -> None:
        self._suspicion = effect

    def install(self, view: View) -> None:
        if view.transitional:
            return
        gone = [member for member in self._members if member not in view.members]
        come = [member for member in view.members if member not in self._members]
        come = [member for member in come if member != self._node]
        said = f"{self._name}: view {view.id} of {', '.join(view.members)}"
        if not view.primary:
            said += ", not primary"
        if gone:
            said += f"; {', '.join(gone)} gone{self._cause()}"
        if come:
            said += f"; {', '.join(come)} joined"
        if self._members == view.members:
            said += f"; the same members again{self._cause()}"
        self._members = view.members
        self._suspicion = None
        log.info("%s", said)

    def _cause(self) -> str:
        suspicion = self._suspicion
        if suspicion is None:
            return ": another member noticed it, or a member restarted"
        if suspicion.members:
            return f": {suspicion.reason} ({', '.join(suspicion.members)})"
        return (
            f": {suspicion.reason}, which means that a member crashed, was stopped or cannot be "
            f"reached; if all were well, raise timeout_s (now {self._timeout_ms:.0f} ms)"
        )

    def paused(self, duration_s: float) -> None:
        self._warn(
            "pause",
            f"this process did nothing for {duration_s * 1e3:.0f} ms: it was stopped, the machine "
            "is overloaded, or the application holds up the event loop; others give it up after "
            f"timeout_s ({self._timeout_ms:.0f} ms)",
        )

    def slow_reader(self, size: int) -> None:
        self._warn(
            "slow",
            f"{size / 2**20:.1f} MB wait for the application, which slows the whole group down; "
            "read events faster, or in batches",
        )

    def full(self, size: int) -> None:
        self._warn(
            "full",
            f"{size / 2**20:.1f} MB wait for the application, so packets are refused and the group "
            "waits; read events, or raise backlog_bytes, before this node is given up",
        )

    def repeats(self, repeated: int, received: int) -> None:
        """Retransmissions were many among the packets received lately."""
        self._warn(
            "repeats",
            f"{repeated} of {received} packets came more than once: some were lost, here or at "
            "others; look for a full receive buffer (net.core.rmem_max), a smaller datagram_bytes "
            "or a lossy network",
        )

    def stranger(self, node: NodeId) -> None:
        self._warn(
            f"stranger {node}",
            f"frames of {node!r} are ignored, since peers does not list that node; add it, or "
            "give its group another name",
        )

    def wrong_group(self, count: int) -> None:
        self._warn(
            "group",
            f"{count} datagrams of another group came to this port; check the group's name and the "
            "peers of whoever sends them",
        )

    def twins(self, node: NodeId) -> None:
        self._warn(
            f"twins {node}",
            f"two nodes call themselves {node!r}; stop one of them, or give it another name",
        )

    def trouble(self, sentence: str) -> None:
        """Something failed that the group can do without."""
        log.error("%s: %s", self._name, sentence)

    def _warn(self, kind: str, sentence: str) -> None:
        now = time.monotonic()
        if now - self._last.get(kind, -REPEAT_S) >= REPEAT_S:
            self._last[kind] = now
            log.warning("%s: %s", self._name, sentence)
