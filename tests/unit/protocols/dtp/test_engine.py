"""The DTP family, one input at a time: ordering, delivery, token, nonsense."""

from random import Random

import pytest

from roundelay.core.effects import Deliver, Kind, Record, Send, SetTimer, Suspect
from roundelay.core.ids import Service, View, ViewId
from roundelay.protocols.dtp.messages import NOBODY, Ack, Msg, Req
from roundelay.protocols.dtp.policy import CM, DTP, PINWHEEL
from roundelay.protocols.dtp.token import Grip

from .member import STATIC, Member, msg, packet

# Sending and ordering


@pytest.mark.parametrize("policy", [DTP, CM])
def test_one_packet_is_under_way_at_a_time(policy):
    member = Member("b", policy=policy)
    member.say(3)
    assert [m.number for m in member.sent] == [1]
    assert member.say() == []
    member.hear("a", Ack(0, ((1, 1),), 1, 2, 1))
    assert [(m.number, m.held) for m in member.sent] == [(2, 1)]


@pytest.mark.parametrize("policy", [DTP, CM])
def test_with_a_window_several_are_under_way_and_one_is_ordered_at_a_time(policy):
    member = Member("b", policy=policy, window_packets=2)
    member.say(3)
    assert [m.number for m in member.sent] == [1, 2]
    member.hear("a", Ack(0, ((1, 1),), 1, 2, 1))
    assert [m.number for m in member.sent] == [3]
    holder = Member("a", policy=policy, window_packets=2)
    holder.hear("b", msg(1, 1))
    assert [m.uids for m in holder.sent] == [((1, 1),)]
    holder.hear("b", msg(1, 2))
    holder.hear("c", Ack(2, (), 1, 0, 3))
    assert [m.uids for m in holder.sent] == [((1, 2),)]


@pytest.mark.parametrize("policy", [DTP, CM, PINWHEEL])
def test_a_node_sends_as_many_as_its_window_and_orders_as_many_as_a_batch(policy):
    member = Member("b", policy=policy, window_packets=2)
    member.say(3)
    assert [m.number for m in member.sent] == [1, 2]
    holder = Member("a", policy=policy, batch_packets=2)
    holder.engine.token.grip = Grip.EMPT
    for message in (msg(1, 1), msg(1, 2), msg(2, 1)):
        holder.hear("bbc"[message.number - 1 + message.sender - 1], message)
    holder.hear("c", Ack(2, (), 0, 0, 1))
    (ack,) = holder.sent
    assert (ack.uids, ack.last) == (((1, 1), (1, 2)), 2)
    assert [record.key for record in holder.recorded(Kind.ORDER)] == [(1, 0), (2, 0)]


def test_alone_everything_is_ordered_and_stable_at_once():
    member = Member("a", View(ViewId(4, "a"), ("a",)), resilience=3)
    out = member.say(2, Service.SAFE)
    assert member.delivered == [1, 2]
    assert len(member.recorded(Kind.STABLE)) == 2
    assert not [effect for effect in out if isinstance(effect, Send | SetTimer | Suspect)]


def test_what_is_announced_was_delivered_before():
    """A crash between two effects must not leave others with a false belief."""
    holder = Member("a")
    holder.hear("b", msg(1, 1))
    kinds = [e.kind if isinstance(e, Record) else type(e) for e in holder.out]
    assert kinds.index(Kind.ORDER) < kinds.index(Deliver) < kinds.index(Send)
    assert kinds.index(Kind.TOKEN) < kinds.index(Send)


@pytest.mark.parametrize("policy", [DTP, CM, PINWHEEL])
def test_where_nobody_reads_records_there_are_none_of_packets(policy):
    """All else is the same."""
    said = []
    for traced in (True, False):
        member = Member("a", STATIC, policy, traced=traced)
        out = [*member.out, *member.say(2)]
        out += member.hear("b", msg(1, 1, held=1))
        out += member.hear("b", Ack(1, ((1, 1),), 2, 2, 2))
        out += member.hear("c", Ack(2, (), 2, 0, 3))
        said.append(out)
    rows, others = split(said[0])
    assert {row.kind for row in rows} == {
        Kind.ORIGINATE,
        Kind.ORDER,
        Kind.RECEIVE,
        Kind.STABLE,
    }
    assert split(said[1]) == ([], others)


def split(effects):
    """Records of packets, and everything else."""
    rows = [e for e in effects if isinstance(e, Record) and e.kind is not Kind.TOKEN]
    return rows, [effect for effect in effects if effect not in rows]


def test_who_lacks_something_orders_nothing():
    member = Member("b")
    member.hear("c", msg(2, 1))
    member.hear("a", Ack(0, ((0, 1),), 1, 1, 1))
    assert member.engine.token.grip is Grip.HOLD
    assert [type(m) for m in member.sent] == [Req]
    member.hear("a", msg(0, 1))
    assert [(m.last, m.uids) for m in member.sent] == [(2, ((2, 1),))]


def test_cm_believes_acknowledgments_alone():
    for policy, believed in ((CM, 0), (PINWHEEL, 1), (DTP, 1)):
        member = Member("a", policy=policy)
        member.say()
        member.hear("b", msg(1, 1, held=1))
        assert member.engine.ledger.held[1] == believed


# What may be delivered


def test_delivery_waits_for_as_many_as_the_resilience_says():
    view = View(ViewId(0, "a"), tuple("abcde"))
    member = Member("d", view, resilience=2)
    member.hear("b", msg(1, 1))
    member.hear("a", Ack(0, ((1, 1),), 1, 1, 1))
    assert member.delivered == []
    member.hear("c", msg(2, 1, held=1))
    assert member.delivered == [1]


