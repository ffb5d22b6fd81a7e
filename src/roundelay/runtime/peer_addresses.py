"""Where the peers of a node are, and how it finds those that moved.

Theory of operation
===================

`peers` says where to look for everybody. Members of the view are where they are thought to be, or
they would not be members; only the others are looked for, every few seconds.

A *name* is looked up again, in a thread, so that a peer is found at the new address behind it. One
that does not resolve is no reason to end: it may in a moment.

A peer that speaks from another address than we know, say because its port changed, cannot be
answered, and so hears nothing of us. Whoever hears nothing of a peer sends it a `here`. The peer
then asks, with a nonce, both at the address that the `here` came from and at the one that it knows,
and takes the new one only if that answers and the old one does not. So a forged frame moves nobody,
and nobody is moved who is where it was. Whoever can read and answer datagrams at its own address
can still pose as a node that is silent: frames are not signed.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Mapping

from roundelay.core.contract import Boot, Origin
from roundelay.core.ids import NodeId
from roundelay.runtime.machine import Machine
from roundelay.runtime.node_log import NodeLog
from roundelay.runtime.probe import Probe, ProbeKind, decode_probe, encode_probe
from roundelay.transport.address import Address, AddressError, SocketAddress, is_literal
from roundelay.wire.primitives import WireError

LOOKUP_S = 2.0
"""Between two look-ups of a name."""
TRIAL_S = 0.5
"""For answers to come, before the new address of a peer is taken for true."""
NONCE_BITS = 63

Send = Callable[[bytes, SocketAddress], None]


class _Trial:
    """A peer may have moved: both addresses were asked."""

    __slots__ = ("address", "fresh", "known", "proved")

    def __init__(self, address: SocketAddress, fresh: int, known: int) -> None:
        self.address = address
        self.fresh = fresh
        """The nonce that only the new address was sent ..."""
        self.known = known
        """... and the one that only the known address was."""
        self.proved = False


class PeerAddresses:
    """The addresses of the other nodes of one group."""

    def __init__(
        self,
        boot: Boot,
        peers: Mapping[NodeId, Address],
        machine: Machine,
        family: int,
        node_log: NodeLog,
        found: Mapping[NodeId, SocketAddress],
    ) -> None:
        """`peers` are the other nodes, and `found` those whose addresses are known already."""
        self.addresses: dict[NodeId, SocketAddress] = dict(found)
        """Where each is, as far as it is known."""
        self.peers = peers
        """The other nodes, and where `peers` says they are."""
        self._boot = boot
        self._machine = machine
        self._family = family
        self._node_log = node_log
        self._resolved: dict[NodeId, SocketAddress | None] = {
            peer: found.get(peer) for peer, address in peers.items() if not is_literal(address)
        }
        """What each name stood for when it was last looked up."""
        self._lookups: dict[NodeId, float] = {}
        """When each was begun; infinite while it lasts."""
        self._trials: dict[NodeId, _Trial] = {}
        self._send: Send = lambda data, address: None
        self._moved: Callable[[], None] = lambda: None
        self.answered: Callable[[Origin, int], None] = lambda origin, nonce: None
        """Told of every answer, ..."""
        self.taken: Callable[[int], None] = lambda life: None
        """... and when a peer says that another node uses the name of this one."""
        for peer, address in self._resolved.items():
            if address is None:
                node_log.unresolved(peer, peers[peer], LOOKUP_S)

    def serve(self, send: Send, moved: Callable[[], None]) -> None:
        """Use `send` from now on, and call `moved` after every change of `addresses`."""
        self._send, self._moved = send, moved

    def look(self, members: Collection[NodeId]) -> None:
        """Look for everybody who is not among `members` of the view; called every second or so."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for peer, address in self.peers.items():
            if peer in members:
                continue
            if peer in self.addresses:
                self._tell(Probe(ProbeKind.HERE, peer), self.addresses[peer])
            if peer in self._resolved and now >= self._lookups.get(peer, 0.0) + LOOKUP_S:
                self._lookups[peer] = float("inf")
                look_up(
                    self._machine,
                    address,
                    self._family,
                    lambda found, peer=peer: self._answered(peer, found),  # type: ignore[misc]
                )

    def _answered(self, peer: NodeId, found: SocketAddress | None) -> None:
        """A name was looked up. If it stands for what it stood for, what was proved since stays."""
        self._lookups[peer] = asyncio.get_running_loop().time()
        if found is not None and found != self._resolved[peer]:
            self._resolved[peer] = found
            self._move(peer, found)

    def receive(self, data: bytes, source: SocketAddress | None) -> None:
        """A datagram with a probe came from there; `source` is None if that is not known."""
        try:
            origin, probe = decode_probe(data)
        except WireError:
            return
        peer = origin.node
        if origin.group != self._boot.group or probe.to != self._boot.node:
            return
        if peer not in self.peers:
            return
        match probe.kind:
            case ProbeKind.HERE:
                if source is not None and source != self.addresses.get(peer):
                    self._ask(peer, source)
            case ProbeKind.ASK:
                answer = Probe(ProbeKind.ANSWER, peer, probe.nonce)
                for address in {source, self.addresses.get(peer)} - {None}:
                    assert address is not None
                    self._tell(answer, address)
            case ProbeKind.ANSWER:
                self._on_answer(peer, probe.nonce)
                self.answered(origin, probe.nonce)
            case ProbeKind.TAKEN:
                self.taken(probe.nonce)

    def ask(self, peer: NodeId) -> int:
        """Ask a peer to prove that it is where it is thought to be; returns the nonce."""
        nonce = self._machine.random_bits(NONCE_BITS)
        if peer in self.addresses:
            self._tell(Probe(ProbeKind.ASK, peer, nonce), self.addresses[peer])
        return nonce

    def tell_taken(self, peer: NodeId, life: int, address: SocketAddress | None) -> None:
        """Tell a life of a peer that another node uses its name."""
        address = address or self.addresses.get(peer)
        if address is not None:
            self._tell(Probe(ProbeKind.TAKEN, peer, life), address)

    def _ask(self, peer: NodeId, source: SocketAddress) -> None:
        """Is it there, and is it not where it was?"""
        if peer in self._trials:
            return  # One at a time.
        nonce = self._machine.random_bits
        trial = _Trial(source, nonce(NONCE_BITS), nonce(NONCE_BITS))
        self._trials[peer] = trial
        self._tell(Probe(ProbeKind.ASK, peer, trial.fresh), source)
        if peer in self.addresses:
            self._tell(Probe(ProbeKind.ASK, peer, trial.known), self.addresses[peer])
        asyncio.get_running_loop().call_later(TRIAL_S, self._end_trial, peer, trial)

    def _on_answer(self, peer: NodeId, nonce: int) -> None:
        trial = self._trials.get(peer)
        if trial is None:
            return
        if nonce == trial.known:
            del self._trials[peer]  # It is where it was.
        elif nonce == trial.fresh:
            trial.proved = True

    def _end_trial(self, peer: NodeId, trial: _Trial) -> None:
        if self._trials.get(peer) is not trial:
            return  # It came to its end before its time.
        del self._trials[peer]
        if trial.proved:
            self._move(peer, trial.address)

    def _move(self, peer: NodeId, address: SocketAddress) -> None:
        if self.addresses.get(peer) != address:
            self.addresses[peer] = address
            self._node_log.moved(peer, address)
            self._moved()

    def _tell(self, probe: Probe, address: SocketAddress) -> None:
        self._send(encode_probe(self._boot, probe), address)


def look_up(
    machine: Machine,
    address: Address,
    family: int,
    tell: Callable[[SocketAddress | None], None],
) -> None:
    """Look a name up, in a thread of its own, and tell the event loop what was found. The process
    may end meanwhile: name servers that do not answer are waited for long."""
    loop = asyncio.get_running_loop()

    def work() -> None:
        try:
            found: SocketAddress | None = machine.resolve(address, family)[1]
        except AddressError:
            found = None
        with contextlib.suppress(RuntimeError):  # The event loop has ended.
            loop.call_soon_threadsafe(tell, found)

    threading.Thread(target=work, name=f"look up {address.host}", daemon=True).start()
