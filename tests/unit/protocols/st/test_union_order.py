"""The order that members make of their lists, as a pure function."""

from collections.abc import Iterable, Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.protocols.st.lists import List, Listed, decode_list, encode_list, union_order
from roundelay.protocols.st.messages import Name
from roundelay.wire.primitives import WireError

SIZE = 3
EVERYBODY = (0, 1, 2)


def listed(
    source: int,
    number: int,
    to: tuple[int, ...] = EVERYBODY,
    ack: tuple[int, ...] = (1, 1, 1),
    *,
    heard: bool = True,
    delivered: bool = False,
) -> Listed:
    return Listed(Name(source, number), to, (0,) * SIZE, ack, heard, delivered)


def made(member: int, *items: Listed, done: tuple[int, ...] = (1, 1, 1)) -> List:
    return List(0, member, 9, (9,) * SIZE, (9,) * SIZE, done, items)


def order(*lists: List) -> list[str]:
    return [str(item.name) for item in union_order({m.member: m for m in lists})]


def test_what_a_member_heard_first_comes_first():
    assert order(made(0, listed(2, 1), listed(1, 1)), made(1), made(2)) == ["3.1", "2.1"]


def test_what_nobody_orders_goes_by_name():
    assert order(made(0, listed(2, 1)), made(1, listed(1, 1)), made(2)) == ["2.1", "3.1"]


def test_what_a_source_sent_first_comes_first_though_no_list_has_both():
    lists = made(0, listed(2, 2), listed(0, 1)), made(1, listed(2, 1)), made(2)
    assert order(*lists) == ["3.1", "3.2", "1.1"]


def test_a_packet_comes_after_what_its_source_had_heard():
    reply = listed(0, 1, ack=(1, 1, 2))
    assert order(made(0, reply), made(1, listed(2, 1)), made(2)) == ["3.1", "1.1"]


def test_what_a_member_has_delivered_comes_before_what_else_is_for_it():
    """A packet that its source alone has, and never heard, would come first by its name."""
    over = listed(2, 1, delivered=True)
    alone = listed(0, 1, heard=False)
    assert order(made(0, alone), made(1, over), made(2, over)) == ["3.1", "1.1"]
    for_others = listed(0, 1, to=(0,), heard=False)
    assert order(made(0, for_others), made(1, over), made(2, over)) == ["1.1", "3.1"]


def test_what_a_member_has_delivered_and_forgotten_does_not_come_after_the_rest():
    """Member 1 delivered 1.1 and knows that all have; member 0 does not know that yet."""
    lists = made(0, listed(0, 1, to=(1,))), made(1, listed(2, 1, delivered=True), done=(2, 1, 2))
    assert order(*lists, made(2)) == ["1.1", "3.1"]


def test_forged_lists_that_contradict_each_other_have_an_order_all_the_same():
    one, other = listed(0, 1), listed(1, 1)
    assert order(made(0, one, other), made(1, other, one), made(2)) == ["1.1", "2.1"]


def test_three_losses_make_no_circle():
    """Example 1(2) of the paper, where every list has one of three packets."""
    a, b, c = listed(2, 1, to=(0, 1)), listed(0, 1, to=(1, 2)), listed(1, 1, to=(0, 2))
    lists = made(0, b, c), made(1, a, c), made(2, a, b)
    assert order(*lists) == ["3.1", "1.1", "2.1"]


@given(st.randoms(use_true_random=False), st.integers(2, 5), st.integers(1, 14))
def test_lists_of_one_channel_give_an_order_that_fits_all_of_them(random, size, count):
    lists, channel = heard_on_one_channel(random, size, count)
    found = [item.name for item in union_order(lists)]
    assert sorted(found) == sorted(channel)
    for made_ in lists.values():
        assert_in_order([item.name for item in made_.listed], found)
    for source in range(size):
        assert_in_order(sorted(name for name in channel if name.source == source), found)
    shuffled = list(lists.items())
    random.shuffle(shuffled)
    assert [item.name for item in union_order(dict(shuffled))] == found
    assert {m: decode_list(encode_list(made_), m) for m, made_ in lists.items()} == lists


def heard_on_one_channel(
    random: Random, size: int, count: int
) -> tuple[Mapping[int, List], list[Name]]:
    """Random packets, each heard by its source and some others; sources tell what they heard."""
    next_ = [1] * size
    expected = [[1] * size for _ in range(size)]
    channel: list[Name] = []
    heard: list[list[Listed]] = [[] for _ in range(size)]
    for _ in range(count):
        source = random.randrange(size)
        name = Name(source, next_[source])
        next_[source] += 1
        to = tuple(sorted(random.sample(range(size), random.randint(1, size))))
        item = Listed(name, to, (0,) * size, tuple(expected[source]), True, False)
        channel.append(name)
        for member in range(size):
            if member == source or random.random() < 0.7:
                heard[member].append(item)
                expected[member][source] = name.number + 1
    ones = (1,) * size
    lists = {
        member: List(0, member, next_[member], ones, ones, ones, tuple(heard[member]))
        for member in range(size)
    }
    return lists, channel


def assert_in_order(names: Iterable[Name], order: list[Name]) -> None:
    places = [order.index(name) for name in names]
    assert places == sorted(places)


def test_a_list_that_makes_no_sense_is_refused():
    data = encode_list(made(1, listed(1, 1, heard=False)))
    assert decode_list(data, 1)
    with pytest.raises(WireError):
        decode_list(data, 0)  # Of a packet that it did not send, a member knows by hearing it.
    with pytest.raises(WireError):
        decode_list(data, SIZE)
    with pytest.raises(WireError):
        decode_list(data[:-1], 1)
    with pytest.raises(WireError):
        decode_list(data + b"\0", 1)
