"""The chain of decisions, and what waits aside of it."""

from roundelay.protocols.fc.chain import Chain

from .decisions import anew, decision

FIRST = decision(1, 1, runs=((1, 1, 1),))
SECOND = decision(2, 2, parent=FIRST, runs=((2, 1, 2),))
THIRD = decision(3, 3, parent=SECOND)
OTHER = anew(3, 2, (1, 3, 4, 5), parent=FIRST, runs=((3, 1, 1),))


def chain(*decisions):
    made = Chain(5, 8)
    for each in decisions:
        made.put(each)
    return made


def test_what_the_chain_has_ordered():
    made = chain(FIRST, SECOND, THIRD)
    assert made.tip.ordered == (1, 2, 0, 0, 0)
    assert (made.number, made.tip.packets, made.real) == (3, 3, 2)
    assert made.since(2, 9) == [SECOND, THIRD]


def test_a_fork_drops_what_was_there():
    made = chain(FIRST, SECOND, THIRD)
    assert made.put(OTHER) == [THIRD, SECOND]
    assert made.tip.ordered == (1, 0, 1, 0, 0)
    assert (made.tip.packets, made.real) == (2, 2)
    assert not made.holds(SECOND.id)
    assert made.holds(FIRST.id)


def test_the_last_decision_with_requests_is_known_after_a_fork():
    made = chain(FIRST, SECOND, THIRD)
    made.put(anew(4, 2, (1, 4, 5), parent=FIRST))
    assert made.real == 1


def test_requests_follow_those_of_their_sender():
    made = chain(FIRST)
    assert made.fits(decision(2, 2, parent=FIRST, runs=((1, 2, 1), (2, 1, 1))))
    assert not made.fits(decision(2, 2, parent=FIRST, runs=((1, 3, 1),)))
    assert not made.fits(decision(2, 2, parent=FIRST, runs=((2, 1, 1), (2, 2, 1))))


def test_a_path_leads_through_what_waits_aside():
    made = chain(FIRST)
    made.lay_aside(THIRD)
    assert made.path(THIRD.id) is None
    assert made.missing(THIRD.id) == SECOND.id
    made.lay_aside(SECOND)
    assert made.path(THIRD.id) == [SECOND, THIRD]
    assert made.path(FIRST.id) == []


def test_no_more_waits_aside_than_there_is_room_for():
    made = chain()
    for counter in range(2, 40):
        made.lay_aside(anew(1 + counter % 5, 3, (1, 2, 3, 4, 5), runs=((1, counter, 1),)))
        made.lay_aside(decision(1, 100 + counter))
    assert len(list(made.aside)) <= 8


def test_what_all_have_is_forgotten():
    made = chain(FIRST, SECOND, THIRD)
    assert made.forget(2).decision == SECOND
    assert (made.floor, len(made)) == (2, 2)
    assert made.since(1, 3) == [THIRD]
    assert made.holds(FIRST.id)


def test_the_latest_epoch_wins_and_what_is_confirmed_stays():
    made = chain(FIRST, SECOND, THIRD)
    made.lay_aside(OTHER)
    made.climb(confirmed=2)
    assert made.tip.id == THIRD.id
    made.climb(confirmed=1)
    assert made.tip.id == OTHER.id
