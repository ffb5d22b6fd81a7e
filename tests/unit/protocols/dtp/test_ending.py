"""How a view of the DTP family ends."""

from random import Random

import pytest

from roundelay.core.contract import Conclusion, Item
from roundelay.core.effects import Deliver, Kind, Send
from roundelay.core.ids import Packet, View, ViewId
from roundelay.protocols.dtp.messages import Ack, Message, Req
from roundelay.protocols.dtp.policy import CM, DTP, PINWHEEL
from roundelay.protocols.dtp.token import Grip
from roundelay.wire.primitives import WireError

from .member import Member, msg


def part(*members: Member, obliged="", rounds=2) -> list[Conclusion]:
    """These move on together, after an attempt that came to nothing."""
    names = tuple(member.engine.node for member in members)
    for _ in range(rounds):
        summaries = {member.engine.node: member.engine.freeze() for member in members}
        items = [item for member in members for item in member.engine.seal(summaries)]
        for member in members:
            for item in items:
                member.engine.absorb(item)
    transitional = View(ViewId(11, names[0]), names, transitional=True)
    duty = tuple(sorted({*names, *obliged}))
    return [member.engine.conclude(summaries, transitional, duty) for member in members]


def shown(delivers) -> list[str]:
    """Each delivery as its number, if it has one, and whose packet it is."""
    return [f"{d.key[0] if d.key else '?'}:{d.packet.span.node}" for d in delivers]


def spans(packets) -> list[str]:
    return [str(packet.span) for packet in packets]


def test_a_frozen_member_stores_and_does_nothing_else():
    member = Member("b")
    member.engine.freeze()
    member.hear("a", msg(0, 1))
    assert [effect.kind for effect in member.out] == [Kind.RECEIVE]
    assert member.hear("a", Ack(0, ((0, 1),), 1, 1, 1)) == []
    assert member.hear("c", Req(0, ((0, 1),), ())) == []
    assert member.engine.token.grip is Grip.EMPT
    assert shown(part(member)[0].transitional) == ["1:a"]


def test_what_one_delivered_is_delivered_by_all_in_the_old_view():
    a, b = Member("a"), Member("b")
    a.say()
    one, two = part(a, b)
    assert (one.regular, shown(two.regular)) == ((), ["1:a"])
    assert one.transitional == two.transitional == ()


def test_where_the_token_is_here_what_has_no_number_is_withdrawn():
    a, b = Member("a"), Member("b")
    b.say()
    one, two = part(a, b)
    assert spans(two.withdrawn) == ["b:0"]
    assert (one.withdrawn, one.transitional, two.transitional) == ((), (), ())


def test_where_the_token_went_to_somebody_else_it_is_delivered_without_a_number():
    a, b = Member("a"), Member("b")
    a.engine.token.pass_on(Ack(0, (), 0, 2, 1))
    b.say()
    for end in part(a, b):
        assert shown(end.transitional) == ["?:b"]
        assert end.withdrawn == ()


def test_a_token_on_its_way_to_somebody_here_is_here():
    a, b = Member("a"), Member("b")
    a.engine.token.pass_on(Ack(0, (), 0, 1, 1))
    b.say()
    assert spans(part(a, b)[1].withdrawn) == ["b:0"]


def test_what_an_earlier_attempt_may_have_delivered_is_not_withdrawn():
    """a and c may have ended the view without a token: then c has delivered what a sent."""
    a, b = Member("a"), Member("b")
    b.say()
    for end in part(a, b, obliged="c"):
        assert shown(end.transitional) == ["?:b"]


def test_an_unknown_number_may_be_anybodys():
    """The token is here, and number 1 was given out, to whom nobody here knows."""
    a, b = Member("a"), Member("b")
    b.say()
    b.hear("c", Ack(2, (), 1, 0, 2))
    for end in part(a, b):
        assert shown(end.transitional) == ["?:b"]


def test_behind_a_gap_those_who_are_here_deliver_their_own():
    """Number 1 is c's, which is gone with its packet. b's came after it, and c's second too."""
    a, b = Member("a"), Member("b")
    b.say()
    for member in (a, b):
        member.hear("c", Ack(2, ((2, 1), (1, 1), (2, 2)), 3, 0, 2))
        member.hear("c", msg(2, 2))
    for end in part(a, b):
        assert end.regular == ()
        assert shown(end.transitional) == ["2:b"]
        assert end.withdrawn == ()


def test_a_sender_is_followed_in_its_order_behind_a_gap():
    """The number of b's first packet is not known, that of its second is."""
    a = Member("a", policy=PINWHEEL)
    b = Member("b", policy=PINWHEEL, window_packets=2)
    b.say(2)
    for member in (a, b):
        member.hear("c", Ack(2, ((1, 2),), 2, 2, 5))
    for end in part(a, b):
        late = [(d.key, d.packet.span.first) for d in end.transitional if isinstance(d, Deliver)]
        assert late == [(None, 0), ((2, 0), 1)]


def test_where_many_hold_packets_nothing_is_delivered_without_a_number():
    a, b = Member("a", resilience=1), Member("b", resilience=1)
    a.engine.token.pass_on(Ack(0, (), 0, 2, 1))
    b.say()
    one, two = part(a, b)
    assert one.transitional == two.transitional == ()
    assert spans(two.withdrawn) == ["b:0"]


