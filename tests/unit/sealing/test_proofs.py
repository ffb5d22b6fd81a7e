"""Challenges and answers as frames."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.contract import Origin
from roundelay.sealing.proofs import CODEC, NO_CHALLENGE, Answer, Challenge, encode_proof
from roundelay.wire.frame import PROOF_TAG, decode
from roundelay.wire.primitives import WireError

ORIGIN = Origin("g", "a", 7, None)
sixteen = st.binary(min_size=16, max_size=16)
eight = st.binary(min_size=8, max_size=8)
proofs = st.builds(Challenge, sixteen, eight) | st.builds(Answer, sixteen, sixteen, sixteen, eight)


@given(proofs)
def test_a_proof_comes_out_as_it_went_in(proof):
    frame = decode(encode_proof(ORIGIN, proof), CODEC, {}, sealed=True)
    assert (frame.message, frame.origin, frame.tag) == (proof, ORIGIN, PROOF_TAG)
    assert (frame.lamport, frame.number) == (0, 0)


def test_the_body_byte_by_byte():
    asked, boot, back, newest = (bytes([n]) * 16 for n in (1, 2, 3, 4))
    newest = newest[:8]
    assert CODEC.encode(Challenge(asked, newest)) == (254, b"\0" + asked + newest)
    answer = Answer(asked, boot, back, newest)
    assert CODEC.encode(answer) == (254, b"\1" + asked + boot + back + newest)
    assert bytes(16) == NO_CHALLENGE


@given(st.binary(max_size=80), st.integers(0, 255))
def test_any_bytes_are_a_proof_or_an_error(body, tag):
    try:
        proof = CODEC.decode(tag, body, 0)
    except WireError:
        return
    assert CODEC.encode(proof) == (tag, body)


@given(proofs, st.integers(-5, 5))
def test_a_proof_has_one_size(proof, more):
    tag, body = CODEC.encode(proof)
    changed = body + bytes(more) if more > 0 else body[:more]
    if more:
        with pytest.raises(WireError):
            CODEC.decode(tag, changed, 0)
