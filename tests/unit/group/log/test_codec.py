"""Messages of the log survive the wire, and nonsense does not."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roundelay.core.ids import ViewId
from roundelay.core.log import LOG_ID_BYTES, Place
from roundelay.group.log.codec import LogCodec
from roundelay.group.log.messages import (
    FIRST_TAG,
    LOG_MESSAGES,
    Ack,
    CutTo,
    LogMessage,
    Offer,
    Probe,
    Ready,
    Reply,
)
from roundelay.wire.primitives import WireError

CODEC = LogCodec()
numbers = st.integers(0, 2**62)
bits = st.lists(st.booleans(), max_size=40).map(tuple)
terms = st.builds(ViewId, st.integers(1, 2**40), st.sampled_from(("a", "bb", "é")))
places = st.builds(Place, terms, st.integers(2**20, 2**62), st.integers(0, 99))
logs = st.binary(min_size=LOG_ID_BYTES, max_size=LOG_ID_BYTES).filter(any)
offers = st.builds(
    Offer,
    logs,
    st.integers(0, 2**32 - 1),
    places,
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**20),
    st.integers(0, 2**20),
    st.none() | st.integers(0, 2**40),
    st.integers(0, 2**63 - 1),
    bits,
)
acks = st.builds(Ack, st.integers(2**20, 2**62), st.integers(0, 9), st.integers(0, 2**20))
messages: st.SearchStrategy[LogMessage] = st.one_of(
    offers,
    st.builds(Ready, numbers, bits, bits),
    acks,
    st.builds(Probe, numbers),
    st.builds(Reply, numbers, numbers),
    st.builds(CutTo, st.integers(0, 2**32 - 1), places),
)


@given(messages)
@example(Offer(b"", 0, Place(), 0, 0, 0, None, 7, (True,)))
def test_messages_survive_the_wire(message: LogMessage):
    tag, body = CODEC.encode(message)
    assert tag >= FIRST_TAG
    assert CODEC.decode(tag, b"header" + body, 6) == message


@given(messages, st.data())
def test_a_message_that_is_cut_or_has_more_is_malformed(message: LogMessage, data: st.DataObject):
    tag, body = CODEC.encode(message)
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(WireError):
        CODEC.decode(tag, body[:cut], 0)
    with pytest.raises(WireError):
        CODEC.decode(tag, body + b"\0", 0)


@given(st.integers(0, 255), st.binary(max_size=200))
def test_any_bytes_are_a_message_or_an_error(tag: int, data: bytes):
    try:
        message = CODEC.decode(tag, data, 0)
    except WireError:
        return
    assert type(message) in LOG_MESSAGES
    assert CODEC.decode(*_flat(message)) == message


@pytest.mark.parametrize(
    "offer",
    [
        Offer(b"", 0, Place(ViewId(4, "a"), 0), 0, 0, 0, None, 0, ()),
        Offer(b"L" * 16, 0, Place(), 0, 0, 0, None, 0, ()),
        Offer(b"L" * 16, 0, Place(ViewId(4, "a"), 3), 0, 4, 0, None, 0, ()),
        Offer(b"L" * 16, 0, Place(ViewId(4, "a"), 3), 0, 0, 4, None, 0, ()),
    ],
)
def test_an_offer_of_a_log_that_cannot_be_is_malformed(offer: Offer):
    with pytest.raises(WireError):
        CODEC.decode(*_flat(offer))


def test_more_committed_than_stored_is_malformed():
    with pytest.raises(WireError):
        CODEC.decode(*_flat(Ack(3, 0, 4)))


def _flat(message: LogMessage) -> tuple[int, bytes, int]:
    return (*CODEC.encode(message), 0)
