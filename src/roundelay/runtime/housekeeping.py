"""What a node does once a second: search for peers, warn in its log, flush its files."""

import asyncio
from collections.abc import Callable

from roundelay.runtime.deliveries import Deliveries
from roundelay.runtime.instruments import Instruments
from roundelay.runtime.known_peers import KnownPeers
from roundelay.runtime.peer_addresses import PeerAddresses

EVERY_S = 1.0
"""Seconds between two rounds. Too small: the event loop is woken for nothing; too large: a peer
that moved is found late, and a killed node loses as much of its record and its trace."""
NEVER_HEARD_S = 5.0
"""Seconds after the start before the log names peers that were never heard. Too small: it names
those that are only started a little later; too large: a wrong address is noticed late."""
REPEATS_SHARE = 0.1
"""The share of packets within one round that came more than once, above which the log warns. Too
small: it warns of ordinary losses; too large: a network that loses much goes unnoticed."""
REPEATS_PACKETS = 200
"""Packets within one round below which the log does not warn of repeats: a share of few packets
says little. Too large: a quiet group on a bad network gets no warning."""


class Housekeeping:
    """The periodic work of one node."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deliveries: Deliveries,
        known_peers: KnownPeers,
        peer_addresses: PeerAddresses,
        instruments: Instruments,
        more: Callable[[], None] = lambda: None,
    ) -> None:
        """`more` is called once a round too."""
        self._loop = loop
        self._deliveries = deliveries
        self._known_peers = known_peers
        self._peer_addresses = peer_addresses
        self._instruments = instruments
        self._more = more
        self._meter = instruments.meter
        self._node_log = instruments.node_log
        self._started = loop.time()
        self._next: asyncio.TimerHandle | None = None
        self._counted = (0, 0)
        """Packets received, and packets of others delivered, by the end of the last round."""

    def start(self) -> None:
        self._next = self._loop.call_later(EVERY_S, self._round)

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _round(self) -> None:
        self._next = self._loop.call_later(EVERY_S, self._round)
        self._peer_addresses.search(self._deliveries.members)
        self._node_log.sum_up_views()
        self._warn_of_never_heard()
        self._warn_of_repeats()
        self._instruments.flush()
        self._more()

    def _warn_of_never_heard(self) -> None:
        if self._loop.time() - self._started >= NEVER_HEARD_S:
            where = self._peer_addresses
            for peer in self._known_peers.never_heard():
                if not self._node_log.unread(where.addresses.get(peer)):
                    self._node_log.never_heard(peer, str(where.peers[peer]))

    def _warn_of_repeats(self) -> None:
        meter = self._meter
        received, delivered = meter.packets_received, meter.packets_delivered - meter.packets_own
        new_received, new_delivered = received - self._counted[0], delivered - self._counted[1]
        self._counted = (received, delivered)
        repeated = new_received - new_delivered
        if new_received >= REPEATS_PACKETS and repeated > new_received * REPEATS_SHARE:
            self._node_log.repeats(repeated, new_received)
