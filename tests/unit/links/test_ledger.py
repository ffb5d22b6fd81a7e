"""The ledger: who has what, and summaries of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.contract import SUMMARY_BYTES_MAX, Item
from roundelay.links.ledger import AHEAD_MAX, SUMMARY_MEMBERS_MAX, Ledger, read_summary
from roundelay.wire.primitives import WireError

from .party import CODEC, Party


def test_stable_is_the_least_that_anybody_has():
    ledger: Ledger[str] = Ledger(0, 3)
    for text in "xyz":
        ledger.add(text)
    ledger.note_received(1, (3, 0, 0))
    assert ledger.stable == [0, 0, 0]
    ledger.note_received(2, (2, 0, 0))
    assert ledger.stable == [2, 0, 0]
    assert ledger.pop_stable() == ["x", "y"]
    ledger.note_received(2, (1, 0, 0))  # Late.
    assert ledger.stable == [2, 0, 0]
    assert ledger.pop_stable() == []
    assert list(ledger.held[0]) == [3]


def test_missing_lists_the_lowest_gaps():
    ledger: Ledger[str] = Ledger(0, 2)
    for number in (2, 5, 9):
        assert ledger.store(1, number, "x")
    assert ledger.missing(1, 4) == (1, 3, 4, 6)
    assert not ledger.store(1, 5, "x")
    assert ledger.lacking == {1}


def test_nothing_is_stored_too_far_ahead():
    ledger: Ledger[str] = Ledger(0, 2)
    assert not ledger.store(1, AHEAD_MAX + 1, "x")
    assert ledger.store(1, AHEAD_MAX, "x")


def test_a_summary_reads_as_it_was_written():
    ledger: Ledger[str] = Ledger(0, 2)
    for text in "xyz":
        ledger.add(text)
    ledger.note_received(1, (2, 0))
    assert read_summary(ledger.summary(), 2) == ((3, 0), (2, 0))


def test_the_largest_view_has_a_summary_that_fits():
    ledger: Ledger[str] = Ledger(0, SUMMARY_MEMBERS_MAX)
    assert len(ledger.summary()) <= SUMMARY_BYTES_MAX


@given(st.binary(max_size=64), st.integers(1, 4))
def test_a_summary_of_any_bytes_is_read_or_refused(data, size):
    try:
        summary = read_summary(data, size)
    except WireError:
        return
    assert len(data) == 10 * size
    assert all(0 <= s <= r for r, s in zip(summary.received, summary.stable, strict=True))


def test_a_summary_that_claims_more_than_all_have_is_refused():
    party = Party()
    party.say(0)
    other: Ledger[str] = Ledger(1, 3)
    other.store(0, 1, "x")
    other.store(0, 2, "x")
    other.note_received(0, (2, 0, 0))
    other.note_received(2, (2, 0, 0))
    summaries = {"a": party.links[0].freeze(), "b": other.summary()}
    with pytest.raises(WireError):
        party.links[0].seal(summaries)
    with pytest.raises(WireError):
        party.links[0].seal({"z": party.links[0].freeze()})


@pytest.mark.parametrize("key", [(), (0,), (0, 0), (3, 1), (0, AHEAD_MAX + 1), (0, 1, 2)], ids=str)
def test_an_item_that_is_none_is_refused(key):
    with pytest.raises(WireError):
        Party().links[1].unpack(Item(key, CODEC.pack("x")))


@pytest.mark.parametrize("body", [b"", b"\x05x", b"\x01xy"], ids=repr)
def test_an_item_whose_body_makes_no_sense_is_refused(body):
    with pytest.raises(WireError):
        Party().links[1].unpack(Item((0, 1), body))
