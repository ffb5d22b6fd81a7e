"""The books of the DTP family: who holds what."""

import pytest

from roundelay.protocols.dtp.ledger import Ledger, LiteralLedger
from roundelay.protocols.dtp.messages import Ack, Req
from roundelay.protocols.dtp.token import Grip

from .member import Member, msg


def test_a_packet_is_held_with_its_number_and_all_before():
    ledger = Ledger(3, 0, 100)
    ledger.learn(Ack(1, ((1, 1),), 1))
    ledger.learn(Ack(1, ((2, 1),), 2))
    ledger.store(msg(2, 1))
    ledger.extend()
    assert (ledger.ready, ledger.held[0], ledger.top) == (0, 0, 2)
    assert ledger.request() == Req(0, ((1, 1),), ())
    ledger.store(msg(1, 1))
    ledger.extend()
    assert (ledger.ready, ledger.held[0]) == (2, 2)


def test_a_sender_is_heard_in_its_order():
    ledger = Ledger(3, 0, 100)
    ledger.store(msg(1, 2))
    assert list(ledger.waiting) == []
    ledger.store(msg(2, 1))
    ledger.store(msg(1, 1))
    assert list(ledger.waiting) == [(2, 1), (1, 1), (1, 2)]
    assert not ledger.store(msg(1, 2))


def test_what_a_member_holds_never_shrinks():
    ledger = Ledger(3, 0, 100)
    ledger.note(1, 5)
    ledger.note(1, 3)
    assert ledger.held[1] == 5


def test_the_least_active_member_is_the_next_in_the_ring_among_equals():
    ledger = Ledger(5, 2, 100)
    ledger.held = [1, 2, 0, 3, 1]
    assert ledger.least() == 4
    ledger.held = [1, 2, 0, 3, 2]
    assert ledger.least() == 0
    ledger.held = [4, 4, 0, 4, 4]
    assert ledger.least() == 3


def test_what_is_too_far_ahead_is_dropped_to_come_again():
    member = Member("b", buffer_packets=8)
    ledger = member.engine.ledger
    member.hear("a", Ack(0, ((2, 1),), 9, 1, 1))
    assert (ledger.top, ledger.held, member.engine.token.grip) == (0, [0, 0, 0], Grip.EMPT)
    member.hear("c", msg(2, 10, 9))
    assert not ledger.msgs
    assert ledger.held == [0, 0, 0]
    member.hear("a", Ack(0, ((2, 1),), 8, 1, 1))
    assert (ledger.top, member.engine.token.grip) == (8, Grip.HOLD)


def test_a_request_asks_for_so_much_at_a_time():
    member = Member("b")
    member.hear("a", Ack(0, (), 1000, 2, 1))
    (req,) = member.sent
    assert req.acks == tuple(range(1, 65))


def test_what_is_ordered_here_is_held_here():
    ledger = Ledger(3, 1, 100)
    for message in (msg(0, 1), msg(1, 1), msg(2, 1)):
        ledger.store(message)
    ack = ledger.order(((0, 1), (1, 1)), 2, 7)
    assert ack == Ack(1, ((0, 1), (1, 1)), 2, 2, 7)
    assert (ledger.ready, ledger.top, ledger.held) == (2, 2, [0, 2, 0])
    assert (ledger.own_ready, list(ledger.waiting)) == (1, [(2, 1)])
    assert [ledger.known(number).span.node for number in (1, 2)] == ["a", "b"]
    ledger.learn(Ack(0, (), 3))
    with pytest.raises(AssertionError, match="something missing"):
        ledger.order(((2, 1),), 0, 8)


def test_what_is_forgotten_leaves_nothing_behind():
    """Under the literal rules a number can be stable whose packet never came, or which this
    member never heard of."""
    ledger = LiteralLedger(3, 0, 100)
    ledger.store(msg(1, 1))
    ledger.learn(Ack(1, ((1, 1), (2, 1)), 2))
    forgotten = [ledger.drop(number) for number in (1, 2, 3)]
    assert forgotten == [msg(1, 1).packet, None, None]
    assert not any((ledger.msgs, ledger.acks, ledger.places))
    ledger.store(msg(2, 1))
    assert list(ledger.waiting) == [(2, 1)]


def test_a_packet_does_not_wait_for_the_number_that_it_has():
    """Whichever came first, and also if another of its sender was missing."""
    ledger = Ledger(3, 0, 100)
    ledger.learn(Ack(1, ((1, 1), (1, 2), (2, 1)), 3))
    assert ledger.places == {(1, 1): 1, (1, 2): 2, (2, 1): 3}
    for message in (msg(1, 2), msg(1, 1), msg(2, 1), msg(2, 2)):
        ledger.store(message)
    assert list(ledger.waiting) == [(2, 2)]
    ledger.learn(Ack(1, ((2, 2),), 4))
    assert not ledger.waiting


def test_a_literal_copy_of_an_own_acknowledgment_counts_no_transfer():
    ledger = LiteralLedger(3, 1, 100)
    ledger.store(msg(0, 1))
    ledger.order(((0, 1),), 2, 7)
    ledger.learn(Ack(2, ((2, 1),), 2, 0, 8))
    assert ledger.copy(1) == Ack(1, ((0, 1),), 1, 2, 0)
    assert ledger.copy(2) == Ack(2, ((2, 1),), 2, 0, 8)
