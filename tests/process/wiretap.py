"""A network that records all datagrams between nodes, and sends them again when it is told to: what
an attacker on the path can do without a key."""

import selectors
import socket
import threading
from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import NamedTuple

from roundelay.transport.address import free_addresses, parse_address

RECEIVE_BUFFER_BYTES = 1 << 20
RECORDED_MAX = 200_000
"""Datagrams that are recorded; then no more are."""


class Recorded(NamedTuple):
    """One datagram."""

    sender: str
    receiver: str
    data: bytes
    carried: bool
    """Whether it reached its receiver."""


class Wiretap:
    """Carries datagrams between these nodes in a thread of its own, until closed."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self.recorded: list[Recorded] = []
        self.cuts: set[tuple[str, str]] = set()
        """Links that carry nothing, as sender and receiver."""
        self._links: dict[tuple[str, str], socket.socket] = {}
        """By sender and receiver: the sender knows its address as the receiver's."""
        self._selector = selectors.DefaultSelector()
        for link in permutations(nodes, 2):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            sock.bind(("127.0.0.1", 0))
            sock.setblocking(False)
            self._links[link] = sock
            self._selector.register(sock, selectors.EVENT_READ, link)
        # Chosen last: what was free before may be a port of the tap when a node starts late.
        addresses = free_addresses(nodes)
        self._targets = {
            node: (parsed.host, parsed.port)
            for node, parsed in ((n, parse_address(text)) for n, text in addresses.items())
        }
        self.peers: dict[str, dict[str, str]] = {node: dict(addresses) for node in addresses}
        """The setting `peers` for each node."""
        for (sender, receiver), sock in self._links.items():
            self.peers[sender][receiver] = f"127.0.0.1:{sock.getsockname()[1]}"
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="wiretap", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        for sock in self._links.values():
            sock.close()
        self._selector.close()

    def cut_off(self, node: str, others: Iterable[str]) -> None:
        """Let nothing pass between a node and these."""
        self.cuts |= {link for other in others for link in ((node, other), (other, node))}

    def send(self, sender: str, receiver: str, data: bytes) -> None:
        """Send a datagram to `receiver` that seems to come from `sender`."""
        self._links[receiver, sender].sendto(data, self._targets[receiver])

    def _run(self) -> None:
        while not self._closing:
            for key, _ in self._selector.select(0.05):
                self._carry(self._links[key.data], *key.data)

    def _carry(self, sock: socket.socket, sender: str, receiver: str) -> None:
        for _ in range(64):
            try:
                data = sock.recv(65_535)
            except BlockingIOError:
                return
            except OSError:
                continue  # Nobody was there to read an earlier one.
            carried = (sender, receiver) not in self.cuts
            if len(self.recorded) < RECORDED_MAX:
                self.recorded.append(Recorded(sender, receiver, data, carried))
            if carried:
                try:
                    self.send(sender, receiver, data)
                except OSError:
                    continue
