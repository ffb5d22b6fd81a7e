"""What FC says on the wire, and what may be set."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.group.engines import engine_factory
from roundelay.membership.config import TIMERS
from roundelay.protocols.fc import state
from roundelay.protocols.fc.messages import (
    ASK_RUNS,
    BATCH_MAX,
    PART_DECISIONS,
    ROOT,
    Ask,
    Chain,
    Dec,
    DecisionId,
    Epoch,
    FcCodec,
    Promise,
    Regen,
    Rejoin,
    Req,
    Run,
    Stale,
)
from roundelay.wire.primitives import I64_MAX, WireError

from .fed import dec, numbers, packet, req

codec = FcCodec()

large = st.one_of(st.integers(0, 9), st.integers(0, I64_MAX), st.just(I64_MAX))
places = st.integers(0, 4)
epochs = st.builds(Epoch, large, places)
ids = st.builds(DecisionId, large, epochs, places)
runs = st.builds(Run, places, st.integers(1, 2**40), st.integers(1, 50))


@st.composite
def decisions(draw: st.DrawFn) -> Dec:
    number = draw(st.integers(1, I64_MAX))
    size = draw(st.integers(1, 20))
    return Dec(
        draw(st.integers(0, 2**16 - 1)),
        tuple(draw(st.lists(runs, max_size=4))),
        number,
        draw(large),
        tuple(sorted(draw(st.sets(st.integers(0, size - 1))))),
        draw(st.booleans()),
        draw(epochs),
        DecisionId(number - 1, draw(epochs), draw(places)),
        tuple(draw(st.lists(large, min_size=size, max_size=size))),
        draw(ids),
    )


lists = st.lists(decisions(), max_size=3).map(tuple)
messages = st.one_of(
    st.builds(
        lambda cause, sender, number, node, safe: Req(
            sender, number, packet(node, 3, safe=safe), cause
        ),
        ids,
        st.integers(0, 9),
        st.integers(1, I64_MAX),
        st.sampled_from("abc"),
        st.booleans(),
    ),
    decisions(),
    st.builds(Regen, epochs, large, epochs, large),
    st.builds(Promise, epochs, ids, lists),
    st.builds(Stale, epochs),
    st.builds(Ask, large, large, st.lists(runs, max_size=ASK_RUNS).map(tuple)),
    st.builds(Chain, lists),
    st.builds(Rejoin, epochs, large),
)


@given(messages)
def test_messages_survive_the_wire(message):
    tag, data = codec.encode(message)
    assert codec.decode(tag, b"xx" + data, 2) == message
    assert isinstance(str(message), str)
    assert codec.tags[tag]


@given(messages, st.data())
def test_what_is_cut_or_too_long_is_refused(message, data):
    tag, body = codec.encode(message)
    short = body[: data.draw(st.integers(0, len(body) - 1))]
    if not isinstance(message, Req):  # A packet goes on to the end of its frame.
        with pytest.raises(WireError):
            codec.decode(tag, short, 0)
        with pytest.raises(WireError):
            codec.decode(tag, body + b"x", 0)
    else:
        decoded(tag, short)


@given(messages, st.integers(0, 255), st.binary(max_size=9), st.data())
def test_garbage_is_a_message_or_refused(message, tag, noise, data):
    mine, body = codec.encode(message)
    at = data.draw(st.integers(0, len(body)))
    decoded(mine, body[:at] + noise + body[at + len(noise) :])
    decoded(tag, body)
    decoded(tag, noise)


def decoded(tag: int, body: bytes) -> None:
    """What can be read can be written again."""
    try:
        message = codec.decode(tag, body, 0)
    except WireError:
        return
    assert codec.decode(*codec.encode(message), 0) == message


@pytest.mark.parametrize(
    "message",
    [
        req(1, 0),
        dec(0, 1, numbers(0, 0)),
        dec(0, 1, numbers(0, 1, 0)),
        dec(0, 1, numbers(0, I64_MAX, 2)),
        dec(0, 1, *(numbers(n % 9, 1, 2**15) for n in range(3))),
        dec(0, I64_MAX + 1),
        dec(0, 1, version=I64_MAX + 1),
        dec(0, 1, have=(0, 0, I64_MAX + 1)),
        dec(0, 1, confirmed=ROOT._replace(number=I64_MAX + 1)),
        Regen(Epoch(I64_MAX + 1, 0), 0, Epoch(1, 0), 0),
        Promise(Epoch(2, 0), ROOT, (dec(0),) * (PART_DECISIONS + 1)),
        Chain((dec(0),) * (PART_DECISIONS + 1)),
        Ask(1, 1, (numbers(0, 1),) * (ASK_RUNS + 1)),
        dec(0, 1, *(numbers(0, n + 1) for n in range(BATCH_MAX + 1))),
    ],
    ids=str,
)
def test_numbers_that_nobody_gives_out_are_refused(message):
    with pytest.raises(WireError):
        codec.decode(*codec.encode(message), 0)


def test_a_ring_that_no_view_has_cannot_be_written():
    with pytest.raises(ValueError, match="a ring of"):
        codec.encode(dec(0, ring=(0, 10**12)))


def test_timers_are_not_those_of_membership():
    names = {state.WAIT, state.HOLD, state.GRACE, state.TICK}
    assert len(names) == 4
    assert not names & TIMERS


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rules": "x"}, "there are no rules 'x'; choose one of safe, paper, link"),
        ({"k": "-1"}, "k=-1; it is a number of nodes"),
        ({"window_packets": "0"}, "window_packets is 1 at least"),
        ({"batch_packets": str(BATCH_MAX + 1)}, f"batch_packets 1 to {BATCH_MAX}"),
        ({"buffer_packets": "255"}, "buffer_packets=255 is less than a batch"),
        ({"repeat_s": "0"}, "all times are more than 0"),
        ({"idle_s": "0.015"}, "wait_s is twice idle_s"),
        ({"silence_s": "0.01"}, "silence_s is wait_s at least"),
    ],
)
def test_settings_that_make_no_sense_are_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        engine_factory("fc", options)
