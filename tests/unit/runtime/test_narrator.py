"""What the log says."""

import logging

import pytest

from roundelay.core.effects import Suspect
from roundelay.core.ids import View, ViewId
from roundelay.runtime.narrator import Narrator


@pytest.fixture
def told(caplog):
    """A narrator, and what it has said since the last look."""
    caplog.set_level(logging.INFO)
    narrator = Narrator("g", "a", 0.4)

    def said() -> list[str]:
        lines = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return lines

    return narrator, said


def view(seq: int, members: str, *, transitional: bool = False) -> View:
    return View(ViewId(seq, members[0]), tuple(members), transitional, primary=seq > 4)


def test_a_view_change_is_one_sentence_with_its_cause(told):
    narrator, said = told
    narrator.install(view(4, "a"))
    narrator.install(view(8, "abc"))
    assert said() == ["g/a: view 4.a of a, not primary", "g/a: view 8.a of a, b, c; b, c joined"]
    narrator.suspect(Suspect((), "the token is lost"))
    narrator.install(view(11, "ab", transitional=True))
    narrator.install(view(12, "ab"))
    (line,) = said()
    assert line.startswith("g/a: view 12.a of a, b; c gone: the token is lost, which means that")
    assert line.endswith("raise timeout_s (now 400 ms)")
    narrator.suspect(Suspect(("b",), "it fails to receive"))
    narrator.install(view(16, "a"))
    assert said() == ["g/a: view 16.a of a; b gone: it fails to receive (b)"]
    narrator.install(view(20, "a"))
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
