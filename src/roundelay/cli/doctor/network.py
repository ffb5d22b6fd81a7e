"""Looks at sockets, names and routes, without a word to any other machine but name servers."""

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping

from roundelay.cli.doctor.facts import Buffers, Listening, Loopback, Peer
from roundelay.runtime.client import ClientError, find_control
from roundelay.runtime.settings import Settings
from roundelay.transport.address import (
    Address,
    AddressError,
    SocketAddress,
    is_loopback,
    parse_address,
    resolve,
)
from roundelay.transport.udp import RECEIVE_BUFFER_BYTES, MulticastListener, UdpSocket

LOOKUP_S_MAX = 10.0
"""How many seconds a name may take to resolve before it counts as one that does not. Too small: a
slow name server is taken for none; too large: the command hangs."""
ANSWER_S = 2.0
"""How many seconds a datagram to ourselves may take."""
IP_MTU, IPV6_MTU = 14, 24
"""Options of Linux that Python does not name: the largest packet on the way of a socket."""


def buffers() -> Buffers:
    """What a socket gets that asks for what nodes ask for. Linux tells twice what it gives: half of
    that is for its own use."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        told = []
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            with contextlib.suppress(OSError):  # It keeps its default, which the next line reads.
                sock.setsockopt(socket.SOL_SOCKET, option, RECEIVE_BUFFER_BYTES)
            told.append(sock.getsockopt(socket.SOL_SOCKET, option))
    share = 2 if sys.platform.startswith("linux") else 1
    return Buffers(RECEIVE_BUFFER_BYTES, told[0] // share, told[1] // share)


def loopback(datagram_bytes: int) -> Loopback:
    """Send a datagram as large as those of a node to ourselves."""
    sock = None
    batched = False
    try:
        sock = UdpSocket(Address("127.0.0.1", 0))
        batched = sock.segmented
        failure = _echo(sock, os.urandom(datagram_bytes))
    except (AddressError, OSError) as e:
        failure = str(e)
    finally:
        if sock is not None:
            sock.close()
    return Loopback(datagram_bytes, failure, batched)


def _echo(sock: UdpSocket, data: bytes) -> str:
    sock.send(data, (sock.address,))
    if sock.lost_sends:
        return "the system did not accept it"
    limit = time.monotonic() + ANSWER_S
    while time.monotonic() < limit:
        try:
            return "" if list(sock.receive()) == [data] else "another datagram came back"
        except BlockingIOError:
            time.sleep(0.001)
    return f"it did not come back within {ANSWER_S:g} s"


def listening(told: Settings) -> Listening:
    """Whether the address of a node is free, or in use by that very node."""
    failure = ""
    try:
        UdpSocket(told.listen).close()
    except AddressError as e:
        failure = str(e)
    return Listening(str(told.listen), failure, bool(failure) and _runs(told))


def _runs(told: Settings) -> bool:
    try:
        find_control(told.group, told.node)
    except ClientError:
        return False
    return True


def multicast(told: Settings) -> Listening | None:
    """Whether a node can listen to the multicast address of its settings, if they have one."""
    if told.multicast is None:
        return None
    failure = ""
    try:
        family, local = resolve(told.listen)
        MulticastListener(parse_address(told.multicast), local, family).close()
    except AddressError as e:
        failure = str(e)
    return Listening(told.multicast, failure, runs=False)


def peers(told: Settings) -> tuple[Peer, ...]:
    """Look every name up, all at once, and ask the kernel for the way there. Nothing is sent."""
    addresses = {name: parse_address(text) for name, text in told.peers.items()}
    found: dict[str, tuple[float, SocketAddress | None]] = {}
    threads = [
        threading.Thread(target=_look_up, args=(name, address, found), daemon=True)
        for name, address in addresses.items()
    ]
    for thread in threads:
        thread.start()
    limit = time.monotonic() + LOOKUP_S_MAX
    for thread in threads:
        thread.join(max(0.0, limit - time.monotonic()))
    return tuple(_peer(name, told, address, found) for name, address in addresses.items())


def _look_up(
    name: str, address: Address, found: dict[str, tuple[float, SocketAddress | None]]
) -> None:
    begun = time.monotonic()
    numeric = None
    with contextlib.suppress(AddressError):
        _, numeric = resolve(address)
    found[name] = time.monotonic() - begun, numeric


def _peer(
    name: str,
    told: Settings,
    address: Address,
    found: Mapping[str, tuple[float, SocketAddress | None]],
) -> Peer:
    lookup_s, numeric = found.get(name, (LOOKUP_S_MAX, None))
    own = name == told.node
    if numeric is None:
        return Peer(name, str(address), own, None, False, lookup_s, "", None)
    failure, mtu = _way(numeric)
    return Peer(name, str(address), own, numeric[0], is_loopback(numeric), lookup_s, failure, mtu)


def _way(numeric: SocketAddress) -> tuple[str, int | None]:
    """Whether the kernel knows a way to an address, and the largest packet on it."""
    family = socket.AF_INET6 if len(numeric) == 4 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(numeric)  # A datagram socket only looks up the way.
        except OSError as e:
            return e.strerror or str(e), None
        if not sys.platform.startswith("linux"):
            return "", None
        level, option = (
            (socket.IPPROTO_IPV6, IPV6_MTU) if len(numeric) == 4 else (socket.IPPROTO_IP, IP_MTU)
        )
        try:
            return "", sock.getsockopt(level, option)
        except OSError:
            return "", None
