"""Membership's messages survive the wire, and nonsense does not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.contract import SUMMARY_BYTES_MAX, Item
from roundelay.core.ids import Terms, ViewId, is_name
from roundelay.membership.codec import COMMIT_BYTES_MAX, NAMES_MAX, MembershipCodec, fill_in
from roundelay.membership.messages import (
    ATTEMPTS_MAX,
    Commit,
    CommitEntry,
    Installed,
    Join,
    Leave,
    Merge,
    Primary,
    RingItem,
    RingToken,
)
from roundelay.membership.ring import Token
from roundelay.wire.primitives import WireError

CODEC = MembershipCodec()
letters = st.characters(exclude_categories=["C", "Z"], exclude_characters="/")
names = st.text(letters, min_size=1, max_size=8).filter(is_name)
some = st.sets(names, max_size=5).map(lambda s: tuple(sorted(s)))
views = st.builds(ViewId, st.integers(0, 2**40), names)
primaries = st.builds(Primary, views, some)
filled = st.builds(
    CommitEntry,
    names,
    views,
    st.binary(max_size=50),
    some,
    st.none() | primaries,
    st.lists(primaries, max_size=3).map(tuple),
    st.booleans(),
    some,
    st.integers(0, 2**63 - 1),
    st.booleans(),
    st.booleans(),
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
terms = st.builds(Terms, st.text(letters, max_size=60), st.text(letters, max_size=60))
messages = st.one_of(
    st.builds(Join, some, some, st.integers(0, 2**62), terms),
    commits,
    st.builds(Merge, terms),
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
        Commit(ViewId(8, "a"), 0, 0, (CommitEntry("b"), CommitEntry("a"))),
        Commit(ViewId(8, "a"), 0, 2, (CommitEntry("a"),)),
        Commit(ViewId(8, "a"), 0, 1, (CommitEntry("a"), CommitEntry("b"))),
    ],
)
def test_sets_out_of_order_and_unfilled_entries_are_refused(message):
    with pytest.raises(WireError):
        CODEC.decode(*CODEC.encode(message), 0)


def commit_round(members: list[str], summary_bytes: int, strangers: int = 0) -> Commit:
    """A Commit token that has gone round once, every standing as long as it may be."""
    token = Commit(ViewId(8, members[0]), 0, 0, tuple(CommitEntry(name) for name in members))
    for i, name in enumerate(members):
        absent = [f"gone-{i}-{j}" for j in range(strangers)]
        attempts = tuple(
            Primary(ViewId(100 + n, members[n]), tuple(sorted([*members[n:], *absent])))
            for n in range(ATTEMPTS_MAX)
        )
        last = Primary(ViewId(8, members[0]), tuple(members))
        summary = bytes(summary_bytes)
        filled = fill_in(
            token,
            CommitEntry(
                name, ViewId(4, name), summary, tuple(members), last, attempts, True, tuple(members)
            ),
        )
        assert filled is not None
        assert filled.token_seq == token.token_seq + 1
        token = filled
    return token


def test_a_commit_token_of_many_members_with_long_memories_is_small():
    members = [f"node-{i:02}" for i in range(32)]
    token = commit_round(members, summary_bytes=300)
    tag, body = CODEC.encode(token)
    assert len(body) < COMMIT_BYTES_MAX
    assert CODEC.decode(tag, body, 0) == token
    assert not any(entry.crowded for entry in token.entries)


def test_standings_that_do_not_fit_are_left_out_and_the_token_says_so():
    members = [f"{i:02}" + "n" * 62 for i in range(32)]
    token = commit_round(members, SUMMARY_BYTES_MAX, strangers=8)
    tag, body = CODEC.encode(token)
    assert CODEC.decode(tag, body, 0) == token
    assert len(body) < 60_000
    crowded = [entry for entry in token.entries if entry.crowded]
    assert crowded
    assert all(entry.last is None and not entry.able for entry in crowded)


def test_a_token_that_speaks_of_too_many_is_not_filled_in():
    names_ = tuple(f"x{i:04}" for i in range(2 * NAMES_MAX))
    forged = Commit(
        ViewId(8, "a"),
        1,
        1,
        (CommitEntry("a", ViewId(4, "a"), obligation=names_), CommitEntry("b")),
    )
    assert fill_in(forged, CommitEntry("b", ViewId(4, "b"))) is None


@pytest.mark.parametrize("name", ["../x", "a\n", "n" * 65, ".", "a\x1b[2J"])
def test_messages_hold_no_name_that_no_node_can_have(name):
    entry = CommitEntry("a", ViewId(1, "a"), b"", (), None, (), True, ("a",))
    for message in (
        Join((name,), (), 1),
        Join(("a",), (name,), 1),
        Commit(ViewId(8, name), 3, 1, (entry,)),
        Commit(ViewId(8, "a"), 3, 1, (replace(entry, node=name),)),
        Commit(ViewId(8, "a"), 3, 1, (replace(entry, founders=(name,)),)),
    ):
        with pytest.raises(WireError, match="malformed"):
            CODEC.decode(*CODEC.encode(message), 0)


def test_settings_of_others_can_be_printed():
    for terms in (Terms("engine=\n", "a,b"), Terms("engine=totem", "a,\x1b[2J")):
        with pytest.raises(WireError, match="cannot be printed"):
            CODEC.decode(*CODEC.encode(Join(("a",), (), 1, terms)), 0)
