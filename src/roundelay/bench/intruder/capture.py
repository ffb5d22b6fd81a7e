"""Captures: what nodes sent, in files that the intruder reads while they grow."""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from roundelay.transport.address import Address, SocketAddress
from roundelay.transport.udp import UdpSocket

WHOLE_BYTES = 8 * 1024 * 1024
"""Bytes from the beginning of a session of which every datagram is captured."""
CAPTURE_BYTES = 16 * 1024 * 1024
"""The most bytes of a capture. With more, an intruder would not get through it in a session."""
THEN_EVERY = 64
"""Of the datagrams after `WHOLE_BYTES`, one of so many is captured."""

_SIZE = struct.Struct(">I")


class CaptureWriter:
    """Writes datagrams to a file, whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self._bytes = 0
        self._skipped = 0

    def add(self, data: bytes) -> None:
        if self._bytes >= CAPTURE_BYTES:
            return
        if self._bytes >= WHOLE_BYTES:
            self._skipped += 1
            if self._skipped % THEN_EVERY:
                return
        self._bytes += len(data)
        self._file.write(_SIZE.pack(len(data)) + data)

    def close(self) -> None:
        self._file.close()


class CaptureReader:
    """Reads what a capture holds so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def read(self) -> Iterator[bytes]:
        """The datagrams that were added since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            rest = file.read()
        at = 0
        while at + _SIZE.size <= len(rest):
            (size,) = _SIZE.unpack_from(rest, at)
            end = at + _SIZE.size + size
            if end > len(rest):
                break  # It is being written.
            yield rest[at + _SIZE.size : end]
            at = end
        self._at += at


def tapped(path: Path) -> type[UdpSocket]:
    """A class of sockets that write what they send to this file."""

    class Tapped(UdpSocket):
        def __init__(self, bind: Address) -> None:
            super().__init__(bind)
            self._capture = CaptureWriter(path)

        def send(self, data: bytes, addresses: Sequence[SocketAddress]) -> None:
            self._capture.add(data)
            super().send(data, addresses)

        def _send_buffer(self, buffer: Sequence[bytes], addresses: Sequence[SocketAddress]) -> None:
            for data in buffer:
                self._capture.add(data)
            super()._send_buffer(buffer, addresses)

        def close(self) -> None:
            super().close()
            self._capture.close()

    return Tapped
