"""Probes: frames by which nodes find each other again. They are for the node, not for its core, and
have the same header as other frames.

    u8    kind     here: I speak from where this frame comes from
                   ask: prove that you are where this frame arrives
                   answer: the nonce of an `ask`
                   taken: another node uses your name; the nonce is the number of your life
    text  to       the node that the probe is for
    u64   nonce    of `ask`, `answer` and `taken`
"""

from collections.abc import Mapping
from enum import IntEnum

from roundelay.core.contract import Boot, Origin
from roundelay.core.ids import NodeId
from roundelay.core.value import value
from roundelay.wire.frame import PROBE_TAG, decode, encode, encode_origin
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer


class ProbeKind(IntEnum):
    """What a probe is for."""

    HERE = 0
    ASK = 1
    ANSWER = 2
    TAKEN = 3


@value
class Probe:
    """One probe."""

    kind: ProbeKind
    to: NodeId
    nonce: int = 0


class ProbeCodec:
    """Probes to bytes and back."""

    tags: Mapping[int, str] = {PROBE_TAG: "PROBE"}

    def encode(self, message: Probe) -> tuple[int, bytes]:
        w = Writer()
        w.u8(message.kind)
        w.text(message.to)
        w.u64(message.nonce)
        return PROBE_TAG, w.done()

    def decode(self, tag: int, data: bytes, start: int) -> Probe:
        if tag != PROBE_TAG:
            raise WireError(Reason.MALFORMED, f"tag {tag} is no probe")
        r = Reader(data, start)
        kind = r.u8(max(ProbeKind))
        probe = Probe(ProbeKind(kind), r.name(), r.u64(I64_MAX))
        r.done()
        return probe


_CODEC = ProbeCodec()


def encode_probe(boot: Boot, probe: Probe) -> bytes:
    """The datagram. Probes have no place in the sender's count of its frames."""
    origin = encode_origin(Origin(boot.group, boot.node, boot.incarnation, None))
    return encode(origin, *_stamped(probe))


def _stamped(probe: Probe) -> tuple[int, int, int, bytes]:
    tag, body = _CODEC.encode(probe)
    return tag, 0, 0, body


def decode_probe(data: bytes) -> tuple[Origin, Probe]:
    """Who sent a probe, and what it says; or WireError."""
    frame = decode(data, _CODEC, {})
    return frame.origin, frame.message
