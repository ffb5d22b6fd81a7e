"""ATOM: one log from every order of arrivals, and what makes it go on when members are silent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.protocols.atop.atom import COUNT_MAX, DISTRIBUTION_MAX, Atom, Stamp, Tag
from roundelay.protocols.atop.slots import WEIGHT_RATIO_MAX, WEIGHT_SUM_MAX, owners, valid

from .members import VIEW, Members

sizes = st.integers(1, 4)
steps = st.lists(
    st.tuples(
        st.sampled_from(("send", "send", "send", "dummy", "distribute", "arrive", "arrive")),
        st.integers(0, 3),
        st.integers(0, 3),
        st.integers(1, 6),
    ),
    max_size=60,
)


def played(size: int, script: list[tuple[str, int, int, int]]) -> Members:
    """What is sent and arrives, step by step; not all of it arrives everywhere."""
    members = Members(size)
    for what, one, other, number in script:
        match what:
            case "send":
                members.send(one % size)
            case "dummy":
                members.send(one % size, count=number)
            case "distribute":
                members.distribute(tuple((one + i * number) % 5 + 1 for i in range(size)))
            case "arrive":
                members.arrive(one % size, other % size)
    return members


@given(sizes, steps)
def test_everybody_orders_alike_whatever_arrives_when(size, script):
    members = played(size, script)
    for member in range(size):
        members.check_log(member)
    members.arrive_all()
    for member in range(size):
        members.close(member)
        members.check_log(member)
        assert {body for body, _ in members.logs[member]} == {*members.sent}
    assert all(log == members.logs[0] for log in members.logs)
    assert all(atom.waiting == 0 for atom in members.atoms)


@given(sizes, steps)
def test_members_that_part_order_alike_what_both_have(size, script):
    """Who lacks the last contents of others has the same places for all the rest."""
    members = played(size, script)
    for member in range(size):
        members.close(member)
        members.check_log(member)


@given(sizes, steps)
def test_while_a_view_lasts_logs_are_the_beginning_of_one_log(size, script):
    members = played(size, script)
    logs = [list(log) for log in members.logs]
    members.arrive_all()
    members.close(0)
    for log in logs:
        assert log == members.logs[0][: len(log)]


# Dummies


def settle(members: Members, rule: str, rounds: int) -> int:
    """All hold their dummies back for the same time, send what they owe, and all of it arrives;
    returns the rounds after which nothing waits."""
    for done in range(rounds):
        members.arrive_all()
        if not any(atom.waiting for atom in members.atoms):
            return done
        for member, atom in enumerate(members.atoms):
            switch = int(atom.behind and atom.others_wait)
            asked = int(atom.asked_for or switch)
            owed = {"cover": atom.owed(), "demand": asked, "switch": switch}[rule]
            if owed:
                members.send(member, count=owed)
    raise AssertionError("something waits for ever")


@given(st.integers(2, 4), steps)
def test_cover_lets_all_that_waits_through_after_one_delay(size, script):
    """Two if a distribution changes meanwhile: the word that a member uses it takes one."""
    members = played(size, script)
    members.arrive_all()
    changing = any(atom.behind or atom.distribution != atom.newest for atom in members.atoms)
    assert settle(members, "cover", 4) <= (3 if changing else 1)
    assert all(len(log) == len(members.sent) for log in members.logs)


@given(st.integers(2, 4), steps)
def test_demand_lets_everything_through_slot_by_slot(size, script):
    members = played(size, script)
    settle(members, "demand", 2000)
    assert all(len(log) == len(members.sent) for log in members.logs)


def test_cover_looks_at_every_message_that_waits_and_not_at_the_first_alone():
    members = Members(2)
    for _ in range(20):
        members.send(0)
    members.arrive_all()
    owner = owners(VIEW, 0, (1, 1))
    last = [slot for slot in range(200) if owner(slot) == 0][19]
    assert members.atoms[1].owed() == sum(owner(slot) == 1 for slot in range(last))
    assert settle(members, "cover", 2) == 1
    assert members.dummies == 1


def test_what_a_member_has_sent_fills_its_slots_and_needs_no_dummy():
    members = Members(2)
    for _ in range(10):
        members.send(0)
    members.arrive_all()
    owed = members.atoms[1].owed()
    members.send(1)
    assert members.atoms[1].owed() == owed - 1


def test_nothing_is_owed_while_nobody_else_waits():
    members = Members(3)
    members.send(1)
    assert [atom.owed() for atom in members.atoms][1] == 0
    members.arrive_all()
    settle(members, "cover", 2)
    assert [atom.owed() for atom in members.atoms] == [0, 0, 0]
    assert not any(atom.asked_for for atom in members.atoms)


def test_a_member_that_hears_of_a_distribution_owes_one_content_for_it():
    members = Members(3)
    members.distribute((5, 2, 1))
    assert members.atoms[0].behind
    assert members.atoms[0].owed() == 0, "nobody waits"
    members.send(0)
    assert not members.atoms[0].behind
    members.arrive(1, 0)
    assert members.atoms[1].behind
    assert members.atoms[1].owed() == 1
    assert members.send(1, count=1) == Tag(1, 0, 1, (5, 2, 1))
    assert members.atoms[1].owed() == 0


def test_with_switch_alone_slots_are_still_waited_for():
    members = Members(2)
    for _ in range(20):
        members.send(0)
    with pytest.raises(AssertionError, match="for ever"):
        settle(members, "switch", 20)


def test_a_packed_dummy_is_as_good_as_single_ones_and_the_rest_of_it_is_dropped():
    members, single = Members(2), Members(2)
    for group, parts in ((members, (9,)), (single, (1,) * 9)):
        for count in parts:
            group.send(1, count=count)
        group.send(0)
        group.distribute((1, 9))
        group.send(0)
        group.arrive_all()
        group.send(1)
        group.arrive_all()
        group.close(0)
        group.close(1)
    assert members.logs == single.logs
    assert len(members.logs[0]) == 3
    assert members.atoms[0].distribution == 1


# What is believed


def test_distributions_are_learned_on_arrival_and_passed_over():
    members = Members(3)
    members.distribute((5, 2, 1))
    members.distribute((1, 2, 5))
    assert members.send(0) == Tag(2, 0, 1, (1, 2, 5))
    assert members.send(0) == Tag(2, 1)
    members.arrive(2, 0)
    assert members.atoms[2].newest == 2
    assert members.atoms[2].known == {0: (1, 1, 1), 2: (1, 2, 5)}
    assert members.send(2) == Tag(2, 0, 1, (1, 2, 5))
    assert members.send(1) == Tag(0, 0), "it has not heard of any"
    members.arrive_all()
    members.send(1)
    members.arrive_all()
    assert members.atoms[0].distribution == 2


def test_a_distribution_that_is_told_again_must_be_the_same():
    atom: Atom[str] = Atom(1, 3, 0)
    assert atom.learn(1, (5, 2, 1))
    assert atom.learn(1, (5, 2, 1))
    assert not atom.learn(1, (5, 2, 2))
    assert atom.known[1] == (5, 2, 1)


@pytest.mark.parametrize("number", [-1, 0, DISTRIBUTION_MAX + 1])
def test_a_distribution_has_a_number_that_fits_an_order_key(number):
    atom: Atom[str] = Atom(1, 3, 0)
    assert not atom.learn(number, (5, 2, 1))
    assert atom.newest == 0
    assert atom.learn(DISTRIBUTION_MAX, (5, 2, 1))


W = (5, 2, 1)
FIRST = Tag(1, 0, 1, W)


@pytest.mark.parametrize(
    ("before", "tag"),
    [
        ((), Tag(0, 1)),
        ((), Tag(0, 0, 0)),
        ((), Tag(0, 0, -1)),
        ((), Tag(0, 0, COUNT_MAX + 1)),
        ((), Tag(0, 0, 1, (1, 1, 1))),
        ((), Tag(1, 0)),
        ((), Tag(1, 1)),
        ((), Tag(1, 1, 1, W)),
        ((), Tag(1, 0, 1, (5, 2))),
        ((), Tag(1, 0, 1, (5, 2, 1, 1))),
        ((), Tag(1, 0, 1, (5, 2, 0))),
        ((), Tag(1, 0, 1, (WEIGHT_RATIO_MAX + 1, 1, 1))),
        ((FIRST,), Tag(0, 0)),
        ((FIRST,), Tag(1, 0, 1, W)),
        ((FIRST,), Tag(1, 0)),
        ((FIRST,), Tag(1, 2)),
        ((Tag(0, 0), Tag(0, 1, 7)), Tag(0, 2)),
    ],
)
def test_a_tag_that_no_honest_member_sends_is_implausible(before, tag):
    atom: Atom[str] = Atom(1, 3, 0)
    for each in before:
        assert atom.plausible(1, each)
        atom.arrive(1, each, None)
    assert not atom.plausible(1, tag)


def test_other_weights_than_are_known_are_implausible():
    atom: Atom[str] = Atom(1, 3, 0)
    atom.arrive(1, FIRST, "x")
    assert not atom.plausible(2, Tag(1, 0, 1, (5, 2, 2)))
    assert atom.plausible(2, FIRST)


@given(st.lists(st.integers(0, 2**33), max_size=4).map(tuple), st.integers(1, 4))
def test_weights_are_one_for_each_member_and_not_too_different(weights, members):
    right = (
        len(weights) == members
        and all(w >= 1 for w in weights)
        and all(w <= WEIGHT_RATIO_MAX * v for w in weights for v in weights)
        and sum(weights) <= WEIGHT_SUM_MAX
    )
    assert valid(weights, members) == right


# What it costs


def test_a_weight_of_one_in_four_thousand_is_walked_to_without_recursion():
    members = Members(2)
    members.distribute((WEIGHT_RATIO_MAX, 1))
    members.send(0)
    members.arrive_all()
    for _ in range(5):
        members.send(1)
    members.arrive_all()
    rounds = settle(members, "cover", 40)
    assert rounds < 40
    assert len(members.logs[0]) == 6


def test_a_view_of_one_orders_as_it_comes():
    members = Members(1)
    for i in range(5):
        members.send(0)
        assert members.logs[0][-1][1] == Stamp(0, i)
    assert members.atoms[0].owed() == 0
