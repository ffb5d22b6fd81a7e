"""Frames that travel under a seal have no checksum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.contract import Boot
from roundelay.core.ids import Packet, Service, Span
from roundelay.protocols.template import Data, TemplateCodec
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import PROBE_TAG, PROOF_TAG, Frame, decode, key_id_of, origin_in
from roundelay.wire.primitives import Reason, WireError

CODEC = TemplateCodec()
MESSAGE = Data(1, Packet(Span("a", 0, 7), Service.AGREED, b"hello"))


def endpoint(name: str, *, sealed: bool = True) -> Endpoint[Data]:
    return Endpoint(Boot("g", name), CODEC, sealed=sealed)


def test_the_checksum_is_zero_and_the_rest_is_as_in_plain_frames():
    _, sealed = endpoint("a").encode(MESSAGE, None)
    _, plain = endpoint("a", sealed=False).encode(MESSAGE, None)
    assert sealed[2:6] == bytes(4) != plain[2:6]
    assert sealed[:2] + sealed[6:] == plain[:2] + plain[6:]


@given(st.binary(min_size=4, max_size=4))
def test_the_checksum_is_not_read(checksum):
    _, raw = endpoint("a").encode(MESSAGE, None)
    frame = endpoint("b").receive(raw[:2] + checksum + raw[6:])
    assert isinstance(frame, Frame)
    assert frame.message == MESSAGE


def test_a_plain_endpoint_reads_it():
    _, raw = endpoint("a").encode(MESSAGE, None)
    assert endpoint("b", sealed=False).receive(raw) is Reason.CHECKSUM


def test_a_sealed_datagram_is_told_apart_by_nodes_without_a_key():
    with pytest.raises(WireError) as caught:
        decode(b"RS" + bytes(60), CODEC, {})
    assert caught.value.reason is Reason.SEALED
    assert endpoint("b", sealed=False).receive(b"RS" + bytes(60)) is Reason.SEALED


@given(st.binary(max_size=80))
def test_other_checks_remain(junk):
    """Nothing but the checksum is trusted because of a seal: a member may be broken."""
    _, raw = endpoint("a").encode(MESSAGE, None)
    for data in (junk, raw[:30] + junk, raw + junk[:1], raw[:-1]):
        if data.rstrip(b"\0") != raw.rstrip(b"\0") or len(data) < len(raw):  # Zeros may follow.
            assert not isinstance(endpoint("b").receive(data), Frame)


def test_no_core_is_given_a_proof():
    assert {PROBE_TAG, PROOF_TAG} == {254, 255}
    _, raw = endpoint("a").encode(MESSAGE, None)
    for sealed in (True, False):
        found = endpoint("b", sealed=sealed).receive(raw[:7] + bytes([PROOF_TAG]) + raw[8:])
        assert found in (Reason.MALFORMED, Reason.CHECKSUM)


def test_the_origin_of_a_frame_is_read_without_the_rest():
    _, raw = endpoint("a").encode(MESSAGE, None)
    assert origin_in(raw).node == "a"
    for size in range(len(raw)):
        try:
            assert origin_in(raw[:size]).node == "a"
        except WireError as e:
            reason = e.reason
            assert reason in (Reason.TRUNCATED, Reason.MALFORMED)
    assert key_id_of(b"RS\1\1" + b"12345678" + bytes(40)) == b"12345678"
