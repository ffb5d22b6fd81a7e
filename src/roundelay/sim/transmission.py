"""What is on the wire: frames that hosts send, and what somebody else does.

A frame that arrives whole needs no bytes: receivers may take the message from its sender as the
object that it is, since messages are never changed. Its bytes are made when somebody asks for them:
who damages them, who wants their size, who listens. A frame that is sent `as_bytes` goes through
the codec at once, and its receivers are given what was read from its bytes.
"""

from collections.abc import Callable
from typing import Any

from roundelay.core.contract import Origin
from roundelay.core.effects import Send
from roundelay.core.ids import NodeId
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import Frame, decode, encode, learn_origin


class Transmission:
    """A frame on the wire."""

    __slots__ = (
        "_codec",
        "_data",
        "_frame",
        "_raw_origin",
        "_sealed",
        "_tag",
        "_tag_number",
        "incarnation",
        "lamport",
        "message",
        "number",
        "origin",
        "sender",
        "to",
    )

    traced = True
    """Whether the trace tells of it."""

    def __init__(
        self,
        endpoint: Endpoint[Any],
        sender: NodeId,
        incarnation: int,
        effect: Send[Any],
        origins: dict[bytes, Origin],
        *,
        as_bytes: bool = True,
    ) -> None:
        raw = self._raw_origin = endpoint.stamp(effect.view)
        self.origin = origins.get(raw) or learn_origin(raw, origins)
        self.lamport = endpoint.lamport
        self.number = endpoint.frame_number
        self.message = effect.message
        self.sender = sender
        self.incarnation = incarnation
        self.to = effect.to
        self._codec = endpoint.codec
        self._sealed = endpoint.sealed
        self._data: bytes | None = None
        self._frame: Frame[Any] | None = None
        if as_bytes:
            frame = decode(self.data, self._codec, origins, sealed=self._sealed)
            if frame.message != effect.message:
                raise AssertionError(f"sent {effect.message!r}, and read {frame.message!r}")
            self.message = frame.message
            self._frame = frame

    @property
    def data(self) -> bytes:
        """What the wire shows."""
        if self._data is None:
            self._encode()
        assert self._data is not None
        return self._data

    @property
    def tag(self) -> str:
        """The name of its type."""
        if self._data is None:
            self._encode()
        return self._tag

    @property
    def frame(self) -> Frame[Any]:
        """As a receiver that gets it whole reads it."""
        if self._frame is None:
            size = len(self.data)
            self._frame = Frame(
                self.origin, self.lamport, self.number, self._tag_number, self.message, size
            )
        return self._frame

    def seal(self, seal: Callable[[bytes], bytes]) -> None:
        """Put a seal on it: `data` is what the wire shows."""
        self._frame = self.frame
        self._data = seal(self.data)

    def _encode(self) -> None:
        tag, body = self._codec.encode(self.message)
        self._tag, self._tag_number = self._codec.tags[tag], tag
        self._data = encode(
            self._raw_origin, tag, self.lamport, self.number, body, sealed=self._sealed
        )

    def __str__(self) -> str:
        return str(self.frame.message)


Arrival = tuple[Transmission, bytes | None]
"""A copy of a frame that reaches a host; the bytes are given only if they were damaged."""


class Intrusion(Transmission):
    """A datagram that no host has sent, at least not now. It always arrives with its bytes given,
    as a damaged one does."""

    __slots__ = ("kind",)

    traced = False

    def __init__(self, kind: str, data: bytes) -> None:
        self.kind = kind
        """What the intruder did."""
        self._data = data
        self._tag = self.sender = ""
        self.incarnation = self.number = 0
        self.to = None

    def __str__(self) -> str:
        return f"what was sent by an intruder ({self.kind})"
