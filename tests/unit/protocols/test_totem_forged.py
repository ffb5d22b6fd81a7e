"""Totem refuses what no member of its ring can have sent, and no forged token does lasting harm."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.protocols.test_totem_runs import PEER, VIEW, engine, packet

from roundelay.core.contract import Item
from roundelay.core.effects import Effect, Refuse
from roundelay.core.ids import Packet, Service, Span
from roundelay.membership.ring import Token
from roundelay.protocols.totem import Data, TokenPass
from roundelay.wire.packet import encode_packet
from roundelay.wire.primitives import I64_MAX, U32_MAX, WireError, Writer


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
        Token(3, 0, 0),
        Token(6, 0, 0),
        Token(I64_MAX - 1, 0, 0),
        Token(2, 8193, 0, 1),
        Token(2, I64_MAX, I64_MAX),
        Token(2, 3, 0, aru_id=3),
    ],
    ids=[
        "one hop on",
        "skips a visit",
        "last hop",
        "beyond the buffer",
        "last number",
        "no member is behind",
    ],
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
def test_a_forged_count_of_what_was_sent_is_forgotten_when_nobody_sends(fcc: int) -> None:
    member = engine(0)
    for visit in range(5):
        member.receive(PEER, TokenPass(Token(2 + 3 * visit, fcc=fcc, backlog=U32_MAX)))
        assert member.ring.last is not None
        fcc, backlog = member.ring.last.fcc, member.ring.last.backlog
    assert (fcc, backlog) == (0, 0)


def test_counters_beyond_their_fields_are_cut() -> None:
    member = engine(1)
    member.receive(PEER, TokenPass(Token(2)))
    member.receive(PEER, TokenPass(Token(5, 1, 0, 1, (1,), fcc=U32_MAX, backlog=U32_MAX)))
    assert member.ring.last is not None
    member.ring.last.encode()
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
