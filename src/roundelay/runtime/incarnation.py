"""The number of a node's life, its incarnation: no two lives of a node ever share one.

    63 ... 21   milliseconds since the epoch, when the life began
    20 ...  0   chance

A node may be restarted many times within a millisecond, lose its disk, find rubbish on it, or have
its clock set back: two lives still differ, by their time or by chance. A node that keeps its state
counts on from the last life where its clock does not, so there its numbers even grow; but nothing
may depend on that.
"""

from roundelay.runtime.machine import Machine

CHANCE_BITS = 21
MS_BITS = 42
"""Enough until the year 2109; then it begins anew."""
YEAR_MS = 365 * 86_400 * 1000
AHEAD_MS = 71 * YEAR_MS
"""A stored time that is so far ahead of the clock is rubbish. Without this bound rubbish, or a
clock that was far ahead for a moment, would leave no room to count on."""


def next_incarnation(machine: Machine, last: int | None = None) -> int:
    """The number of a life that begins now; `last` is that of the one before, where it is known."""
    ms = machine.wall_ns() // 1_000_000 % (1 << MS_BITS)
    if last is not None:
        following = (last >> CHANCE_BITS) + 1
        if ms < following < min(ms + AHEAD_MS, 1 << MS_BITS):
            ms = following
    return ms << CHANCE_BITS | machine.random_bits(CHANCE_BITS)


def wall_us(incarnation: int) -> int:
    """When the life with this number began, in microseconds since the epoch; chance decides within
    the millisecond. Other than the clock it grows with every life of a node that keeps its state.
    """
    return incarnation * 1000 >> CHANCE_BITS


def parse_incarnation(raw: bytes) -> int | None:
    """A number as `StateDirectory` keeps it, or None for rubbish."""
    text = raw.strip()
    if not 1 <= len(text) <= 19 or not text.isdigit():
        return None
    number = int(text)
    return number if number >> (CHANCE_BITS + MS_BITS) == 0 else None
