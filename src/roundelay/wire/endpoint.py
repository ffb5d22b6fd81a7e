"""A node's end of the wire: stamps what goes out, checks what comes in, counts what it drops."""

from typing import Generic, TypeVar

from roundelay.core.contract import Boot, Codec, Origin
from roundelay.core.ids import ViewId
from roundelay.wire.frame import Frame, decode, encode, encode_origin, is_probe
from roundelay.wire.primitives import I64_MAX, Reason, WireError

M = TypeVar("M")


class Endpoint(Generic[M]):
    """Holds the Lamport clock and the frame counter of a node. One per node and incarnation.

    With `reflect` the node's own frames are admitted too: on a channel, their place among those of
    others is news to their sender.

    Frames of a `sealed` endpoint have no checksums: they travel under a seal, which the caller puts
    on and takes off.
    """

    def __init__(
        self, boot: Boot, codec: Codec[M], *, reflect: bool = False, sealed: bool = False
    ) -> None:
        self.codec = codec
        self.lamport = 0
        """Counts this node's frames and is pushed on by those it accepts."""
        self.frame_number = 0
        """The number of the last frame encoded; the first is 1."""
        self.drops: dict[Reason, int] = {}
        """Datagrams refused, by reason."""
        self._boot = boot
        self._reflect = reflect
        self.sealed = sealed
        self._view: ViewId | None = None
        self._origin = encode_origin(Origin(boot.group, boot.node, boot.incarnation, None))
        self._origins: dict[bytes, Origin] = {}
        self._admitted: Origin | None = None
        """Of the last frame that was meant for this node: the next is likely from the same."""

    def encode(self, message: M, view: ViewId | None) -> tuple[int, bytes]:
        """The message's tag and the datagram that carries it, with a frame number of its own."""
        tag, body = self.codec.encode(message)
        origin = self.stamp(view)
        data = encode(origin, tag, self.lamport, self.frame_number, body, sealed=self.sealed)
        return tag, data

    def stamp(self, view: ViewId | None) -> bytes:
        """Give a frame the next number and `lamport`, and return the bytes of its origin."""
        if view != self._view:
            boot = self._boot
            self._origin = encode_origin(Origin(boot.group, boot.node, boot.incarnation, view))
            self._view = view
        if self.lamport < I64_MAX:  # A forged clock must not wrap ours.
            self.lamport += 1
        self.frame_number += 1
        return self._origin

    def receive(self, data: bytes) -> Frame[M] | Reason:
        """The frame in a datagram, or why it is refused: then it was counted, and nothing else
        changed."""
        try:
            frame = decode(data, self.codec, self._origins, sealed=self.sealed)
        except WireError as e:
            # No core knows the tag of a probe. Asked only here, so that other frames do not pay.
            probe = e.reason is Reason.MALFORMED and is_probe(data)
            return self.refuse(Reason.PROBE if probe else e.reason)
        if frame.origin is not self._admitted:
            refusal = self.admit(frame.origin, frame.lamport)
            if refusal is not None:
                return refusal
            self._admitted = frame.origin
        elif frame.lamport > self.lamport:
            self.lamport = frame.lamport
        return frame

    def admit(self, origin: Origin, lamport: int) -> Reason | None:
        """Take over the clock of a frame that is meant for this node, or say why it is not."""
        boot = self._boot
        if origin.group != boot.group:
            return self.refuse(Reason.GROUP)
        own = origin.node == boot.node and origin.incarnation == boot.incarnation
        if own and not self._reflect:
            return self.refuse(Reason.OWN)
        if lamport > self.lamport:
            self.lamport = lamport
        return None

    def refuse(self, reason: Reason, count: int = 1) -> Reason:
        """Count a datagram that is dropped, or so many."""
        self.drops[reason] = self.drops.get(reason, 0) + count
        return reason
