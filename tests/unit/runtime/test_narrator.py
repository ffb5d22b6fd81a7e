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
    narrator.silence_s = {"c": 0.92}.get
    narrator.install(entered(11, "ab", transitional=True))
    narrator.install(entered(12, "ab"))
    assert said() == [
        "g/a: view 12.a of a, b; c gone: the token is lost; c stopped answering, and was last "
        "heard 0.9 s ago (if all were well, raise timeout_s, now 400 ms)"
    ]
    narrator.suspect(Suspect(("b",), "it fails to receive"))
    narrator.install(entered(16, "a"))
    assert said() == ["g/a: view 16.a of a; b gone: it fails to receive (b)"]


def test_what_is_known_of_those_that_are_gone(told):
    narrator, said = told
    narrator.install(entered(8, "abcd"))
    said()
    narrator.silence_s = {"b": 0.02, "c": 30.0}.get
    narrator.install(entered(12, "a"))
    (line,) = said()
    assert (
        "; b, c, d gone: b is heard here, but not by another member; c stopped answering; "
        "d stopped answering (if all were well" in line
    )


def test_a_view_of_the_same_members_has_its_cause_too(told):
    narrator, said = told
    narrator.install(entered(8, "abc"))
    said()
    narrator.restarted("b")
    narrator.install(entered(12, "abc"))
    narrator.install(entered(16, "abc"))
    assert said() == [
        "g/a: view 12.a of a, b, c; the same members again: b restarted",
        "g/a: view 16.a of a, b, c; the same members again: another member asked for it",
    ]


def test_the_second_view_of_a_node_that_is_alone_is_no_news(told):
    narrator, said = told
    narrator.install(entered(0, "a", why="the node has just started"))
    narrator.install(entered(4, "a", why="1 of 3 voters"))
    assert said() == ["g/a: view 0.a of a, not primary (the node has just started)"]
    narrator.install(entered(8, "a"))  # It became primary.
    assert said() == ["g/a: view 8.a of a"]


def test_a_warning_of_one_kind_is_not_repeated_at_once(told):
    narrator, said = told
    narrator.repeats(50, 300)
    narrator.repeats(60, 300)
    narrator.stranger("x")
    narrator.stranger("y")
    first, second = said()
    assert first.startswith("g/a: 50 of 300 packets came more than once: some were lost")
    assert "'x'" in second
    narrator._clock.now += 30
    narrator.repeats(70, 300)
    narrator.stranger("y")
    assert len(said()) == 1
    narrator._clock.now += 31
    narrator.stranger("z", ("10.0.0.7", 5401))
    (line,) = said()
    assert line.startswith("g/a: frames of 'z' at 10.0.0.7:5401 are ignored, since peers does not")


def test_status_shows_what_is_wrong_until_it_is_over(told):
    narrator, said = told
    narrator.never_heard("c", "127.0.0.1:5403")
    narrator.twins("b", ("127.0.0.1", 5409))
    narrator.version(1, 2, None)
    lines = said()
    assert [f"g/a: {sentence}" for sentence in narrator.warnings()] == lines
    assert lines == [
        "g/a: c at 127.0.0.1:5403 was never heard: does it run, and is the port right?",
        "g/a: two nodes call themselves 'b', the newer one at 127.0.0.1:5409; stop one of them, or "
        "give it another name",
        "g/a: datagrams of version 1 came, this node speaks version 2: run the same release of "
        "Roundelay at every node",
    ]
    narrator._clock.now += 50
    narrator.never_heard("c", "127.0.0.1:5403")
    narrator._clock.now += 50
    assert narrator.warnings() == [lines[0].removeprefix("g/a: ")]
    narrator.heard("c")
    assert narrator.warnings() == []
    assert said() == []


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
        narrator.settings(f"x{i}", "other settings")
    assert len(narrator._last) <= KINDS_MAX
    assert len(narrator._standing) <= KINDS_MAX
