"""What the log says."""

import logging

import pytest

from roundelay.core.effects import Install, Suspect
from roundelay.core.ids import View, ViewId
from roundelay.runtime.node_log import KINDS_MAX, VIEWS_TOLD, NodeLog


class Hands:
    """A clock whose hands are set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def told(caplog):
    """A node_log, and what it has said since the last look."""
    caplog.set_level(logging.INFO)
    node_log = NodeLog("g", "a", 0.4, Hands())

    def said() -> list[str]:
        lines = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return lines

    return node_log, said


def entered(seq: int, members: str, *, transitional: bool = False, why: str = "") -> Install:
    view = View(ViewId(seq, members[0]), tuple(members), transitional, primary=seq > 4)
    return Install(view, why=why)


def test_a_view_change_is_one_sentence_with_its_cause(told):
    node_log, said = told
    node_log.install(entered(4, "a"))
    node_log.install(entered(8, "abc"))
    assert said() == ["g/a: view 4.a of a, not primary", "g/a: view 8.a of a, b, c; b, c joined"]
    node_log.suspect(Suspect((), "the token is lost"))
    node_log.silence_s = {"c": 0.92}.get
    node_log.install(entered(11, "ab", transitional=True))
    node_log.install(entered(12, "ab"))
    assert said() == [
        "g/a: view 12.a of a, b; c gone: the token is lost; c stopped answering, and was last "
        "heard 0.9 s ago (if all were well, raise timeout_s, now 400 ms)"
    ]
    node_log.suspect(Suspect(("b",), "it fails to receive"))
    node_log.install(entered(16, "a"))
    assert said() == ["g/a: view 16.a of a; b gone: it fails to receive (b)"]


def test_what_is_known_of_those_that_are_gone(told):
    node_log, said = told
    node_log.install(entered(8, "abcd"))
    said()
    node_log.silence_s = {"b": 0.02, "c": 30.0}.get
    node_log.install(entered(12, "a"))
    (line,) = said()
    assert (
        "; b, c, d gone: b is heard here, but not by another member; c stopped answering; "
        "d stopped answering (if all were well" in line
    )


def test_a_view_of_the_same_members_has_its_cause_too(told):
    node_log, said = told
    node_log.install(entered(8, "abc"))
    said()
    node_log.restarted("b")
    node_log.install(entered(12, "abc"))
    node_log.install(entered(16, "abc"))
    assert said() == [
        "g/a: view 12.a of a, b, c; the same members again: b restarted",
        "g/a: view 16.a of a, b, c; the same members again: another member asked for it",
    ]


def test_the_second_view_of_a_node_that_is_alone_is_no_news(told):
    node_log, said = told
    node_log.install(entered(0, "a", why="the node has just started"))
    node_log.install(entered(4, "a", why="1 of 3 voters"))
    assert said() == ["g/a: view 0.a of a, not primary (the node has just started)"]
    node_log.install(entered(8, "a"))  # It became primary.
    assert said() == ["g/a: view 8.a of a"]


def test_a_warning_of_one_kind_is_not_repeated_at_once(told):
    node_log, said = told
    node_log.repeats(50, 300)
    node_log.repeats(60, 300)
    node_log.stranger("x")
    node_log.stranger("y")
    first, second = said()
    assert first.startswith("g/a: 50 of 300 packets came more than once: some were lost")
    assert "'x'" in second
    node_log._clock.now += 30
    node_log.repeats(70, 300)
    node_log.stranger("y")
    assert len(said()) == 1
    node_log._clock.now += 31
    node_log.stranger("z", ("10.0.0.7", 5401))
    (line,) = said()
    assert line.startswith("g/a: frames of 'z' at 10.0.0.7:5401 are ignored, since peers does not")


def test_status_shows_what_is_wrong_until_it_is_over(told):
    node_log, said = told
    node_log.never_heard("c", "127.0.0.1:5403")
    node_log.twins("b", ("127.0.0.1", 5409))
    node_log.version(1, 2, None)
    lines = said()
    assert [f"g/a: {sentence}" for sentence in node_log.warnings()] == lines
    assert lines == [
        "g/a: c at 127.0.0.1:5403 was never heard: does it run, and is the port right?",
        "g/a: two nodes call themselves 'b', the newer one at 127.0.0.1:5409; stop one of them, or "
        "give it another name",
        "g/a: datagrams of version 1 came, this node speaks version 2: run the same release of "
        "Roundelay at every node",
    ]
    node_log._clock.now += 50
    node_log.never_heard("c", "127.0.0.1:5403")
    node_log._clock.now += 50
    assert node_log.warnings() == [lines[0].removeprefix("g/a: ")]
    node_log.heard("c")
    assert node_log.warnings() == []
    assert said() == []


def test_why_a_view_is_not_primary(told):
    node_log, said = told
    node_log.install(entered(4, "a", why="1 of 3 voters"))
    assert said() == ["g/a: view 4.a of a, not primary (1 of 3 voters)"]


def test_many_views_become_one_line_with_their_count(told):
    node_log, said = told
    clock = node_log._clock
    for seq in range(8, 8 + 4 * 12, 4):
        node_log.suspect(Suspect((), "the token is lost"))
        node_log.install(entered(seq, "ab" if seq % 8 else "a"))
        clock.now += 0.5
        node_log.sum_up_views()
    assert len(said()) == VIEWS_TOLD
    clock.now += 4.0
    node_log.sum_up_views()
    (line,) = said()
    assert line.startswith("g/a: 12 views in 10 s, the last: view 52.a of a, b; b joined")
    # It goes on: the first view of the next ten seconds has a line, the others have one together.
    for seq in (56, 60, 64):
        node_log.suspect(Suspect((), "the token is lost"))
        node_log.install(entered(seq, "ab" if seq % 8 else "a"))
    assert [line[:18] for line in said()] == ["g/a: view 56.a of "]
    node_log.sum_up_views(last=True)
    (line,) = said()
    assert "3 views in 0 s, the last: view 64.a of a; b gone: the token is lost" in line
    # Ten quiet seconds later all is as before.
    clock.now += 10.0
    node_log.sum_up_views()
    clock.now += 10.0
    node_log.install(entered(68, "ab"))
    node_log.install(entered(72, "a"))
    assert len(said()) == 2


def test_names_of_strangers_do_not_fill_memory(told):
    node_log, _ = told
    for i in range(3 * KINDS_MAX):
        node_log.stranger(f"x{i}")
        node_log.settings(f"x{i}", "other settings")
    assert len(node_log._last) <= KINDS_MAX
    assert len(node_log._standing) <= KINDS_MAX


def test_a_slow_disk_is_told_with_its_last_sync(told):
    node_log, said = told
    for _ in range(3):
        node_log.disk_behind(70 << 20, 1.234)
    (sentence,) = said()
    assert "70 MB wait for the journal's disk, whose last sync took 1234 ms" in sentence
    assert node_log.warnings() == [sentence.removeprefix("g/a: ")]
