"""Many datagrams in one system call.

Linux can cut one large buffer into datagrams when it sends it (UDP_SEGMENT), and can hand datagrams
that arrived together to their receiver as one buffer (UDP_GRO). Either way the kernel handles them
once. All datagrams of a buffer have the same size, except the last, which may be smaller.
"""

import errno
import socket
import struct
from collections.abc import Iterator, Sequence

UDP_SEGMENT = 103
UDP_GRO = 104
"""Socket options of Linux that Python's socket module does not name."""

SEGMENTS_MAX = 64
"""The most datagrams in one buffer; the kernel refuses a buffer with more."""
BUFFER_BYTES_MAX = 65_507
"""The most bytes in one buffer, as in one UDP datagram over IPv4; the kernel refuses more."""

UNSUPPORTED = frozenset(
    {errno.EINVAL, errno.EIO, errno.EMSGSIZE, errno.ENOPROTOOPT, errno.EOPNOTSUPP}
)
"""Error numbers of a system that cannot do this, or not for the route that a datagram takes."""

CONTROL_BYTES = socket.CMSG_SPACE(4) if hasattr(socket, "CMSG_SPACE") else 0

_SEND = struct.Struct("=H")
_RECEIVED = struct.Struct("=i")

Control = list[tuple[int, int, bytes]]


def buffers(datagrams: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The datagrams in their order, grouped so that each group can be sent as one buffer."""
    start = size = room = 0
    for at, datagram in enumerate(datagrams):
        length = len(datagram)
        if at == start or length > size or length > room or at - start == SEGMENTS_MAX:
            if at > start:
                yield datagrams[start:at]
            start, size, room = at, length, BUFFER_BYTES_MAX
        room = room - length if length == size else -1  # A smaller one ends its buffer.
    if start < len(datagrams):
        yield datagrams[start:]


def control(datagrams: Sequence[bytes]) -> Control:
    """The control message that is sent with these datagrams as one buffer."""
    return [(socket.IPPROTO_UDP, UDP_SEGMENT, _SEND.pack(len(datagrams[0])))]


def split(data: bytes, control: Control) -> Sequence[bytes]:
    """The datagrams of a buffer that was received."""
    for level, kind, value in control:
        if level == socket.IPPROTO_UDP and kind == UDP_GRO:
            (size,) = _RECEIVED.unpack(value)
            return [data[at : at + size] for at in range(0, len(data), size)]
    return (data,)
