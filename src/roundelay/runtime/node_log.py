"""The log of a node: what happens to it, as sentences for people."""

import logging
import time
from collections.abc import Callable, Sequence

from roundelay.core.effects import Install, Suspect
from roundelay.core.ids import NodeId
from roundelay.core.log import KeptLog, LogStatus
from roundelay.runtime.happened import Happened
from roundelay.transport.address import Address, SocketAddress

log = logging.getLogger("roundelay")

REPEAT_S = 10.0
"""Seconds within which a warning of one kind is not repeated. Too small: the log fills with one
warning; too large: nobody can tell whether it still holds."""
STANDING_S = 60.0
"""The same for warnings about names and settings, which hold until somebody acts. For so long after
its cause was last seen, `status` shows a warning."""
VIEWS_S = 10.0
"""Views are counted for so many seconds, and then from 0 again: see `VIEWS_TOLD`."""
VIEWS_TOLD = 5
"""Views within `VIEWS_S` that have a line each in the log; all further ones share one line at its
end. Too small: an ordinary start of a group is not told in full; too large: a group whose views
change without end fills the log."""
KINDS_MAX = 200
"""Kinds of warnings that are remembered; then all are forgotten. Some kinds contain a peer's name,
so forged names could otherwise fill the memory. Too small: warnings are repeated too early."""
LONG_AGO = 10
"""If a member that is gone was last heard more than so many timeouts ago, the log does not say
when: it spoke to other members only, so this node cannot know when it fell silent."""


NO_KEY = (
    "no key is set, so whoever reaches the port of this node can read along and be a member; make "
    "one with `roundelay keygen`, and set key"
)


