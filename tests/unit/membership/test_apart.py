"""Whom a node leaves alone for want of a link, and for how long."""

import pytest

from roundelay.core.contract import Origin
from roundelay.membership.apart import RECENT_JOINS, Apart, Pause


def c() -> Apart:
    """Node c, in a group of a, b and c."""
    return Apart("c", pause_s=0.2, pause_max_s=2.0, most=8)


def attempt(apart: Apart) -> list[Pause]:
    """Both are heard, b gives a up, and c goes on with b."""
    apart.hear("a")
    apart.hear("b")
    apart.note("b", {"a"})
    return apart.settle(("b", "c"), {"a"})


def test_the_first_time_is_free_and_then_pauses_double_up_to_a_limit():
    apart = c()
    pauses = []
    for _ in range(7):
        pauses += attempt(apart)
        apart.resume("a")
    assert [pause.time_s for pause in pauses] == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert {pause.node for pause in pauses} == {"a"}
    assert {pause.reason for pause in pauses} == {"a and b do not hear each other"}


def test_a_node_that_nobody_heard_lately_is_not_apart():
    apart = c()
    for _ in range(3):
        apart.hear("a")
        for _ in range(RECENT_JOINS):
            apart.tick()
        apart.note("b", {"a"})
        assert apart.settle(("b", "c"), {"a"}) == []
    assert not apart.any


def test_who_is_apart_from_another_is_not_answered_and_who_is_apart_from_us_is():
    apart = c()
    attempt(apart)
    attempt(apart)
    assert "a" in apart.pauses
    assert apart.shuns("a")
    apart = c()
    for _ in range(2):
        apart.note("a", {"a"})  # It gives us up.
        apart.settle(("b", "c"), {"a"})
    assert "a" in apart.pauses
    assert not apart.shuns("a")
    assert not apart.shuns("d")


def test_who_does_not_answer_is_apart_from_us():
    apart = c()
    for expected in ([], [0.2]):
        apart.call("a")
        assert [pause.time_s for pause in apart.settle(("c",), {"a"})] == expected
    apart = c()
    for _ in range(3):
        apart.call("a")
        apart.hear("a")
        assert apart.settle(("c",), {"a"}) == []


def test_a_pause_doubles_once_before_it_is_over():
    """Others may bring the node in again while we leave it alone."""
    apart = c()
    attempt(apart)
    assert [attempt(apart)[0].time_s for _ in range(4)] == [0.2, 0.4, 0.4, 0.4]
    apart.resume("a")
    assert [attempt(apart)[0].time_s for _ in range(3)] == [0.8, 1.6, 1.6]


def test_nothing_speaks_against_a_node_when_the_other_is_gone():
    apart = c()
    attempt(apart)
    attempt(apart)
    apart.settle(("b", "c", "d"), ())
    assert apart.shuns("a")
    apart.settle(("c", "d"), {"b"})
    assert not apart.pauses


@pytest.mark.parametrize("way", ["together", "restarted"])
def test_a_clean_record(way):
    apart = c()
    apart.meet(Origin("g", "a", 5, None))
    attempt(apart)
    assert [pause.time_s for pause in attempt(apart)] == [0.2]
    if way == "restarted":
        apart.meet(Origin("g", "a", 3, None))  # Another life, whatever its number.
        assert not apart.pauses
    else:
        apart.settle(("a", "b", "c"), ())
        apart.forgive(("a", "b", "c"))
    assert not apart.any
    assert attempt(apart) == []


def test_what_is_kept_of_strangers_is_bounded():
    apart = c()
    for i in range(100):
        apart.meet(Origin("g", f"x{i}", 0, None))
        apart.call(f"x{i}")
        apart.settle(("c",), {f"x{i}"})
    for i in range(100):
        apart.hear(f"x{i}")
    assert len(apart._times) <= 8
    assert len(apart._answered) <= 8
    assert len(apart._lives) <= 8
