"""Whom a node leaves alone for want of a link, and for how long."""

import pytest

from roundelay.core.contract import Origin
from roundelay.membership.broken_links import RECENT_JOINS, BrokenLinks, Pause


def c() -> BrokenLinks:
    """Node c, in a group of a, b and c."""
    return BrokenLinks("c", pause_s=0.2, pause_max_s=2.0, most=8)


def attempt(links: BrokenLinks) -> list[Pause]:
    """Both are heard, b gives a up, and c goes on with b."""
    links.note_join("a")
    links.note_join("b")
    links.note_given_up("b", {"a"})
    return links.note_install(("b", "c"), {"a"})


def test_the_first_time_is_free_and_then_pauses_double_up_to_a_limit():
    links = c()
    pauses = []
    for _ in range(7):
        pauses += attempt(links)
        links.end_pause("a")
    assert [pause.time_s for pause in pauses] == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert {pause.node for pause in pauses} == {"a"}
    assert {pause.reason for pause in pauses} == {"a and b do not hear each other"}


def test_a_node_that_nobody_heard_lately_is_not_apart():
    links = c()
    for _ in range(3):
        links.note_join("a")
        for _ in range(RECENT_JOINS):
            links.next_join()
        links.note_given_up("b", {"a"})
        assert links.note_install(("b", "c"), {"a"}) == []
    assert not links.any


def test_who_is_apart_from_another_is_not_answered_and_who_is_apart_from_us_is():
    links = c()
    attempt(links)
    attempt(links)
    assert "a" in links.pauses
    assert links.ignores("a")
    links = c()
    for _ in range(2):
        links.note_given_up("a", {"a"})  # It gives us up.
        links.note_install(("b", "c"), {"a"})
    assert "a" in links.pauses
    assert not links.ignores("a")
    assert not links.ignores("d")


def test_who_does_not_answer_is_apart_from_us():
    links = c()
    for expected in ([], [0.2]):
        links.note_contact("a")
        assert [pause.time_s for pause in links.note_install(("c",), {"a"})] == expected
    links = c()
    for _ in range(3):
        links.note_contact("a")
        links.note_join("a")
        assert links.note_install(("c",), {"a"}) == []


def test_a_pause_doubles_once_before_it_is_over():
    """Others may bring the node in again while we leave it alone."""
    links = c()
    attempt(links)
    assert [attempt(links)[0].time_s for _ in range(4)] == [0.2, 0.4, 0.4, 0.4]
    links.end_pause("a")
    assert [attempt(links)[0].time_s for _ in range(3)] == [0.8, 1.6, 1.6]


def test_nothing_speaks_against_a_node_when_the_other_is_gone():
    links = c()
    attempt(links)
    attempt(links)
    links.note_install(("b", "c", "d"), ())
    assert links.ignores("a")
    links.note_install(("c", "d"), {"b"})
    assert not links.pauses


@pytest.mark.parametrize("way", ["together", "restarted"])
def test_a_clean_record(way):
    links = c()
    links.note_incarnation(Origin("g", "a", 5, None))
    attempt(links)
    assert [pause.time_s for pause in attempt(links)] == [0.2]
    if way == "restarted":
        links.note_incarnation(Origin("g", "a", 3, None))  # Another life, whatever its number.
        assert not links.pauses
    else:
        links.note_install(("a", "b", "c"), ())
        links.forgive(("a", "b", "c"))
    assert not links.any
    assert attempt(links) == []


def test_what_is_kept_of_strangers_is_bounded():
    links = c()
    for i in range(100):
        links.note_incarnation(Origin("g", f"x{i}", 0, None))
        links.note_contact(f"x{i}")
        links.note_install(("c",), {f"x{i}"})
    for i in range(100):
        links.note_join(f"x{i}")
    assert len(links._counts) <= 8
    assert len(links._answered) <= 8
    assert len(links._lives) <= 8
