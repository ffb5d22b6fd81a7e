"""What the log says."""

import logging

import pytest

from roundelay.core.effects import Install, Suspect
from roundelay.core.ids import View, ViewId
from roundelay.runtime.narrator import KINDS_MAX, VIEWS_TOLD, Narrator


class Hands:
    """A clock whose hands are set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def told(caplog):
    """A narrator, and what it has said since the last look."""
    caplog.set_level(logging.INFO)
    narrator = Narrator("g", "a", 0.4, Hands())

    def said() -> list[str]:
        lines = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return lines

    return narrator, said


def entered(seq: int, members: str, *, transitional: bool = False, why: str = "") -> Install:
    view = View(ViewId(seq, members[0]), tuple(members), transitional, primary=seq > 4)
    return Install(view, why=why)


def test_a_view_change_is_one_sentence_with_its_cause(told):
    narrator, said = told
    narrator.install(entered(4, "a"))
    narrator.install(entered(8, "abc"))
    assert said() == ["g/a: view 4.a of a, not primary", "g/a: view 8.a of a, b, c; b, c joined"]
    narrator.suspect(Suspect((), "the token is lost"))
    narrator.install(entered(11, "ab", transitional=True))
    narrator.install(entered(12, "ab"))
    (line,) = said()
    assert line.startswith("g/a: view 12.a of a, b; c gone: the token is lost, which means that")
    assert line.endswith("raise timeout_s (now 400 ms)")
    narrator.suspect(Suspect(("b",), "it fails to receive"))
    narrator.install(entered(16, "a"))
    assert said() == ["g/a: view 16.a of a; b gone: it fails to receive (b)"]
    narrator.install(entered(20, "a"))
    assert said() == [
        "g/a: view 20.a of a; the same members again: another member noticed it, or a member "
        "restarted"
    ]


def test_a_warning_of_one_kind_is_not_repeated_at_once(told):
    narrator, said = told
    narrator.repeats(50, 300)
    narrator.repeats(60, 300)
    narrator.stranger("x")
    narrator.stranger("y")
    first, second, third = said()
    assert first.startswith("g/a: 50 of 300 packets came more than once: some were lost")
    assert "'x'" in second
    assert "'y'" in third


def test_why_a_view_is_not_primary(told):
    narrator, said = told
    narrator.install(entered(4, "a", why="1 of 3 voters"))
    assert said() == ["g/a: view 4.a of a, not primary (1 of 3 voters)"]


def test_many_views_become_one_line_with_their_count(told):
    narrator, said = told
    clock = narrator._clock
    for seq in range(8, 8 + 4 * 12, 4):
        narrator.suspect(Suspect((), "the token is lost"))
        narrator.install(entered(seq, "ab" if seq % 8 else "a"))
        clock.now += 0.5
        narrator.look()
    assert len(said()) == VIEWS_TOLD
    clock.now += 4.0
    narrator.look()
    (line,) = said()
    assert line.startswith("g/a: 12 views in 10 s, the last: view 52.a of a, b; b joined")
    # It goes on: the first view of the next ten seconds has a line, the others have one together.
    for seq in (56, 60, 64):
        narrator.suspect(Suspect((), "the token is lost"))
        narrator.install(entered(seq, "ab" if seq % 8 else "a"))
    assert [line[:18] for line in said()] == ["g/a: view 56.a of "]
    narrator.look(last=True)
    (line,) = said()
    assert "3 views in 0 s, the last: view 64.a of a; b gone: the token is lost" in line
    # Ten quiet seconds later all is as before.
    clock.now += 10.0
    narrator.look()
    clock.now += 10.0
    narrator.install(entered(68, "ab"))
    narrator.install(entered(72, "a"))
    assert len(said()) == 2


def test_names_of_strangers_do_not_fill_memory(told):
    narrator, _ = told
    for i in range(3 * KINDS_MAX):
        narrator.stranger(f"x{i}")
    assert len(narrator._last) <= KINDS_MAX