def both_hear(one: Member, other: Member, *said) -> None:
    for peer, message in said:
        for member in (one, other):
            if member.engine.node != peer:
                member.hear(peer, message)


def test_where_many_hold_packets_an_absent_sender_must_be_known_to():
    """c's packet has number 1, and c may not know: it might send it again. b's has number 2."""
    a, b = Member("a", resilience=1), Member("b", resilience=1)
    both_hear(a, b, ("c", msg(2, 1)), ("b", msg(1, 1)))
    b.say()
    both_hear(a, b, ("a", Ack(0, ((2, 1), (1, 1)), 2, 2, 1)))
    a.engine.ledger.learn(Ack(0, ((2, 1), (1, 1)), 2))
    for end in part(a, b):
        assert shown((*end.regular, *end.transitional)) == ["2:b"]


def test_where_many_hold_packets_word_of_an_absent_sender_is_enough():
    a, b = Member("a", resilience=1), Member("b", resilience=1)
    both_hear(a, b, ("c", msg(2, 1)))
    (ack,) = [m for m in a.sent if isinstance(m, Ack)] or [Ack(0, ((2, 1),), 1, 1, 1)]
    b.hear("a", ack)
    b.hear("c", msg(2, 2, held=1))
    one, two = part(a, b)
    assert shown((*one.regular, *one.transitional)) == ["1:c"]
    assert b.engine.delivered + len(two.regular) + len(two.transitional) == 1


def a_group_at_random(random: Random) -> dict[str, Member]:
    """Four members of some policy and resilience, and some of what they said reached some."""
    policy = random.choice((DTP, CM, PINWHEEL))
    options = {"resilience": random.randrange(4)}
    if policy is PINWHEEL:
        options["window_packets"] = random.choice((1, 3))
    view = View(ViewId(8, "a"), tuple("abcd"))
    group = {node: Member(node, view, policy, **options) for node in view.members}
    rumour(random, group)
    return group


@pytest.mark.parametrize("seed", range(200))
def test_whoever_moves_on_with_whom_they_decide_alike_and_nothing_is_done_twice(seed):
    random = Random(seed)
    group = a_group_at_random(random)
    cut = random.randint(1, 4)
    mixed = random.sample("abcd", 4)
    sides = [sorted(mixed[:cut]), sorted(mixed[cut:])]
    withdrawn: list[Packet] = []
    histories: list[list[Deliver]] = []
    for side in filter(None, sides):
        members = [group[node] for node in side]
        ends = part(*members, rounds=random.choice((1, 2)))
        for member, end in zip(members, ends, strict=True):
            assert shown(end.transitional) == shown(ends[0].transitional)
            late = [effect for effect in end.transitional if isinstance(effect, Deliver)]
            history = [*member.log, *end.regular, *late]
            keys = [deliver.key for deliver in history if deliver.key]
            assert keys == sorted(set(keys))
            packets = [deliver.packet for deliver in history]
            own = [p for p in (*packets, *end.withdrawn) if p.span.node == member.engine.node]
            pulled = member.said - member.queue.waiting
            assert sorted(p.span.first for p in own) == list(range(pulled))
            withdrawn += end.withdrawn
            histories.append(history)
        lengths = {
            len(member.log) + len(end.regular) for member, end in zip(members, ends, strict=True)
        }
        assert len(lengths) == 1
    delivered = {deliver.packet for history in histories for deliver in history}
    assert delivered.isdisjoint(withdrawn)
    if group["a"].engine.sender_first:
        assert all(deliver.key for history in histories for deliver in history)


def rumour(random: Random, group: dict[str, Member]) -> None:
    """Let members speak over a network that loses a third of all frames."""
    flying: list[tuple[str, str, Message]] = []
    for _ in range(random.randint(5, 80)):
        if random.random() < 0.3 or not flying:
            node = random.choice(sorted(group))
            group[node].say()
        else:
            sender, node, message = flying.pop(random.randrange(len(flying)))
            if random.random() < 0.33:
                continue
            group[node].hear(sender, message)
        for effect in group[node].out:
            if isinstance(effect, Send):
                others = [other for other in group if other != node]
                receivers = others if effect.to is None else [effect.to]
                flying += [(node, receiver, effect.message) for receiver in receivers]


def test_what_is_absorbed_must_make_sense():
    member = Member("b")
    other = Member("a")
    other.say()
    other.engine.freeze()
    member.engine.freeze()
    summaries = {"a": other.engine.freeze(), "b": member.engine.freeze()}
    good = other.engine.seal(summaries)
    assert [item.key for item in good] == [(0, 0, 1), (1, 1)]
    for item in (
        Item((0, 1, 1), good[0].body),
        Item((0, 9, 1), good[0].body),
        Item((1, 1), b"\xff" * 10),
        Item((2, 1), b""),
        Item((0,), b""),
    ):
        with pytest.raises(WireError):
            member.engine.absorb(item)
    for bad in (b"", summaries["a"] + b"x", b"\xff" * len(summaries["a"])):
        with pytest.raises(WireError):
            member.engine.seal({**summaries, "a": bad})
    records = [record for item in good for record in member.engine.absorb(item)]
    assert [record.kind for record in records] == [Kind.RECEIVE]
