"""Requests of all members: which are here, and which want a place."""

import pytest

from roundelay.core.ids import Packet, Service, Span
from roundelay.protocols.fc.messages import DecisionId, Epoch, Run
from roundelay.protocols.fc.requests import Requests

NONE = (0, 0, 0)


def requests(*stored):
    made = Requests(3, 4)
    for sender, number in stored:
        made.store(sender, number, Packet(Span("abc"[sender], 0, number), Service.AGREED, b""))
    return made


def test_requests_of_a_sender_are_ordered_in_their_numbers():
    made = requests((1, 2), (1, 1), (0, 2))
    assert made.choose(NONE, 9) == (Run(1, 1, 2),)


def test_whoever_gets_a_place_goes_to_the_end_of_the_line():
    made = requests((1, 1), (1, 2), (2, 1))
    assert made.choose(NONE, 1) == (Run(1, 1, 1),)
    assert made.choose((0, 1, 0), 1) == (Run(2, 1, 1),)
    assert made.choose((0, 1, 1), 1) == (Run(1, 2, 1),)
    assert made.choose((0, 2, 1), 1) == ()


def test_a_request_that_lost_its_place_gets_another():
    made = requests((1, 1))
    assert made.choose(NONE, 1) == (Run(1, 1, 1),)
    assert not made.wanting(NONE)
    made.recall(1)
    assert made.wanting(NONE)
    assert made.choose(NONE, 1) == (Run(1, 1, 1),)


@pytest.mark.parametrize(("number", "kept"), [(1, True), (4, True), (5, False)])
def test_what_is_too_far_ahead_is_not_kept(number, kept):
    packet = Packet(Span("a", 0, 0), Service.AGREED, b"")
    assert requests().store(0, number, packet) is kept


def test_a_copy_is_nothing_new():
    packet = Packet(Span("a", 0, 0), Service.AGREED, b"")
    assert not requests((0, 1)).store(0, 1, packet)
    assert not requests((0, 3)).store(0, 3, packet)


def test_what_is_lacking_is_told_in_runs():
    made = requests((0, 1), (0, 3))
    assert made.lacking((Run(0, 1, 4), Run(1, 1, 2))) == [Run(0, 2, 1), Run(0, 4, 1), Run(1, 1, 2)]
    assert made.here((Run(0, 1, 1),))
    assert not made.here((Run(0, 1, 3),))


def test_forgotten_requests_are_gone():
    made = requests((0, 1), (0, 2))
    made.forget(0, 1)
    made.forget(0, 1)
    assert list(made.bodies[0]) == [2]


def test_a_request_waits_for_a_chain_with_its_cause():
    made = requests((1, 1), (1, 2), (1, 3))
    cause = DecisionId(7, Epoch(2, 0), 1)
    made.causes[1][2] = cause
    assert made.choose(NONE, 9, lambda id_: id_ != cause) == (Run(1, 1, 1),)
    ordered = (0, 1, 0)
    assert not made.wanting(ordered, lambda id_: id_ != cause)
    assert made.choose(ordered, 9, lambda id_: id_ != cause) == ()
    assert made.wanting(ordered, lambda id_: True)
    assert made.choose(ordered, 9, lambda id_: True) == (Run(1, 2, 2),)


def test_what_comes_at_the_end_of_a_view_is_kept_however_far_ahead_it_is():
    """Others may have forgotten more than this member, and so have sent more."""
    made = requests((1, 1), (1, 2))
    far = Packet(Span("b", 0, 50), Service.AGREED, b"")
    assert not made.store(1, 50, far)
    made.absorb(1, 50, far)
    assert made.bodies[1][50] == far
    assert made.arrived[1] == 2, "there is a gap before it"
    made.absorb(1, 3, far)
    assert made.arrived[1] == 3
