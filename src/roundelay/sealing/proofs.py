"""Challenges and answers: how a node proves that it is alive. They travel as frames, sealed.

u8   kind        0 challenge, 1 answer
16   challenge   random; an answer repeats the one that it answers
16   boot        answer: whose challenge it was
16   counter     answer: a challenge back, or zeros
 8   newest      id of the newest key that the sender has
"""

from collections.abc import Mapping

from roundelay.core.contract import Origin
from roundelay.core.value import value
from roundelay.sealing.keys import KEY_ID_BYTES
from roundelay.wire.frame import PROOF_TAG, encode, encode_origin
from roundelay.wire.primitives import Reader, Reason, WireError, Writer

CHALLENGE_BYTES = 16
BOOT_BYTES = 16
NO_CHALLENGE = bytes(CHALLENGE_BYTES)

_CHALLENGE, _ANSWER = range(2)


@value
class Challenge:
    """Prove that you are alive."""

    challenge: bytes
    newest: bytes


@value
class Answer:
    """The sender is alive: it has read this challenge of this boot."""

    challenge: bytes
    boot: bytes
    back: bytes
    """A challenge for the receiver; `NO_CHALLENGE` for none."""
    newest: bytes


Proof = Challenge | Answer


class ProofCodec:
    """Challenges and answers to bytes and back."""

    tags: Mapping[int, str] = {PROOF_TAG: "PROOF"}

    def encode(self, message: Proof) -> tuple[int, bytes]:
        w = Writer()
        if isinstance(message, Challenge):
            w.u8(_CHALLENGE)
            w.rest(message.challenge)
        else:
            w.u8(_ANSWER)
            w.rest(message.challenge + message.boot + message.back)
        w.rest(message.newest)
        return PROOF_TAG, w.done()

    def decode(self, tag: int, data: bytes, start: int) -> Proof:
        if tag != PROOF_TAG:
            raise WireError(Reason.MALFORMED, f"tag {tag} is no proof")
        r = Reader(data, start)
        kind, challenge = r.u8(_ANSWER), r.take(CHALLENGE_BYTES)
        if kind == _CHALLENGE:
            proof: Proof = Challenge(challenge, r.take(KEY_ID_BYTES))
        else:
            boot, back = r.take(BOOT_BYTES), r.take(CHALLENGE_BYTES)
            proof = Answer(challenge, boot, back, r.take(KEY_ID_BYTES))
        r.done()
        return proof


CODEC = ProofCodec()


def encode_proof(origin: Origin, proof: Proof) -> bytes:
    """The frame. Proofs have no place in the sender's count of its frames."""
    tag, body = CODEC.encode(proof)
    return encode(encode_origin(origin), tag, 0, 0, body, sealed=True)
