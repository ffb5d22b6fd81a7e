"""What takes a member of the DTP family too long, and whom it suspects."""

import pytest

from roundelay.core.effects import Suspect
from roundelay.protocols.dtp.messages import Ack, Req

from .member import Member, msg


def suspects(member):
    return [effect for effect in member.out if isinstance(effect, Suspect)]


def test_a_successor_that_does_not_answer_is_suspected_again_and_again():
    member = Member("a", attempts=2)
    member.say()
    found = []
    for _ in range(4):
        member.expire("repeat_ack")
        found.append(suspects(member))
        assert member.engine.token.sent in member.sent
    b = Suspect(("b",), "it does not take the token")
    assert found == [[], [b], [], [b]]


def test_a_successor_that_speaks_and_does_not_answer_fails_to_receive():
    member = Member("a", attempts=2)
    member.say()
    for _ in range(2):
        member.hear("b", msg(1, 1))
        member.expire("repeat_ack")
    assert suspects(member) == [Suspect(("b",), "it fails to receive")]


def test_a_successor_that_asks_is_waited_for_but_not_for_ever():
    member = Member("a", attempts=2, asking_attempts=5)
    member.say()
    found = []
    for _ in range(5):
        member.hear("b", Req(0, ((0, 1),), ()))
        member.expire("repeat_ack")
        found.append(suspects(member))
    assert found == [[], [], [], [], [Suspect(("b",), "it fails to receive")]]


def test_a_successor_that_asks_no_more_is_a_silent_one():
    member = Member("a", attempts=2, asking_attempts=50)
    member.say()
    member.expire("repeat_ack")
    member.hear("b", Req(0, ((0, 1),), ()))
    found = []
    for _ in range(2):
        member.expire("repeat_ack")
        found.append(suspects(member))
    assert found == [[], [Suspect(("b",), "it fails to receive")]]


def test_the_next_transfer_is_waited_for_anew():
    member = Member("a", asking_attempts=2)
    member.say()
    member.expire("repeat_ack")
    member.hear("b", Ack(1, (), 1, 0, 2))
    member.say()
    member.expire("repeat_ack")
    assert suspects(member) == []


def test_what_is_not_ordered_or_does_not_come_puts_the_view_in_doubt():
    member = Member("b", watch_s=2.0, msg_repeat_s=1.0, req_repeat_s=1.0)
    member.say()
    member.expire("repeat_msg")
    assert suspects(member) == []
    assert [m.number for m in member.sent] == [1]
    member.expire("repeat_msg")
    assert suspects(member) == [Suspect((), "nobody orders what was sent")]
    member.hear("a", Ack(0, ((0, 1),), 1, 2, 1))
    member.expire("repeat_req")
    member.expire("repeat_req")
    assert suspects(member) == [Suspect((), "what is missing does not come")]


def test_progress_is_an_answer():
    member = Member("b", watch_s=2.0, req_repeat_s=1.0)
    member.hear("a", Ack(0, ((0, 1), (0, 2)), 2, 2, 1))
    member.expire("repeat_req")
    member.hear("a", msg(0, 1))
    member.expire("repeat_req")
    assert suspects(member) == []


def test_while_somebody_asks_nobody_misses_the_token_or_a_number():
    member = Member("b", watch_s=2.0, msg_repeat_s=1.0)
    member.say()
    for _ in range(3):
        member.hear("c", Req(0, ((0, 1),), ()))
        for timer in ("repeat_msg", "watch"):
            member.expire(timer)
            assert suspects(member) == []
    member.expire("repeat_msg")
    assert suspects(member) == [Suspect((), "nobody orders what was sent")]
    member.expire("watch")
    assert suspects(member) == [Suspect((), "the token is lost")]


def test_who_asks_in_vain_says_so_itself():
    member = Member("b", watch_s=2.0, msg_repeat_s=1.0, req_repeat_s=1.0)
    member.say()
    member.hear("a", Ack(0, ((0, 1),), 1, 2, 1))
    for timer in ("repeat_msg", "repeat_req", "repeat_msg", "watch"):
        member.expire(timer)
        assert suspects(member) == []
    member.expire("repeat_req")
    assert suspects(member) == [Suspect((), "what is missing does not come")]


def test_a_token_that_nobody_repeats_is_missed():
    member = Member("b")
    member.hear("a", Ack(0, (), 0, 2, 1))
    member.expire("watch")
    assert suspects(member) == []
    member.expire("watch")
    assert suspects(member) == [Suspect((), "the token is lost")]
    with pytest.raises(AssertionError):
        member.expire("token_loss")
