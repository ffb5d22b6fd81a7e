"""The short cut for own messages does what the long way does, which nodes with a trace take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.contract import Boot, QueueFullError
from roundelay.core.log import EMPTY_LOG
from roundelay.group.log.config import LogConfig
from roundelay.group.log.sending import Sending
from roundelay.group.packer import GroupConfig

STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 300)),
    st.tuples(st.just("named"), st.integers(0, 300)),
    st.sampled_from([("open", 0), ("feed", 0), ("back", 0)]),
)


def sending(*, traced):
    return Sending(
        Boot("g", "a", journal=EMPTY_LOG, session=5, traced=traced),
        LogConfig(queue_bytes=2000, queue_messages=20),
        GroupConfig(packet_bytes=200, packet_messages=6),
        [],
    )


def do(sending, verb, size):
    """What came of one step: a number, an error, or what was fed."""
    try:
        if verb == "append":
            return sending.append(b"x" * size, 7)
        if verb == "named":
            return sending.append(b"y" * size, 7, sending.open_session("s", 7))
        if verb == "open":
            return sending.open_session("t", 7)
    except QueueFullError as e:
        return str(e)
    if verb == "back":
        return sending.take_back()
    fed = []
    if sending.unfed:
        sending.feed(lambda bodies, count: fed.append((bodies, count)))
    return fed


@given(st.lists(STEPS, max_size=60))
def test_the_short_cut_changes_nothing(steps):
    short, long = sending(traced=False), sending(traced=True)
    for verb, size in steps:
        assert do(short, verb, size) == do(long, verb, size)
        assert (short.messages, short.bytes, short.unfed) == (
            long.messages,
            long.bytes,
            long.unfed,
        )


def test_messages_that_took_the_short_cut_leave_the_queue_once_they_are_committed():
    waiting = sending(traced=False)
    for _ in range(5):
        waiting.append(b"ten bytes!", 7)
    assert (waiting.messages, waiting.bytes) == (5, 50)
    waiting.feed(lambda bodies, count: None)
    assert (waiting.messages, waiting.bytes) == (5, 50)


@pytest.mark.parametrize("number", [0, 3])
def test_own_messages_are_not_numbered_by_others(number):
    waiting = sending(traced=False)
    waiting.append(b"x", 7)
    with pytest.raises(ValueError, match="only messages of named sessions"):
        waiting.append(b"x", 7, None, number)
