"""Progress says only what is known."""

import pytest

from roundelay.cli import progress
from roundelay.cli.progress import Progress


@pytest.fixture
def later(monkeypatch):
    """Everything took long enough to be told."""
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    monkeypatch.setattr(progress, "STEP_S", 0.0)


def test_a_share_has_an_estimate(later, capsys):
    Progress("simulating").update(1, 4)
    said = capsys.readouterr().err
    assert said.startswith("simulating: 25%, 0 s, about 0 s to go")


def test_steps_of_unequal_length_have_no_share(later, capsys):
    shown = Progress("checking")
    shown.step(1, 4)
    shown.step(4, 4)
    assert capsys.readouterr().err == "checking: step 2 of 4, 0 s\n"


def test_what_is_done_is_told_in_words(later, capsys):
    Progress("ingesting").say("Spark runs, traces are being read")
    assert capsys.readouterr().err == "ingesting: Spark runs, traces are being read, 0 s\n"


def test_short_work_shows_nothing(capsys):
    shown = Progress("checking")
    shown.update(1, 2)
    shown.step(1, 2)
    shown.say("begins")
    assert capsys.readouterr().err == ""
