"""UDP sockets that never block: a datagram that cannot be sent now is lost, as datagrams may be.

A node has one socket of its own, for unicast. If a group uses IP multicast, a second socket
receives what is sent to all. A reader waits with the event loop and then calls `receive` until it
raises BlockingIOError. If the system can do it, many datagrams are sent and received with one call.
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
"""The size of the kernel's buffers that a socket asks for, in bytes. The system may give less:
`UdpSocket.receive_buffer` says how much. Datagrams that arrive while the buffer is full are
lost."""

DATAGRAM_BYTES_MAX = 65_535
"""The most bytes that one call receives: no datagram and no buffer of datagrams has more."""

_KERNEL_BYTES = ((1472, 2304), (7800, 8704), (16_000, 17_408), (32_000, 36_864))
"""Pairs of sizes in bytes, on Linux: for a datagram of up to the first, the kernel takes the second
from a receive buffer."""

_MEMINFO = 55 if sys.platform.startswith("linux") else -1
"""The option SO_MEMINFO of Linux, which Python does not name ..."""
_MEMINFO_FORM = struct.Struct("=9I")
"""... and what it tells: the last number is that of lost datagrams."""


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
        """The size of the receive buffer in bytes, the kernel's own overhead included."""
        self._coalesced = _coalesces(self._socket)
        """Whether one call may receive many datagrams."""
        self.segmented = self._coalesced
        """Whether one call may send many datagrams."""
        self.source: SocketAddress | None = None
        """The address that the last received datagrams came from."""
        self.lost_sends = 0
        """The number of datagrams that the system did not accept."""

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def lost_receives(self) -> int:
        """The number of datagrams that arrived while the receive buffer was full; 0 if the system
        does not tell, as only Linux does."""
        try:
            told = self._socket.getsockopt(socket.SOL_SOCKET, _MEMINFO, _MEMINFO_FORM.size)
            return int(_MEMINFO_FORM.unpack(told)[-1])
        except (OSError, struct.error):
            return 0

    def receive(self) -> Sequence[bytes]:
        """The next datagrams, at least one; BlockingIOError if there is none."""
        if not self._coalesced:
            data, self.source = self._socket.recvfrom(DATAGRAM_BYTES_MAX)
            return (data,)
        data, control, _, self.source = self._socket.recvmsg(
            DATAGRAM_BYTES_MAX, segments.CONTROL_BYTES
        )
        return segments.split(data, control) if control else (data,)

    def send_all(self, datagrams: Sequence[bytes], addresses: Sequence[SocketAddress]) -> None:
        """Send these datagrams, in order, to each of the addresses."""
        if not self.segmented or len(datagrams) == 1:
            for data in datagrams:
                self.send(data, addresses)
            return
        for buffer in segments.buffers(datagrams):
            if len(buffer) == 1:
                self.send(buffer[0], addresses)
            else:
                self._send_buffer(buffer, addresses)

    def _send_buffer(self, buffer: Sequence[bytes], addresses: Sequence[SocketAddress]) -> None:
        data, control = (b"".join(buffer),), segments.control(buffer)
        for address in addresses:
            try:
                self._socket.sendmsg(data, control, 0, address)
            except OSError as e:
                if e.errno not in segments.UNSUPPORTED:
                    self.lost_sends += len(buffer)
                    continue
                self.segmented = False  # This route cannot do it: send them one by one.
                for datagram in buffer:
                    self.send(datagram, (address,))

    def send(self, data: bytes, addresses: Sequence[SocketAddress]) -> None:
        """Send one datagram to each of the addresses."""
        sendto = self._socket.sendto
        for address in addresses:
            try:
                sendto(data, address)
            except OSError:
                self.lost_sends += 1  # A full buffer or no route counts as a loss.

    def send_multicast_from(self) -> None:
        """Send multicast datagrams through the interface of this socket, and let them be received
        on this machine too."""
        if self.family == socket.AF_INET:
            interface = socket.inet_aton(self.address[0])
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        else:
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)

    def close(self) -> None:
        self._socket.close()


class MulticastListener:
    """A socket that receives what is sent to a multicast address. Others may listen there too."""

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
        """The next datagram; BlockingIOError if there is none."""
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
        with contextlib.suppress(OSError):  # If the system refuses, its default size is used.
            sock.setsockopt(socket.SOL_SOCKET, option, RECEIVE_BUFFER_BYTES)
    return sock


def _coalesces(sock: socket.socket) -> bool:
    """Ask the system to hand over datagrams that arrived together as one buffer; False if it
    cannot."""
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
