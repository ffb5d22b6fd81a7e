"""What is on the wire: frames that hosts send, and what somebody else does."""

from collections.abc import Callable
from typing import Any

from roundelay.core.contract import Origin
from roundelay.core.effects import Send
from roundelay.core.ids import NodeId
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import Frame, decode


class Transmission:
    """A frame on the wire. It is decoded once, through the codec, for all who get it whole."""

    __slots__ = (
        "_codec",
        "_frame",
        "_origins",
        "data",
        "incarnation",
        "number",
        "sender",
        "tag",
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
    ) -> None:
        tag, self.data = endpoint.encode(effect.message, effect.view)
        self.tag = endpoint.codec.tags[tag]
        self.sender = sender
        self.incarnation = incarnation
        self.number = endpoint.frame_number
        self.to = effect.to
        self._codec = endpoint.codec
        self._origins = origins
        self._frame: Frame[Any] | None = None

    def seal(self, seal: Callable[[bytes], bytes]) -> None:
        """Put a seal on it: `data` is what the wire shows."""
        self._frame = decode(self.data, self._codec, self._origins, sealed=True)
        self.data = seal(self.data)

    @property
    def frame(self) -> Frame[Any]:
        if self._frame is None:
            self._frame = decode(self.data, self._codec, self._origins)
        return self._frame

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
        self.data = data
        self.sender = self.tag = ""
        self.incarnation = self.number = 0
        self.to = None

    def __str__(self) -> str:
        return f"what was sent by an intruder ({self.kind})"