class NodeLog:
    """Writes what changed, the likely cause, and the setting to look at."""

    def __init__(
        self,
        group: str,
        node: NodeId,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.happened = Happened()
        """The same sentences, for those who watch the node."""
        self._name = f"{group}/{node}"
        self._node = node
        self._timeout_ms = timeout_s * 1e3
        self._members: tuple[NodeId, ...] = ()
        self._suspicion: Suspect | None = None
        self._restarted: set[NodeId] = set()
        """Peers that were heard in a new life since the last view."""
        self._primary = False
        self._last: dict[str, float] = {}
        """When a warning of each kind was last written."""
        self._standing: dict[str, tuple[float, str]] = {}
        """When the cause of a warning was last seen, and its words; for `status`."""
        self._unread: dict[SocketAddress, float] = {}
        """Where datagrams came from that this node cannot read, and when the last one did."""
        self.silence_s: Callable[[NodeId], float | None] = lambda node: None
        """How long a peer was not heard; None if that is not known."""
        self._clock = clock
        self._views_since = -VIEWS_S
        """When the present count of views began, on the clock."""
        self._views = 0
        self._log_told: tuple[object, ...] = ()
        """What the log of this class last said of the replicated log."""
        self._quota = VIEWS_TOLD
        """How many views of the present count have a line of their own."""
        self._untold = ""
        """The words for the last view that had no line; empty if there is none."""

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
        whom = f"{', '.join(effect.members)}: " if effect.members else ""
        self.happened.add("suspicion", whom + effect.reason, members=list(effect.members))

    def install(self, effect: Install) -> None:
        view = effect.view
        if view.transitional:
            return
        self.sum_up_views()
        gone = [member for member in self._members if member not in view.members]
        come = [member for member in view.members if member not in self._members]
        come = [member for member in come if member != self._node]
        said = f"view {view.id} of {', '.join(view.members)}"
        if not view.primary:
            said += f", not primary ({effect.why})" if effect.why else ", not primary"
        if gone:
            said += f"; {', '.join(gone)} gone{self._cause(gone)}"
        if come:
            said += f"; {', '.join(come)} joined"
        same = self._members == view.members
        alone = len(view.members) == 1
        if same and not alone:
            said += f"; the same members again{self._cause(())}"
        news = not same or not alone or view.primary != self._primary
        if news:
            told = {"members": list(view.members), "primary": view.primary}
            self.happened.add("view", said, view=str(view.id), gone=gone, come=come, **told)
        self._members = view.members
        self._primary = view.primary
        self._suspicion = None
        self._restarted.clear()
        if not news:
            return  # A node that is alone, as before.
        self._views += 1
        if self._views > self._quota:
            self._untold = said
        else:
            log.info("%s: %s", self._name, said)

    def sum_up_views(self, *, last: bool = False) -> None:
        """Write one line for the views that had none, if their time is over; called every second or
        so, and once with `last` when the node ends."""
        now = self._clock()
        if now - self._views_since < VIEWS_S and not last:
            return
        if self._untold:
            span_s = min(VIEWS_S, now - self._views_since)
            log.info(
                "%s: %d views in %.0f s, the last: %s",
                self._name,
                self._views,
                span_s,
                self._untold,
            )
        self._quota = 1 if self._untold else VIEWS_TOLD  # There are likely to be more.
        self._views = 0
        self._views_since = now
        self._untold = ""

    def _cause(self, gone: Sequence[NodeId]) -> str:
        """Why the last view ended; `gone` were its members and are not in the next one."""
        suspicion = self._suspicion
        if suspicion is not None and suspicion.members:
            return f": {suspicion.reason} ({', '.join(suspicion.members)})"
        if not gone:
            if self._restarted:
                return f": {', '.join(sorted(self._restarted))} restarted"
            if suspicion is not None:
                return f": {suspicion.reason}{self._advice()}"
            return ": another member asked for it"
        noticed = "" if suspicion is None else f"{suspicion.reason}; "
        return f": {noticed}{'; '.join(map(self._silence, gone))}{self._advice()}"

    def _silence(self, node: NodeId) -> str:
        """What is known of when a node fell silent that is gone."""
        silence_s = self.silence_s(node)
        timeout_s = self._timeout_ms / 1e3
        if silence_s is None or silence_s > LONG_AGO * timeout_s:
            return f"{node} stopped answering"
        if silence_s < timeout_s / 4:
            return f"{node} is heard here, but not by another member"
        return f"{node} stopped answering, and was last heard {silence_s:.1f} s ago"

    def _advice(self) -> str:
        return f" (if all were well, raise timeout_s, now {self._timeout_ms:.0f} ms)"

    def restarted(self, node: NodeId) -> None:
        """A peer is heard in another life than before."""
        self.happened.add("restart", f"{node} restarted", members=[node])
        self._restarted.add(node)

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

    def stranger(self, node: NodeId, source: SocketAddress | None = None) -> None:
        self._warn(
            "stranger",
            f"frames of {node!r}{_at(source)} are ignored, since peers does not list that node; "
            "add it, or give its group another name",
            STANDING_S,
        )

    def settings(self, node: NodeId, sentence: str) -> None:
        """A peer has other settings, in words."""
        self._warn(f"settings {node}", sentence, STANDING_S)

    def peers(self, node: NodeId, sentence: str) -> None:
        """A peer has another list of peers, in words."""
        self._warn(f"peers {node}", sentence, STANDING_S)

    def version(self, theirs: int, ours: int, source: SocketAddress | None) -> None:
        self._warn(
            "version",
            f"datagrams of version {theirs} came{_from(source)}, this node speaks version {ours}: "
            "run the same release of Roundelay at every node",
            STANDING_S,
        )

    def never_heard(self, node: NodeId, address: str) -> None:
        """Nothing was heard of a peer since this node started; called every second while that
        holds."""
        self._warn(
            f"never {node}",
            f"{node} at {address} was never heard: does it run, and is the port right?",
            float("inf"),
        )

    def heard(self, node: NodeId) -> None:
        """A peer is heard for the first time."""
        self._standing.pop(f"never {node}", None)

    def wrong_group(self, count: int) -> None:
        self._warn(
            "group",
            f"{count} datagrams of another group came to this port; check the group's name and the "
            "peers of whoever sends them",
        )

    def twins(self, node: NodeId, source: SocketAddress | None = None) -> None:
        """Two nodes have one name; `source` is the address of the one that is not let in."""
        where = "" if source is None else f", the newer one{_at(source)}"
        self._warn(
            f"twins {node}",
            f"two nodes call themselves {node!r}{where}; stop one of them, or give it another name",
            STANDING_S,
        )

    def no_key(self) -> None:
        """This node seals nothing."""
        log.warning("%s: %s", self._name, NO_KEY)

    def plain_peer(self, source: SocketAddress | None) -> None:
        self._warn_unread(
            source,
            "plain",
            f"datagrams without a seal came{_from(source)}, and this node has a key: start every "
            "node with the same key file, or none with one",
        )

    def sealed_peer(self, source: SocketAddress | None) -> None:
        self._warn_unread(
            source,
            "sealed",
            f"sealed datagrams came{_from(source)}, and this node has no key: start it with the "
            "key file of its group",
        )

    def other_key(self, source: SocketAddress | None) -> None:
        self._warn_unread(
            source,
            "key",
            f"datagrams under another key came{_from(source)}: give this node and that one the "
            "same key file, then run `roundelay key reload`, or restart them",
        )

    def nobodys_key(self, source: SocketAddress | None) -> None:
        """Of the groups that share a port, none has the key of a datagram."""
        self._warn_unread(
            source,
            "key",
            f"datagrams came{_from(source)} under a key that no group on this port has: give the "
            "nodes of each group one key file, then run `roundelay key reload`, or restart them",
        )

    def sealed_stranger(self, source: SocketAddress | None) -> None:
        self._warn_unread(
            source,
            "sealed stranger",
            f"datagrams under the key of the group came{_from(source)} whose sender is not among "
            "the peers of this node: give every node the same peers",
        )

    def own_name(self, source: SocketAddress | None) -> None:
        self._warn(
            "own name",
            f"datagrams under the name of this node came{_from(source)}: a second node of that "
            "name, which gets nowhere, or somebody who repeats old datagrams",
            STANDING_S,
        )

    def seal_version(self, version: int, cipher: int, source: SocketAddress | None) -> None:
        self._warn_unread(
            source,
            "seal version",
            f"datagrams with a seal of version {version}, cipher {cipher}, came{_from(source)}, "
            "which this node cannot open: run the same release of Roundelay at every node",
        )

    def _warn_unread(self, source: SocketAddress | None, kind: str, sentence: str) -> None:
        """Warn that what came from `source` cannot be read by this node at all."""
        if source is not None:
            if len(self._unread) >= KINDS_MAX:
                self._unread.clear()
            self._unread[source] = self._clock()
        self._warn(kind, sentence, STANDING_S)

    def unread(self, source: SocketAddress | None) -> bool:
        """Whether datagrams came from there lately that this node cannot read: whoever is there
        runs, and a warning has said what is wrong."""
        last = None if source is None else self._unread.get(source)
        return last is not None and self._clock() < last + STANDING_S

    def keys_changed(self, count: int) -> None:
        log.info(
            "%s: the key was changed%s",
            self._name,
            "; the old one is accepted for a while" if count > 1 else "",
        )

    def unresolved(self, node: NodeId, address: Address, every_s: float) -> None:
        log.warning(
            "%s: %r, the host of peer %r, does not resolve; it is asked for every %.0f s, so start "
            "its name server or correct peers",
            *(self._name, address.host, node, every_s),
        )

    def moved(self, node: NodeId, address: SocketAddress) -> None:
        sentence = f"peer {node!r} is at {Address(*address[:2])} now"
        log.info("%s: %s", self._name, sentence)
        self.happened.add("address", sentence)

    def trouble(self, sentence: str) -> None:
        """Something failed that the group can do without."""
        log.error("%s: %s", self._name, sentence)
        self.happened.add("trouble", sentence)

    # The replicated log

    def journal(self, kept: KeptLog, length: int, path: object, fsync: str) -> None:
        """A node starts, whose journal holds entries up to `length`."""
        held = f"entries {kept.first} to {length - 1}" if length > kept.first else "no entries"
        votes = "it votes" if kept.able else f"it does not vote yet ({kept.why})"
        log.info(
            "%s: the journal %s, fsync %s, holds %s, %d committed; %s",
            *(self._name, path, fsync, held, kept.committed, votes),
        )

    def log_changed(self, status: LogStatus) -> None:
        """The log opens or closes, or this node's part in it changes."""
        told = (status.state, status.condition, status.term)
        if told == self._log_told:
            return
        self._log_told = told
        why = f"; {status.why}" if status.why else ""
        sentence = (
            f"the log is {status.state}, this node is {status.condition}; {status.length} entries, "
            f"{status.committed} committed{why}"
        )
        log.info("%s: %s", self._name, sentence)
        self.happened.add("log", sentence, state=status.state)

    def disk_full(self) -> None:
        self._warn(
            "disk full",
            "the journal's disk is full, so this node stores nothing and cannot confirm what is "
            "appended; the others go on without it: free some space, or set retain_bytes",
            STANDING_S,
        )

    def disk_behind(self, waiting_bytes: int, sync_s: float) -> None:
        """What is to be stored is more than the journal's disk takes; called every second."""
        self._warn(
            "disk behind",
            f"{waiting_bytes / 2**20:.0f} MB wait for the journal's disk, whose last sync took "
            f"{sync_s * 1e3:.0f} ms, so this node stores nothing more until it has caught up; the "
            "others go on without it: see what else uses the disk, or take a faster one",
            STANDING_S,
        )

    def unreadable(self, sentence: str) -> None:
        self._warn("unreadable", sentence, STANDING_S)

    def snapshot_damaged(self, sentence: str) -> None:
        self._warn("snapshot damaged", sentence, STANDING_S)

    def no_snapshot(self, why: str) -> None:
        self._warn(
            "no snapshot", f"no snapshot was stored ({why}); it is tried again later", STANDING_S
        )

    def machine_failed(self, index: int, error: Exception) -> None:
        log.error(
            "%s: the machine failed at entry %d; it fails at every node alike: correct it, and "
            "start the nodes again",
            *(self._name, index),
            exc_info=error,
        )

    def slow_disk(self) -> None:
        log.error("%s: the disk does not end its last sync; the journal stays locked", self._name)

    def _warn(self, kind: str, sentence: str, repeat_s: float = REPEAT_S) -> None:
        now = self._clock()
        if kind not in self._standing and len(self._standing) >= KINDS_MAX:
            self._standing.clear()
        self._standing[kind] = (now, sentence)
        last = self._last.get(kind)
        if last is None or now - last >= repeat_s:
            if len(self._last) >= KINDS_MAX:
                self._last.clear()
            self._last[kind] = now
            log.warning("%s: %s", self._name, sentence)
            self.happened.add("warning", sentence, about=kind.partition(" ")[0])

    def warnings(self) -> list[str]:
        """What is wrong now, or was within the last minute, in the words of the log."""
        now = self._clock()
        self._standing = {
            kind: (when, sentence)
            for kind, (when, sentence) in self._standing.items()
            if now - when < STANDING_S
        }
        return [sentence for _, sentence in self._standing.values()]


def _at(source: SocketAddress | None) -> str:
    return "" if source is None else f" at {Address(*source[:2])}"


def _from(source: SocketAddress | None) -> str:
    return "" if source is None else f" from {Address(*source[:2])}"
