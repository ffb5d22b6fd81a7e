"""What the system calls of one datagram cost: the limit of every layer above them.

Datagrams go from one socket of this process to another over loopback, as many with one call as the
kernel takes, and nothing is done with them. No order can be had for less on the same machine.
"""

import contextlib
import socket
import time

from roundelay.transport import segments
from roundelay.transport.udp import DATAGRAM_BYTES_MAX, RECEIVE_BUFFER_BYTES

CPU_S = 0.2
"""Processor time that is spent for a figure, in seconds. Less: it varies; more: it takes longer."""
TURNS = 64
"""How often is sent and received between two looks at the clock."""
PATIENCE_S = 10.0
"""How many seconds a datagram may take; then the measurement fails."""


def cpu_us_per_datagram(size: int, together: int = segments.SEGMENTS_MAX) -> float:
    """Processor time to send and to receive one datagram of that size, in microseconds, if up to
    `together` of them are sent with one call."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reader,
    ):
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        reader.bind(("127.0.0.1", 0))
        reader.settimeout(PATIENCE_S)
        sender.connect(reader.getsockname())
        batch = min(together, segments.BUFFER_BYTES_MAX // size)
        control = segments.control([bytes(size)]) if batch > 1 else []
        try:
            reader.setsockopt(socket.IPPROTO_UDP, segments.UDP_GRO, 1)
            _once(sender, reader, (bytes(size * batch),), control)
        except OSError:  # This kernel takes them one by one.
            batch, control = 1, []
            with contextlib.suppress(OSError):
                reader.setsockopt(socket.IPPROTO_UDP, segments.UDP_GRO, 0)
        data = (bytes(size * batch),)
        begun = time.process_time()
        turns = 0
        while (spent := time.process_time() - begun) < CPU_S:
            for _ in range(TURNS):
                _once(sender, reader, data, control)
            turns += TURNS
        return spent / (turns * batch) * 1e6


def _once(
    sender: socket.socket,
    reader: socket.socket,
    data: tuple[bytes],
    control: segments.Control,
) -> None:
    """Send with one call, and receive all of it."""
    sender.sendmsg(data, control)
    left = len(data[0])
    while left > 0:
        got, _, _, _ = reader.recvmsg(DATAGRAM_BYTES_MAX, segments.CONTROL_BYTES)
        left -= len(got)
