"""Totem given many frames at once does what it does when given one after the other."""

import copy
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.protocols.outlet import Queue

from roundelay.core.contract import Item, Origin
from roundelay.core.effects import CancelTimer, Effect, Refuse, Send, SetTimer
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.membership.ring import NOBODY, Token
from roundelay.protocols.totem import Data, HoldCancel, Message, TokenPass, TotemEngine
from roundelay.wire.packet import encode_packet
from roundelay.wire.primitives import I64_MAX, U32_MAX, WireError, Writer

VIEW = View(ViewId(4, "a"), ("a", "b", "c"))
PEER = Origin("g", "b", 0, VIEW.id)


def packet(sender: str, number: int, *, safe: bool = False) -> Packet:
    service = Service.SAFE if safe else Service.AGREED
    return Packet(Span(sender, 0, number), service, b"x")


def engine(waiting: int) -> TotemEngine:
    """Of node c, with so many packets of its own to send."""
    outlet = Queue(traced=False)
    outlet.packets = [packet("c", number) for number in range(waiting)]
    member = TotemEngine("c", outlet)
    member.start(VIEW)
    return member


data = st.builds(
    lambda seq, safe: Data(seq, packet("b", seq, safe=safe)), st.integers(1, 12), st.booleans()
)
tokens = st.builds(
    lambda hop, seq, aru: TokenPass(Token(hop, seq, min(aru, seq), NOBODY if aru >= seq else 1)),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(0, 12),
)
frames = st.lists(st.one_of(data, data, data, tokens, st.just(HoldCancel())), max_size=30)
lengths = st.lists(st.integers(1, 8), min_size=30, max_size=30)


def split(effects: Sequence[Effect[Any]]) -> tuple[list[Any], list[Any]]:
    """What others and the application see, and timers."""
    timers = [e for e in effects if isinstance(e, SetTimer | CancelTimer)]
    return [e for e in effects if e not in timers], timers


@given(frames, lengths, st.integers(0, 5))
def test_a_run_is_its_frames_one_by_one(
    messages: list[Message], sizes: list[int], waiting: int
) -> None:
    one, many = engine(waiting), engine(waiting)
    singly = [effect for message in messages for effect in one.receive(PEER, message)]
    together: list[Effect[Message]] = []
    for start, end in pairwise(accumulate(sizes, initial=0)):
        together += many.receive_run(PEER, messages[start:end])
    assert split(together) == split(singly)
    assert vars(many.ring) == vars(one.ring)
    ours = {name: v for name, v in vars(many).items() if name not in ("ring", "_outlet")}
    theirs = {name: v for name, v in vars(one).items() if name not in ("ring", "_outlet")}
    assert ours == theirs


def test_packets_of_a_run_that_came_before_the_token_are_delivered_before_it_goes_on() -> None:
    member = engine(1)
    effects = member.receive_run(
        PEER, [Data(1, packet("b", 0)), TokenPass(Token(2, 1, 1)), Data(3, packet("b", 1))]
    )
    seen = [type(effect).__name__ for effect in split(effects)[0]]
    assert seen == ["Deliver", "Record", "Send", "Record", "Send", "Deliver", "Deliver"]


def test_a_copy_of_an_engine_takes_runs_too() -> None:
    member = copy.deepcopy(engine(0))
    assert len(split(member.receive_run(PEER, [Data(1, packet("b", 0))]))[0]) == 1


def refused(effects: Sequence[Effect[Any]]) -> bool:
    return [type(effect) for effect in effects] == [Refuse]


def test_a_token_that_knows_less_than_was_sent_is_forged_and_refused() -> None:
    member = engine(1)
    member.receive(PEER, Data(1, packet("b", 0)))
    assert refused(member.receive(PEER, TokenPass(Token(2, 0, 0))))
    assert len(member.receive(PEER, TokenPass(Token(2, 1, 1)))) > 1


@pytest.mark.parametrize(
    "token",
    [
        Token(6, 0, 0),
        Token(I64_MAX - 1, 0, 0),
        Token(2, 8193, 0, 1),
        Token(2, I64_MAX, I64_MAX),
        Token(2, 3, 0, aru_id=3),
    ],
    ids=["skips a visit", "last hop", "beyond the buffer", "last number", "no member is behind"],
)
def test_a_token_that_no_member_can_have_passed_on_is_refused(token: Token) -> None:
    member = engine(1)
    before = copy.deepcopy(vars(member.ring))
    assert refused(member.receive(PEER, TokenPass(token)))
    assert vars(member.ring) == before


def test_a_copy_of_the_token_is_no_forgery() -> None:
    member = engine(0)
    member.receive(PEER, TokenPass(Token(2)))
    assert member.receive(PEER, TokenPass(Token(2))) == []


@pytest.mark.parametrize("fcc", [80, U32_MAX])
def test_a_forged_count_of_what_was_sent_does_not_stop_the_sender(fcc: int) -> None:
    member = engine(30)
    effects = member.receive(PEER, TokenPass(Token(2, fcc=fcc)))
    assert sum(isinstance(e, Send) and isinstance(e.message, Data) for e in effects) == 20
    assert member.ring.last is not None
    assert member.ring.last.fcc == 20


def test_a_forged_backlog_is_forgotten_when_nobody_has_anything_to_send() -> None:
    member = engine(0)
    member.receive(PEER, TokenPass(Token(2, backlog=U32_MAX)))
    assert member.ring.last is not None
    assert member.ring.last.backlog == 0


def test_a_backlog_beyond_its_field_is_cut() -> None:
    member = engine(30)
    member.receive(PEER, TokenPass(Token(2, backlog=U32_MAX)))
    assert member.ring.last is not None
    assert member.ring.last.backlog == U32_MAX


def test_another_content_for_a_number_that_is_held_does_not_replace_it() -> None:
    member = engine(0)
    first = packet("b", 0, safe=True)
    member.receive(PEER, Data(1, first))
    member.receive(PEER, Data(1, packet("a", 7)))
    assert member.ring.have == {1: first}


def test_a_packet_that_no_member_can_have_sent_is_refused() -> None:
    member = engine(1)
    forged = [
        packet("ghost", 0),
        packet("c", 0),  # Its own, and it has sent none.
        Packet(Span("b", 0, 0), Service.AGREED, b"x", ("a",)),
    ]
    for content in forged:
        assert refused(member.receive(PEER, Data(1, content)))
    assert not member.ring.have
    member.receive(PEER, TokenPass(Token(2)))
    assert member.receive(PEER, Data(1, packet("c", 0))) == [], "a copy of what it sent"
    assert refused(member.receive(PEER, Data(1, packet("c", 1))))


def test_an_item_that_no_member_can_have_sealed_is_refused() -> None:
    member = engine(0)
    member.freeze()
    for item in (
        Item((0,), encode_packet(packet("b", 0))),
        Item((8193,), encode_packet(packet("b", 0))),
        Item((1, 1), encode_packet(packet("b", 0))),
        Item((1,), encode_packet(packet("c", 0))),
        Item((1,), encode_packet(packet("ghost", 0))),
    ):
        with pytest.raises(WireError):
            member.absorb(item)
    assert not member.ring.have


def test_a_view_ends_with_what_is_here_whatever_a_summary_promised() -> None:
    member = engine(0)
    member.receive(PEER, Data(1, packet("b", 0, safe=True)))
    own = member.freeze()
    w = Writer()
    w.u64(9)
    w.u64(9)
    summaries = {"b": w.done(), "c": own}
    member.seal(summaries)
    end = member.conclude(summaries, VIEW, ("b", "c"))
    assert [deliver.key for deliver in end.regular] == [(1, 0)]
