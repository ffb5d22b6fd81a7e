"""Policies of ATOP: what the book-keeper counts, and weights that a user writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.ids import View, ViewId
from roundelay.protocols.atop.policy import BookKeeper, Given, GivenWeights, Silent
from roundelay.protocols.atop.slots import WEIGHT_RATIO_MAX, valid


def keeper(members=3, factor=2, scale=16, threshold_permille=100):
    return BookKeeper(members, factor, scale, threshold_permille)


def count(books: BookKeeper, senders: str) -> None:
    for letter in senders:
        books.observe("pqr".index(letter))


def test_nothing_is_proposed_before_the_window_is_full():
    books = keeper()
    count(books, "ppppp")
    assert books.propose() is None
    count(books, "p")
    assert books.propose() == (16 * 6 + 1, 1, 1)


def test_old_packets_leave_the_window():
    books = keeper()
    count(books, "pppppp")
    books.propose()
    count(books, "qqqqrr")
    assert books.propose() == (1, 65, 33)


def test_weights_that_differ_little_from_the_last_are_not_proposed():
    books = keeper(factor=10)
    count(books, "p" * 15 + "q" * 15)
    assert books.propose() == (241, 241, 1)
    count(books, "pq" * 15)
    assert books.propose() is None
    count(books, "p")
    assert books.propose() is None, "a thirtieth has changed, and the threshold is a tenth"
    count(books, "p" * 5)
    assert books.propose() is not None


def test_with_threshold_0_every_change_is_proposed():
    books = keeper(factor=10, threshold_permille=0)
    count(books, "p" * 15 + "q" * 15)
    assert books.propose() is not None
    assert books.propose() is None
    count(books, "q")
    assert books.propose() == (225, 257, 1)


@given(
    st.integers(2, 6),
    st.integers(1, 40),
    st.integers(1, 2000),
    st.lists(st.integers(0, 5), max_size=300),
)
def test_every_proposal_is_valid(members, factor, scale, senders):
    books = keeper(members, factor, scale, 0)
    for sender in senders:
        books.observe(sender % members)
        weights = books.propose()
        assert weights is None or valid(weights, members)


def test_given_weights_are_proposed_once_and_equal_ones_never():
    policy = Given((20, 5, 1))
    assert (policy.propose(), policy.propose()) == ((20, 5, 1), None)
    assert Given((3, 3, 3)).propose() is None, "the distribution that a view begins with has them"
    assert Silent().propose() is None


VIEW = View(ViewId(8, "a"), ("a", "b", "c"))


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("a:20,b:5", (20, 5, 1)),
        ("c:7", (1, 1, 7)),
        (" a:2 , c:3 ", (2, 1, 3)),
        ("zz:9", (1, 1, 1)),
        (f"a:{WEIGHT_RATIO_MAX}", (WEIGHT_RATIO_MAX, 1, 1)),
    ],
)
def test_weights_as_a_user_writes_them(text, weights):
    assert GivenWeights.parse(text).of(VIEW) == weights
    assert valid(weights, 3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write names and weights, like weights=a:20,b:5"),
        ("a", "write names and weights"),
        ("a:", "write names and weights"),
        (":3", "write names and weights"),
        ("a:x", "write names and weights"),
        ("a:-1", "write names and weights"),
        ("a:1,,b:2", "write names and weights"),
        ("a:1,a:2", "names 'a' twice"),
        ("a:0", "between 1 and 4096"),
        ("a:4097", "between 1 and 4096"),
    ],
)
def test_weights_that_make_no_sense_are_told_in_one_sentence(text, says):
    with pytest.raises(ValueError, match=says):
        GivenWeights.parse(text)


def test_a_name_may_hold_a_colon():
    assert GivenWeights.parse("10.0.0.1:7000:5").by_name == (("10.0.0.1:7000", 5),)
