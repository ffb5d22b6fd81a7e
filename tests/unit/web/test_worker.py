"""The worker answers each request once, whatever a request asks for."""

import json
from io import BytesIO

import pytest

from roundelay.web.lab import worker
from roundelay.web.lab.catalogue import catalogue, text_of
from roundelay.web.lab.errors import LaboratoryError
from roundelay.web.lab.walkthrough import walk
from roundelay.web.lab.worker import KEPT_MAX, OWN, TEXT_MAX, Worker, serve

X1 = "fc/x1_two_fail"


def answers(*requests: object) -> list[tuple[bytes, dict[str, object]]]:
    lines = b"".join(json.dumps(request).encode() + b"\n" for request in requests)
    out = BytesIO()
    serve(BytesIO(lines), out)
    out.seek(0)
    found = []
    while header := out.readline():
        outcome, length = header.split()
        found.append((outcome, json.loads(out.read(int(length)))))
    return found


def test_it_answers_in_turn():
    scenarios, walkthrough, drawn, witness = answers(
        {"ask": "scenarios"},
        {"ask": "walkthrough", "scenario": X1},
        {"ask": "diagram", "scenario": X1, "step": 3},
        {"ask": "witness", "scenario": X1, "property": "O6"},
    )
    assert {outcome for outcome, _ in (scenarios, walkthrough, drawn, witness)} == {b"done"}
    assert set(scenarios[1]) == {"scenarios", "first", "comparison"}
    assert walkthrough[1]["name"] == X1
    assert str(drawn[1]["svg"]).startswith("<svg")
    assert drawn[1] != witness[1]


def test_what_cannot_be_answered_is_said():
    wrong, unknown, after = answers(
        {"ask": "walkthrough", "scenario": "../x"},
        {"ask": "everything"},
        {"ask": "comparison", "one": "fifo", "two": "causal", "load": {"messages": "5"}},
    )
    assert wrong[0] == unknown[0] == b"refused"
    assert "no scenario is called '../x'" in str(wrong[1]["error"])
    assert "does not know" in str(unknown[1]["error"])
    assert after[0] == b"done"


def test_a_run_that_breaks_off_does_not_end_it(monkeypatch):
    def broken(name: str, text: str) -> None:
        raise KeyError("missing")

    monkeypatch.setattr(worker, "walk", broken)
    first, second = answers({"ask": "walkthrough", "scenario": X1}, {"ask": "scenarios"})
    assert first[0] == b"refused"
    assert "the run broke off: KeyError" in str(first[1]["error"])
    assert second[0] == b"done"


def test_it_keeps_a_few_runs_to_draw_from(monkeypatch):
    played: list[str] = []

    def counted(name: str, text: str):
        played.append(name)
        return walk(name, text)

    monkeypatch.setattr(worker, "walk", counted)
    asked = Worker()
    names = ["template/loss", "template/duplicates", "template/restart", "template/disorder"]
    assert len(names) == KEPT_MAX
    for name in (*names, *names):
        asked.answer({"ask": "walkthrough", "scenario": name})
    assert played == names
    asked.answer({"ask": "walkthrough", "scenario": X1})
    asked.answer({"ask": "diagram", "scenario": names[0], "step": 0})  # It was the oldest.
    assert played == [*names, X1, names[0]]


def test_a_scenario_of_ones_own_is_played_and_drawn():
    text = "engine totem static\nnodes a b\nsubmit b x\nstabilize\n----\n"
    asked = Worker()
    document = asked.answer({"ask": "play", "text": text})
    assert document["name"].startswith(OWN)
    assert document["text"] == text.splitlines()
    drawn = asked.answer({"ask": "diagram", "scenario": document["name"], "step": 0})
    assert drawn["svg"].startswith("<svg")
    with pytest.raises(LaboratoryError, match="not kept any more"):
        Worker().answer({"ask": "diagram", "scenario": document["name"], "step": 0})


def test_a_scenario_of_ones_own_is_bounded():
    with pytest.raises(LaboratoryError, match=f"{TEXT_MAX} characters at most"):
        Worker().answer({"ask": "play", "text": "#" * (TEXT_MAX + 1)})
    with pytest.raises(LaboratoryError, match="line 1: noodles a"):
        Worker().answer({"ask": "play", "text": "noodles a\n----\n"})


def test_shipped_scenarios_can_be_changed():
    longest = max(len(text_of(name)) for name in catalogue())
    assert longest < TEXT_MAX
