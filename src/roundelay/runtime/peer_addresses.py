"""The addresses of a node's peers, and how it finds peers that moved.

Theory of operation
===================

The setting `peers` gives an address for every node. Members of the view are at their known
addresses, or they would not be members. So a node searches only for the others, every second.

The name of a host is looked up again, in a thread, to find a peer at the new address behind it. A
name that does not resolve does not end a node: it may resolve a moment later.

A peer that speaks from another address than we know, because its port changed say, hears nothing of
us, since our frames go to the old address. A node that hears nothing of a peer sends it a `here`.
The peer then asks, with a nonce, both at the address that the `here` came from and at the one that
it knows, and takes the new one only if the new one answers and the old one does not. So a forged
frame moves no node, and a node that is still at its old address is not moved either. An attacker
that can read and answer datagrams at its own address can still pose as a node that is silent, if
the group has no key. If it has one, only a peer that has proven to be alive is heard at all.
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
"""Least time between two look-ups of a name, in seconds. Too small: name servers are kept busy; too
large: a peer behind a new address is found late."""
TRIAL_S = 0.5
"""How long the old and the new address of a peer have to answer, in seconds. Too small: a slow
answer from the old address comes too late, and the peer is moved by mistake; too large: a peer that
moved is found late."""
NONCE_BITS = 63

Send = Callable[[bytes, SocketAddress], None]


class _Trial:
    """A peer may have moved: its old and its new address were asked."""

    __slots__ = ("address", "fresh", "known", "proved")

    def __init__(self, address: SocketAddress, fresh: int, known: int) -> None:
        self.address = address
        self.fresh = fresh
        """The nonce that was sent to the new address only."""
        self.known = known
        """The nonce that was sent to the known address only."""
        self.proved = False
        """Whether the new address has answered."""


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
        """`peers` are the other nodes; `found` has the addresses that are known already."""
        self.addresses: dict[NodeId, SocketAddress] = dict(found)
        """The address of each peer, where it is known."""
        self._configured: dict[NodeId, SocketAddress] = dict(found)
        """What `peers` says, where it resolves; a peer may have been found elsewhere since."""
        self.peers = peers
        """The other nodes and their addresses by the setting `peers`."""
        self._boot = boot
        self._machine = machine
        self._family = family
        self._node_log = node_log
        self._resolved: dict[NodeId, SocketAddress | None] = {
            peer: found.get(peer) for peer, address in peers.items() if not is_literal(address)
        }
        """The address that each name stood for when it was last looked up."""
        self._lookups: dict[NodeId, float] = {}
        """When the last look-up of a name ended, on the clock; infinite while one is under way."""
        self._trials: dict[NodeId, _Trial] = {}
        self._send: Send = lambda data, address: None
        self._moved: Callable[[], None] = lambda: None
        self.on_answer: Callable[[Origin, int], None] = lambda origin, nonce: None
        """Called with the origin and the nonce of every answer."""
        self.on_taken: Callable[[int], None] = lambda life: None
        """Called when a peer says that another node uses the name of this one, with the number of
        the life that the peer means."""
        for peer, address in self._resolved.items():
            if address is None:
                node_log.unresolved(peer, peers[peer], LOOKUP_S)

    def serve(self, send: Send, moved: Callable[[], None]) -> None:
        """Use `send` from now on, and call `moved` after every change of `addresses`."""
        self._send, self._moved = send, moved

    def places(self, peer: NodeId) -> set[SocketAddress]:
        """Where a peer is known to be, and where it should be."""
        known = self.addresses.get(peer), self._configured.get(peer)
        return {address for address in known if address is not None}

    def search(self, members: Collection[NodeId]) -> None:
        """Search for peers that are not among the `members` of the view; called every second."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for peer, address in self.peers.items():
            if peer in members:
                continue
            if peer in self.addresses:
                self._send_probe(Probe(ProbeKind.HERE, peer), self.addresses[peer])
            if peer in self._resolved and now >= self._lookups.get(peer, 0.0) + LOOKUP_S:
                self._lookups[peer] = float("inf")
                look_up(
                    self._machine,
                    address,
                    self._family,
                    lambda found, peer=peer: self._on_lookup(peer, found),  # type: ignore[misc]
                )

    def _on_lookup(self, peer: NodeId, found: SocketAddress | None) -> None:
        """A name was looked up. If it stands for the same address as before, the address that a
        probe has found since then stays."""
        self._lookups[peer] = asyncio.get_running_loop().time()
        if found is not None and found != self._resolved[peer]:
            self._resolved[peer] = self._configured[peer] = found
            self._move(peer, found)

    def receive(self, data: bytes, source: SocketAddress | None) -> None:
        """Handle a datagram with a probe that came from `source`, None if that is not known."""
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
                    self._try_address(peer, source)
            case ProbeKind.ASK:
                answer = Probe(ProbeKind.ANSWER, peer, probe.nonce)
                for address in {source, self.addresses.get(peer)} - {None}:
                    assert address is not None
                    self._send_probe(answer, address)
            case ProbeKind.ANSWER:
                self._on_answer(peer, probe.nonce)
                self.on_answer(origin, probe.nonce)
            case ProbeKind.TAKEN:
                self.on_taken(probe.nonce)

    def ask(self, peer: NodeId) -> int:
        """Ask a peer to prove that it is at its known address; returns the nonce."""
        nonce = self._machine.random_bits(NONCE_BITS)
        if peer in self.addresses:
            self._send_probe(Probe(ProbeKind.ASK, peer, nonce), self.addresses[peer])
        return nonce

    def tell_taken(self, peer: NodeId, life: int, address: SocketAddress | None) -> None:
        """Tell a life of a peer that another node uses its name."""
        address = address or self.addresses.get(peer)
        if address is not None:
            self._send_probe(Probe(ProbeKind.TAKEN, peer, life), address)

    def _try_address(self, peer: NodeId, source: SocketAddress) -> None:
        """Ask whether a peer is at `source`, and whether it is not at its known address."""
        if peer in self._trials:
            return  # One trial at a time.
        nonce = self._machine.random_bits
        trial = _Trial(source, nonce(NONCE_BITS), nonce(NONCE_BITS))
        self._trials[peer] = trial
        self._send_probe(Probe(ProbeKind.ASK, peer, trial.fresh), source)
        if peer in self.addresses:
            self._send_probe(Probe(ProbeKind.ASK, peer, trial.known), self.addresses[peer])
        asyncio.get_running_loop().call_later(TRIAL_S, self._end_trial, peer, trial)

    def _on_answer(self, peer: NodeId, nonce: int) -> None:
        trial = self._trials.get(peer)
        if trial is None:
            return
        if nonce == trial.known:
            del self._trials[peer]  # It is still at its known address.
        elif nonce == trial.fresh:
            trial.proved = True

    def _end_trial(self, peer: NodeId, trial: _Trial) -> None:
        if self._trials.get(peer) is not trial:
            return  # It ended early.
        del self._trials[peer]
        if trial.proved:
            self._move(peer, trial.address)

    def _move(self, peer: NodeId, address: SocketAddress) -> None:
        if self.addresses.get(peer) != address:
            self.addresses[peer] = address
            self._node_log.moved(peer, address)
            self._moved()

    def _send_probe(self, probe: Probe, address: SocketAddress) -> None:
        self._send(encode_probe(self._boot, probe), address)


def look_up(
    machine: Machine,
    address: Address,
    family: int,
    on_found: Callable[[SocketAddress | None], None],
) -> None:
    """Look a name up in a thread of its own, and call `on_found` in the event loop with the
    address, or with None. The thread does not keep the process alive: a name server that does not
    answer would otherwise hold up its end for long."""
    loop = asyncio.get_running_loop()

    def work() -> None:
        try:
            found: SocketAddress | None = machine.resolve(address, family)[1]
        except AddressError:
            found = None
        with contextlib.suppress(RuntimeError):  # The event loop has ended.
            loop.call_soon_threadsafe(on_found, found)

    threading.Thread(target=work, name=f"look up {address.host}", daemon=True).start()
