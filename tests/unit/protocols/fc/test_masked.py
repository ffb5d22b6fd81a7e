"""What a member does that is off the ring, and what others do about it."""

from roundelay.core.effects import Send
from roundelay.protocols.fc.messages import FIRST_EPOCH, Ask, Dec, Rejoin, Req

from .fed import Circle, Fed, dec, numbers, req


def sent(effects, kind):
    return [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def test_a_member_off_the_ring_answers_every_decision_at_once():
    """Its timers may be late: a node whose application is slow has them postponed."""
    member = Fed("c")
    member.hear("a", req(0, 1))
    ring = {"ring": (0, 1), "version": 2}
    effects = member.hear("a", dec(0, 1, numbers(0, 1), evolved=True, **ring))
    assert sent(effects, Rejoin) == [Rejoin(FIRST_EPOCH, 1)]
    parent = member.engine.chain.tip.id
    assert sent(member.hear("b", dec(1, 2, parent=parent, **ring)), Rejoin) == [
        Rejoin(FIRST_EPOCH, 2)
    ]


def test_a_silent_member_is_masked_and_reported_only_after_the_silence():
    """Nobody else is, and deliveries go on meanwhile."""
    circle = Circle("abc", deaf="c")
    member = circle.members["a"]
    config = member.engine.config
    masked_s = []
    while not member.suspected:
        circle.submit("b")
        circle.run(20)
        if member.engine.ring == (0, 1):
            masked_s.append(member.now)
    assert masked_s[0] < 3 * config.wait_s
    assert member.suspected[0].members == ("c",)
    assert config.silence_s <= member.now < 2 * config.silence_s
    assert len(member.delivered) >= len(masked_s) - 1


def test_the_last_packet_waits_to_be_filled_while_an_own_request_has_no_place():
    member = Fed("b")
    assert len(sent(member.submit(), Req)) == 1
    assert sent(member.submit(), Req) == []
    assert sent(member.submit(), Req) == [req(1, 2)], "of two packets the first is full"
    assert member.queue.waiting == 1
    effects = member.hear("a", dec(0, 1, numbers(1, 1, 2)))
    assert sent(effects, Req) == [req(1, 3)]
    assert sent(effects, Dec)[0].runs == (numbers(1, 3),)


def test_a_decision_is_repeated_once_its_successor_has_had_time_to_rest():
    member = Fed("a")
    (made,) = sent(member.submit(), Dec)
    assert sent(member.expire("tick"), Dec) == []
    assert sent(member.expire("tick"), Dec) == [made]


def test_a_decision_that_came_before_its_parent_is_taken_in_with_it():
    """Frames of different senders arrive in any order, and what is missing is asked for only once
    in a while."""
    member = Fed("c", "abcd")
    have, ring = (0, 0, 0, 0), (0, 1, 2, 3)
    first = dec(0, 1, have=have, ring=ring)
    second = dec(1, 2, parent=first.id, have=have, ring=ring)
    assert sent(member.hear("b", second), Ask)
    (made,) = sent(member.hear("a", first), Dec) or (None,)
    assert member.engine.chain.number == 2
    assert made is None
    assert member.engine.holding


def test_what_may_follow_from_a_request_that_nobody_here_has_is_passed_over_with_it():
    """b may have delivered the request of a before it sent its own; c has not. Found by a swarm, as
    a message that was delivered without its cause."""
    member = Fed("c")
    member.submit()
    member.hear("b", req(1, 1))
    first = dec(0, 1, numbers(0, 1))
    member.hear("a", first)
    member.hear("b", dec(1, 2, numbers(1, 1), numbers(2, 1), parent=first.id))
    assert not member.delivered
    summaries = {"c": member.engine.freeze()}
    end = member.engine.conclude(summaries, member.view, ("c",))
    assert end.regular == ()
    assert [effect.packet.span.node for effect in end.transitional] == ["c"]
