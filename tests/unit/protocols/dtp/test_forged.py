"""The DTP family refuses what no member can have sent, and ends views whatever was forged there."""

import copy

import pytest

from roundelay.core.contract import Item
from roundelay.core.effects import Deliver, Refuse
from roundelay.core.ids import Packet, Service, Span
from roundelay.protocols.dtp.ending import read_summary
from roundelay.protocols.dtp.messages import Ack, Msg, Req
from roundelay.protocols.dtp.token import Grip
from roundelay.wire.packet import encode_packet
from roundelay.wire.primitives import I64_MAX, WireError, Writer

from .member import ABC, Member, msg


def refused(member: Member, peer: str, message: object) -> bool:
    """Whether it was refused, and nothing has changed."""
    engine = member.engine
    before = copy.deepcopy((vars_of(engine.ledger), vars_of(engine.token)))
    effects = member.hear(peer, message)
    assert (vars_of(engine.ledger), vars_of(engine.token)) == before
    return [type(effect) for effect in effects] == [Refuse]


def vars_of(slotted: object) -> dict[str, object]:
    return {
        name: getattr(slotted, name)
        for kind in type(slotted).__mro__
        for name in getattr(kind, "__slots__", ())
    }


def test_packets_under_a_name_that_did_not_send_them():
    member = Member("b")
    assert refused(member, "a", Msg(0, 1, 0, msg(2, 1).packet))
    assert refused(member, "a", Msg(7, 1, 0, msg(2, 1).packet))
    stranger = Packet(Span("ghost", 0, 0), Service.AGREED, b"x")
    assert refused(member, "a", Msg(0, 1, 0, stranger))
    chosen = Packet(Span("a", 0, 0), Service.AGREED, b"x", ("b",))
    assert refused(member, "a", Msg(0, 1, 0, chosen))
    assert refused(member, "a", msg(1, 1)), "its own, and it has sent none"


@pytest.mark.parametrize(
    "ack",
    [
        Ack(3, (), 0, 1, 1),
        Ack(0, ((3, 1),), 1, 1, 1),
        Ack(0, (), 0, 3, 1),
        Ack(2, (), 0, 1, 1),
        Ack(0, (), 0, 1, I64_MAX),
        Ack(0, ((1, 1),), 1, 1, 1),
        Ack(0, ((2, 1), (2, 1)), 2, 1, 1),
    ],
    ids=["holder", "sender", "next", "not its own", "hops", "never sent", "twice in one"],
)
def test_acknowledgments_that_cannot_be_true(ack):
    assert refused(Member("b"), "a", ack)


@pytest.mark.parametrize("here", [True, False], ids=["packet here", "packet missing"])
def test_a_packet_has_one_number(here):
    member = Member("b")
    if here:
        member.hear("c", msg(2, 1))
    member.hear("a", Ack(0, ((2, 1),), 1))
    assert refused(member, "a", Ack(0, ((2, 1),), 2))


def test_another_packet_in_the_place_of_one_that_is_held_changes_nothing():
    member = Member("b")
    member.hear("a", msg(0, 1))
    held = dict(member.engine.ledger.msgs)
    other = Msg(0, 1, 0, Packet(Span("a", 0, 9), Service.SAFE, b"other"))
    member.hear("c", other)
    assert member.engine.ledger.msgs == held


def test_what_comes_under_its_own_name_is_no_news():
    member = Member("a")
    assert member.hear("a", Req(5, (), ())) == []
    assert member.hear("a", Ack(0, (), 0, 1, 1)) == []
    assert member.engine.ledger.held == [0, 0, 0]
    assert member.engine.token.grip is Grip.HOLD


def test_items_that_nobody_can_have_sealed():
    member = Member("b")
    member.hear("c", msg(2, 1))
    member.hear("a", Ack(0, ((2, 1),), 1))
    member.engine.freeze()
    w = Writer()
    w.u16(2)
    w.u64(1)
    uid = w.done()
    own, other = encode_packet(msg(1, 1).packet), encode_packet(msg(0, 1).packet)
    for item in (
        Item((0, 1, 1), own),
        Item((0, 0, 0), other),
        Item((0, 2, 1), other),
        Item((1, 0), uid),
        Item((1, 2), uid),
        Item((1, 2), uid + b"more"),
        Item((2, 1), uid),
    ):
        with pytest.raises(WireError):
            member.engine.absorb(item)
    member.engine.absorb(Item((1, 1), uid))


def test_a_view_ends_with_what_is_here_whatever_a_summary_promised():
    member = Member("b", ABC)
    member.hear("c", msg(2, 1))
    member.hear("a", Ack(0, ((2, 1),), 1))
    own = member.engine.freeze()
    summary = read_summary(own, 3)
    w = Writer()
    w.u64(9)  # Delivered.
    w.u64(summary.hop)
    w.u16(summary.next)
    w.u64(9)
    for _ in range(3):
        w.u64(9)
    summaries = {"a": w.done(), "b": own}
    member.engine.seal(summaries)
    end = member.engine.conclude(summaries, ABC, ("a", "b"))
    ended = [*member.log, *end.regular, *end.transitional]
    assert [deliver.key for deliver in ended if isinstance(deliver, Deliver)] == [(1, 0)]


def test_a_summary_of_a_stranger_is_none():
    member = Member("b")
    own = member.engine.freeze()
    with pytest.raises(WireError):
        member.engine.seal({"b": own, "ghost": own})
