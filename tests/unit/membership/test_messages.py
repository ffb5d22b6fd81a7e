"""Membership's messages survive the wire, and nonsense does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.contract import Item
from roundelay.core.ids import ViewId
from roundelay.membership.messages import (
    Commit,
    Entry,
    Installed,
    Join,
    Leave,
    MembershipCodec,
    Merge,
    Primary,
    RingItem,
    RingToken,
)
from roundelay.membership.ring import Token
from roundelay.wire.primitives import WireError

CODEC = MembershipCodec()
names = st.text(min_size=1, max_size=8)
some = st.sets(names, max_size=5).map(lambda s: tuple(sorted(s)))
views = st.builds(ViewId, st.integers(0, 2**40), names)
primaries = st.builds(Primary, views, some)
filled = st.builds(
    Entry,
    names,
    views,
    st.binary(max_size=50),
    some,
    st.none() | primaries,
    st.lists(primaries, max_size=3).map(tuple),
)
tokens = st.builds(
    Token,
    st.integers(0, 2**40),
    st.integers(2**30, 2**40),
    st.integers(0, 2**30),
    st.integers(0, 2**16 - 1),
    st.lists(st.integers(1, 2**30), max_size=9).map(tuple),
    st.integers(0, 2**20),
    st.integers(0, 2**20),
    st.booleans(),
)
commits = st.lists(filled, min_size=1, max_size=5, unique_by=lambda e: e.node).map(
    lambda es: Commit(ViewId(8, "a"), 3, len(es), tuple(sorted(es, key=lambda entry: entry.node)))
)
messages = st.one_of(
    st.builds(Join, some, some, st.integers(0, 2**62)),
    commits,
    st.just(Merge()),
    st.just(Installed()),
    st.just(Leave()),
    st.builds(RingToken, tokens),
    st.builds(
        RingItem,
        st.integers(0, 2**40),
        views,
        st.builds(
            Item, st.lists(st.integers(0, 2**40), max_size=3).map(tuple), st.binary(max_size=99)
        ),
    ),
)


@given(messages)
def test_what_is_encoded_is_decoded(message):
    tag, body = CODEC.encode(message)
    assert CODEC.decode(tag, b"head" + body, 4) == message
    assert tag in CODEC.tags


@given(st.integers(60, 75), st.binary(max_size=80))
def test_any_bytes_decode_or_are_refused(tag, body):
    try:
        message = CODEC.decode(tag, body, 0)
    except WireError:
        return
    assert CODEC.decode(*CODEC.encode(message), 0) == message


@pytest.mark.parametrize(
    "message",
    [
        Join(("b", "a"), (), 0),
        Join(("a", "a"), (), 0),
        Commit(ViewId(8, "a"), 0, 0, (Entry("b"), Entry("a"))),
        Commit(ViewId(8, "a"), 0, 2, (Entry("a"),)),
        Commit(ViewId(8, "a"), 0, 1, (Entry("a"), Entry("b"))),
    ],
)
def test_sets_out_of_order_and_unfilled_entries_are_refused(message):
    with pytest.raises(WireError):
        CODEC.decode(*CODEC.encode(message), 0)
