"""Many datagrams in one call of the system.

Linux cuts a large buffer into datagrams on its way out (UDP_SEGMENT), and can hand datagrams that
came together to their receiver as one buffer again (UDP_GRO). Either way all of them go through the
kernel once. They have one size, but for the last of a run, which may be smaller.
"""

import errno
import socket
import struct
from collections.abc import Iterator, Sequence

UDP_SEGMENT = 103
UDP_GRO = 104
"""Names that Python's socket module does not have."""

SEGMENTS_MAX = 64
RUN_BYTES_MAX = 65_507

UNSUPPORTED = frozenset(
    {errno.EINVAL, errno.EIO, errno.EMSGSIZE, errno.ENOPROTOOPT, errno.EOPNOTSUPP}
)
"""What the system says if it cannot do this, or not on the way that a datagram takes."""

CONTROL_BYTES = socket.CMSG_SPACE(4) if hasattr(socket, "CMSG_SPACE") else 0

_SEND = struct.Struct("=H")
_RECEIVED = struct.Struct("=i")

Control = list[tuple[int, int, bytes]]


def runs(datagrams: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The same, in order, as runs that the system takes at once."""
    start = size = room = 0
    for at, datagram in enumerate(datagrams):
        length = len(datagram)
        if at == start or length > size or length > room or at - start == SEGMENTS_MAX:
            if at > start:
                yield datagrams[start:at]
            start, size, room = at, length, RUN_BYTES_MAX
        room = room - length if length == size else -1  # A smaller one ends its run.
    if start < len(datagrams):
        yield datagrams[start:]


def control(run: Sequence[bytes]) -> Control:
    """What goes with a run, sent as one buffer."""
    return [(socket.IPPROTO_UDP, UDP_SEGMENT, _SEND.pack(len(run[0])))]


def split(data: bytes, control: Control) -> Sequence[bytes]:
    """The datagrams in what was received as one buffer."""
    for level, kind, value in control:
        if level == socket.IPPROTO_UDP and kind == UDP_GRO:
            (size,) = _RECEIVED.unpack(value)
            return [data[at : at + size] for at in range(0, len(data), size)]
    return (data,)
