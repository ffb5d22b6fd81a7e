"""The number of a node's life, its incarnation: no two lives of a node ever share one.

    63 ... 21   milliseconds since the epoch, when the life began
    20 ...  0   random

A life of a node is one start of it and all that follows until it stops. A node may be restarted
many times within a millisecond, lose its disk, find damaged files, or have its clock set back: two
lives still differ, by their time or by chance. If a node keeps its state and its clock went back,
the time is counted on from the last life, so that its numbers grow; but nothing may depend on that.
"""

from roundelay.runtime.machine import Machine

RANDOM_BITS = 21
MS_BITS = 42
"""Bits for the time: enough until the year 2109, when it begins at 0 again."""
YEAR_MS = 365 * 86_400 * 1000
AHEAD_MS = 71 * YEAR_MS
"""A stored time that is so many milliseconds ahead of the clock is not believed. Without this
bound, a damaged file, or a clock that was far ahead for a moment, would leave no room to count
on."""


def next_incarnation(machine: Machine, last: int | None = None) -> int:
    """The number of a life that begins now; `last` is the number of the life before, if known."""
    ms = machine.wall_ns() // 1_000_000 % (1 << MS_BITS)
    if last is not None:
        following = (last >> RANDOM_BITS) + 1
        if ms < following < min(ms + AHEAD_MS, 1 << MS_BITS):
            ms = following
    return ms << RANDOM_BITS | machine.random_bits(RANDOM_BITS)


def wall_us(incarnation: int) -> int:
    """When the life with this number began, in microseconds since the epoch; within the millisecond
    it is random. Unlike the clock, it grows with every life of a node that keeps its state."""
    return incarnation * 1000 >> RANDOM_BITS


def parse_incarnation(raw: bytes) -> int | None:
    """A number as `StateDirectory` keeps it, or None for a damaged one."""
    text = raw.strip()
    if not 1 <= len(text) <= 19 or not text.isdigit():
        return None
    number = int(text)
    return number if number >> (RANDOM_BITS + MS_BITS) == 0 else None