@pytest.mark.parametrize(("view", "waits"), [(8, True), (0, False)])
def test_in_views_many_must_hold_a_packet_and_its_sender_too(view, waits):
    """A static group has no other side on which its sender might take it back."""
    members = View(ViewId(view, "a"), tuple("abcde"))
    member = Member("d", members, resilience=2)
    member.hear("b", msg(1, 1))
    member.hear("a", Ack(0, ((1, 1),), 1, 1, 1))
    member.hear("c", msg(2, 1, held=1))
    assert (member.delivered == []) is waits
    member.hear("b", Ack(1, ((2, 1),), 2, 4, 2))
    assert member.engine.delivered == 1


def test_a_safe_packet_waits_for_all_and_others_wait_behind_it():
    member = Member("c", STATIC)
    member.hear("a", msg(0, 1, service=Service.SAFE))
    member.hear("b", msg(1, 1))
    member.hear("a", Ack(0, ((0, 1),), 1, 1, 1))
    member.hear("b", Ack(1, ((1, 1),), 2, 0, 2))
    assert member.engine.delivered == 2
    late = Member("c", STATIC)
    late.hear("a", msg(0, 1, service=Service.SAFE))
    late.hear("b", msg(1, 1))
    late.hear("a", Ack(0, ((0, 1), (1, 1)), 2, 1, 1))
    assert late.engine.delivered == 0
    late.hear("b", Ack(1, (), 2, 2, 2))
    assert late.delivered == [1, 2]


def test_the_level_of_a_claim_says_what_is_known():
    """2, delivered by all, only where holding is delivering: F = 0, and no safe packet before."""
    for resilience, service, level in (
        (0, Service.AGREED, 2),
        (0, Service.SAFE, 1),
        (1, Service.AGREED, 1),
    ):
        member = Member("c", STATIC, resilience=resilience)
        member.hear("a", msg(0, 1, service=service))
        member.hear("a", Ack(0, ((0, 1),), 1, 1, 1))
        member.hear("b", Ack(1, (), 1, 2, 2))
        assert [record.level for record in member.recorded(Kind.STABLE)] == [level]
        assert not member.engine.ledger.msgs
        assert not member.engine.ledger.acks


# The token


def test_a_transfer_counts_once_and_only_from_who_had_the_token():
    member = Member("b")
    transfer = Ack(0, (), 0, 1, 1)
    grips = []
    for peer in "caa":
        member.hear(peer, transfer)
        grips.append(member.engine.token.grip)
        if member.engine.token.grip is Grip.HOLD:
            member.expire("silence")
    assert grips == [Grip.EMPT, Grip.HOLD, Grip.TRST]


def test_a_copy_for_somebody_who_asked_hands_on_nothing():
    holder = Member("a")
    holder.hear("b", msg(1, 1))
    holder.hear("b", Ack(1, (), 1, 0, 2))
    holder.hear("b", msg(1, 1))
    assert holder.sent == [Ack(0, ((1, 1),), 1)]
    receiver = Member("b")
    receiver.say()
    receiver.hear("a", Ack(0, ((1, 1),), 1))
    assert receiver.engine.token.grip is Grip.EMPT
    assert receiver.engine.ledger.held[0] == 1


def test_the_silence_period_begins_once():
    holder = Member("a")
    assert [e for e in holder.out if isinstance(e, SetTimer) and e.timer == "silence"]
    for effect in holder.hear("b", Req(0, (), ())):
        assert not isinstance(effect, SetTimer)


def test_only_who_has_the_token_answers_and_who_handed_it_to_the_one_that_asks():
    holder = Member("a")
    holder.say()
    assert holder.engine.token.grip is Grip.TRST
    (ack,) = [m for m in holder.sent if isinstance(m, Ack)]
    request = Req(0, ((0, 1),), (1,))
    holder.hear("c", request)
    assert holder.sent == []
    holder.hear("b", request)
    assert [type(m) for m in holder.sent] == [Ack, Msg, Ack]
    assert holder.sent[-1] == ack
    assert holder.sent[0].next == NOBODY
    bystander = Member("c")
    bystander.hear("a", msg(0, 1))
    bystander.hear("b", Req(0, ((0, 1),), ()))
    assert bystander.sent == []


# Nonsense


def test_forged_messages_change_little_and_raise_nothing():
    random = Random(5)
    for policy, more in ((DTP, {}), (CM, {}), (PINWHEEL, {"batch_packets": 50})):
        member = Member("b", policy=policy, buffer_packets=50, **more)
        for _ in range(4000):
            number = random.choice((0, 1, 2, 3, 60, 10**17))
            member.hear(random.choice("ac"), forged(random, number))
        ledger = member.engine.ledger
        assert len(ledger.msgs) <= 4 * 52
        assert len(ledger.acks) <= ledger.ready + 50
        assert ledger.top <= ledger.ready + 50


def forged(random: Random, number: int):
    uid = random.choice((0, 1, 2, 7)), random.choice((1, 2, 3, 90))
    match random.randrange(3):
        case 0:
            name = random.choice(("a", "b", "c", "zz"))
            return Msg(uid[0], uid[1], number, packet(name, number % 5))
        case 1:
            uids = (uid,) if number else ()
            next_ = random.choice((0, 1, 2, 9, NOBODY))
            return Ack(random.choice((0, 1, 2, 9)), uids, number, next_, random.randrange(4))
        case _:
            return Req(number, (uid,), (number,))
