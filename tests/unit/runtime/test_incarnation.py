"""Numbers of lives: never one twice, whatever the disk and the clock say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.runtime.incarnation import (
    AHEAD_MS,
    MS_BITS,
    RANDOM_BITS,
    YEAR_MS,
    next_incarnation,
    parse_incarnation,
    wall_us,
)
from roundelay.runtime.machine import Machine

NOW_MS = 1_790_000_000_000
"""In 2026."""


def machine(ms: int, chance: int = 5) -> Machine:
    return Machine(lambda: ms * 1_000_000 + 999, lambda bits: chance)


def test_the_clock_and_chance_make_a_number():
    assert next_incarnation(machine(NOW_MS)) == NOW_MS << 21 | 5


def test_lives_of_one_millisecond_differ():
    """By chance alone, where nothing is kept; the real source of chance is used."""
    still = Machine(lambda: NOW_MS * 1_000_000)
    assert len({next_incarnation(still) for _ in range(5)}) == 5


def test_who_keeps_its_state_counts_on_where_the_clock_does_not():
    last = next_incarnation(machine(NOW_MS))
    for clock in (NOW_MS, NOW_MS - 3_600_000):  # It stands still; it was set back by an hour.
        following = next_incarnation(machine(clock, 0), last)
        assert following >> RANDOM_BITS == NOW_MS + 1
    assert next_incarnation(machine(NOW_MS + 9), last) >> RANDOM_BITS == NOW_MS + 9


@given(st.integers(0, (1 << 63) - 1), st.integers(-(10**15), 1 << 50))
def test_rubbish_and_wrong_clocks_leave_room_for_more(last, clock):
    for _ in range(3):
        following = next_incarnation(machine(clock), last)
        assert 0 <= following < 1 << (RANDOM_BITS + MS_BITS)
        last = following
    right = next_incarnation(machine(NOW_MS), last) >> RANDOM_BITS
    assert NOW_MS <= right <= NOW_MS + AHEAD_MS


def test_what_is_far_ahead_is_ignored():
    kept = (NOW_MS + 70 * YEAR_MS) << RANDOM_BITS
    assert next_incarnation(machine(NOW_MS), kept) >> RANDOM_BITS == NOW_MS + 70 * YEAR_MS + 1
    rubbish = (NOW_MS + 72 * YEAR_MS) << RANDOM_BITS
    assert next_incarnation(machine(NOW_MS), rubbish) >> RANDOM_BITS == NOW_MS


def test_microseconds_grow_with_lives():
    early, late = NOW_MS << RANDOM_BITS | (1 << RANDOM_BITS) - 1, (NOW_MS + 1) << RANDOM_BITS
    assert NOW_MS * 1000 < wall_us(early) < wall_us(late) == (NOW_MS + 1) * 1000


@pytest.mark.parametrize(
    ("raw", "number"),
    [
        (b"7\n", 7),
        (b"3753902080000000005\n", 3753902080000000005),
        (b"", None),
        (b"\n", None),
        (b"-3\n", None),
        (b"9" * 19, None),
        (b"1" * 500, None),
        (b"\x00\xff", None),
        (b"12x", None),
    ],
)
def test_what_is_no_number_of_a_life_is_not_read(raw, number):
    assert parse_incarnation(raw) == number
