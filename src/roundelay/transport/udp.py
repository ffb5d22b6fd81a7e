"""UDP sockets that never block: what cannot leave or does not come is lost, as datagrams may be.

A node has one socket of its own, for unicast. Where a group uses IP multicast, a second one hears
what is sent to all. Whoever reads one waits with the event loop and then calls `receive` until it
raises BlockingIOError. Where the system can, datagrams that belong together leave and arrive with
one call.
"""

import contextlib
import errno
import socket
import struct
import sys
from collections.abc import Sequence

from roundelay.transport import segments
from roundelay.transport.address import Address, AddressError, SocketAddress, resolve

RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024
"""Asked for; what the system gave is in `receive_buffer`."""

DATAGRAM_BYTES_MAX = 65_535
"""Longer than any that can come."""

_KERNEL_BYTES = ((1472, 2304), (7800, 8704), (16_000, 17_408), (32_000, 36_864))
"""What the kernel charges a datagram of up to so many bytes to a receive buffer, on Linux."""


class UdpSocket:
    """One bound socket."""

    def __init__(self, bind: Address) -> None:
        """Bind, or raise AddressError."""
        self.family, local = resolve(bind)
        self._socket = _open(self.family)
        try:
            self._socket.bind(local)
        except OSError as e:
            self._socket.close()
            raise AddressError(_why_not(bind, e)) from None
        self.address: SocketAddress = self._socket.getsockname()
        self.receive_buffer = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        """Bytes that the system set aside, its own overhead included."""
        self._coalesced = _coalesces(self._socket)
        """Whether many datagrams may arrive with one call ..."""
        self.in_runs = self._coalesced
        """... and leave."""
        self.source: SocketAddress | None = None
        """Where the last datagrams that were received came from."""
        self.lost_sends = 0
        """Datagrams that the system did not take."""

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> Sequence[bytes]:
        """Datagrams that came together, one at least; BlockingIOError if there is none."""
        if not self._coalesced:
            data, self.source = self._socket.recvfrom(DATAGRAM_BYTES_MAX)
            return (data,)
        data, control, _, self.source = self._socket.recvmsg(
            DATAGRAM_BYTES_MAX, segments.CONTROL_BYTES
        )
        return segments.split(data, control) if control else (data,)

    def send_all(self, datagrams: Sequence[bytes], addresses: Sequence[SocketAddress]) -> None:
        """These datagrams, in order, to each of these."""
        if not self.in_runs or len(datagrams) == 1:
            for data in datagrams:
                self.send(data, addresses)
            return
        for run in segments.runs(datagrams):
            if len(run) == 1:
                self.send(run[0], addresses)
            else:
                self._send_run(run, addresses)

    def _send_run(self, run: Sequence[bytes], addresses: Sequence[SocketAddress]) -> None:
        data, control = (b"".join(run),), segments.control(run)
        for address in addresses:
            try:
                self._socket.sendmsg(data, control, 0, address)
            except OSError as e:
                if e.errno not in segments.UNSUPPORTED:
                    self.lost_sends += len(run)
                    continue
                self.in_runs = False  # Not on this way; one by one it still goes.
                for datagram in run:
                    self.send(datagram, (address,))

    def send(self, data: bytes, addresses: Sequence[SocketAddress]) -> None:
        """The same datagram to each of these."""
        sendto = self._socket.sendto
        for address in addresses:
            try:
                sendto(data, address)
            except OSError:
                self.lost_sends += 1  # A full buffer, no route: the same as a loss on the way.

    def send_multicast_from(self) -> None:
        """Let what is sent to a multicast address leave by the interface of this socket, and be
        heard on this machine too."""
        if self.family == socket.AF_INET:
            interface = socket.inet_aton(self.address[0])
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        else:
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)

    def close(self) -> None:
        self._socket.close()


class MulticastListener:
    """A socket that hears what is sent to a multicast address, beside others that do."""

    def __init__(self, group: Address, interface: SocketAddress, family: int) -> None:
        """Listen on the interface with that address, or raise AddressError."""
        _, address = resolve(group, family)
        self.address: SocketAddress = address
        self._socket = _open(family)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(address)
            self._join(interface)
        except OSError as e:
            self._socket.close()
            raise AddressError(
                f"cannot listen to multicast at {group} ({e.strerror}); choose an address in "
                "239.0.0.0/8 and bind the node to an interface that carries multicast"
            ) from None

    def receive(self) -> Sequence[bytes]:
        """As UdpSocket's."""
        return (self._socket.recv(DATAGRAM_BYTES_MAX),)

    def _join(self, interface: SocketAddress) -> None:
        if self._socket.family == socket.AF_INET:
            membership = socket.inet_aton(self.address[0]) + socket.inet_aton(interface[0])
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            return
        scope = interface[3] if len(interface) == 4 else 0
        group = socket.inet_pton(socket.AF_INET6, self.address[0].partition("%")[0])
        membership = group + struct.pack("@I", scope)
        self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, membership)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()


def datagrams_that_fit(receive_buffer: int, datagram_bytes: int) -> int:
    """How many datagrams of that size a receive buffer holds before the next one is lost."""
    charge = next(
        (charge for most, charge in _KERNEL_BYTES if datagram_bytes <= most), datagram_bytes + 4096
    )
    return receive_buffer // charge


def _open(family: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setblocking(False)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        with contextlib.suppress(OSError):  # Where it is refused, the default serves.
            sock.setsockopt(socket.SOL_SOCKET, option, RECEIVE_BUFFER_BYTES)
    return sock


def _coalesces(sock: socket.socket) -> bool:
    """Ask the system to hand over datagrams that came together as one; whether it does."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        sock.setsockopt(socket.IPPROTO_UDP, segments.UDP_GRO, 1)
    except OSError:
        return False  # An old kernel.
    return True


def _why_not(bind: Address, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"{bind} is taken by another process; stop that one (is this node running already?), "
            "or give this node another port"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"{bind} is not an address of this machine; bind to one that is, or to "
            f"0.0.0.0:{bind.port} for all of them"
        )
    return f"cannot listen on {bind} ({error.strerror}); give this node another address"
