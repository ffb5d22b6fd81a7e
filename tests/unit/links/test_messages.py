"""Messages of links: round trips, and bytes that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.links.messages import REQUEST_MAX, Data, Heartbeat, Message, Request
from roundelay.wire.primitives import I64_MAX, U16_MAX, WireError

from .party import CODEC

numbers = st.integers(0, I64_MAX)
vectors = st.lists(numbers, max_size=70).map(tuple)


@st.composite
def data(draw):
    number = draw(st.integers(1, I64_MAX))
    stable = draw(st.integers(0, number - 1))
    text = draw(st.text(max_size=50))
    return Data(draw(st.integers(0, U16_MAX)), number, stable, draw(vectors), text)


messages = st.one_of(
    data(),
    st.builds(Heartbeat, vectors),
    st.builds(Request, st.integers(0, U16_MAX), st.lists(numbers, max_size=REQUEST_MAX).map(tuple)),
)


@given(messages, st.binary(max_size=9))
def test_a_message_reads_as_it_was_written(message: Message[str], before: bytes):
    tag, body = CODEC.encode(message)
    assert tag in CODEC.tags
    assert CODEC.decode(tag, before + body, len(before)) == message


@given(messages, st.data())
def test_a_shorter_or_longer_message_is_none(message, draw):
    tag, body = CODEC.encode(message)
    cut = draw.draw(st.integers(0, len(body) - 1))
    for wrong in (body[:cut], body + b"\0"):
        with pytest.raises(WireError):
            CODEC.decode(tag, wrong, 0)


@given(st.integers(0, 255), st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tag, body):
    try:
        message = CODEC.decode(tag, body, 0)
    except WireError:
        return
    assert CODEC.encode(message) == (tag, body)


@pytest.mark.parametrize(("number", "stable"), [(0, 0), (3, 3), (3, 4)])
def test_what_all_have_is_not_sent_again(number, stable):
    tag, body = CODEC.encode(Data(0, number, stable, (1,), "x"))
    with pytest.raises(WireError):
        CODEC.decode(tag, body, 0)


def test_they_read_well():
    assert str(Data(0, 3, 1, (3, 0), "x")) == "3: x has 3 0"
    assert str(Heartbeat((3, 0))) == "has 3 0"
    assert str(Request(0, (1, 2))) == "lacks 1 2 of member 0"
