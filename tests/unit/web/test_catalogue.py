"""The list of scenarios says of each what its text says."""

import re
from pathlib import Path

import pytest

from roundelay.sim.shipped import shipped
from roundelay.web.lab.asking import ANSWER_S_MAX
from roundelay.web.lab.catalogue import FIRST, catalogue, document, text_of
from roundelay.web.lab.errors import LaboratoryError
from roundelay.web.lab.steps import STEPS_MAX


def test_it_lists_every_scenario_that_is_shipped():
    assert set(catalogue()) == set(shipped())
    assert [entry["name"] for entry in document()["scenarios"]] == list(shipped())


def test_where_to_begin_are_scenarios():
    assert len(FIRST) >= 4
    for name, why in FIRST:
        assert name in catalogue()
        assert why.endswith(".")


def test_an_entry_tells_the_engine_the_rules_and_the_story():
    entry = catalogue()["fc/x1_two_fail"]
    assert (entry.engine, entry.rules, entry.group) == ("fc", "paper", "fc")
    assert entry.breaks == ("O3i", "O6", "N2")
    assert entry.others == ("fc/x1_two_fail_safe",)
    assert entry.story[0].startswith("Algorithm 1 of the FC paper breaks agreement")
    assert entry.story[1].startswith("1 and 2, which follow one another, crash.")
    assert not any("#" in paragraph for paragraph in entry.story)


def test_a_scenario_without_a_folder_is_listed_under_its_engine():
    assert catalogue()["dtp_lost_token"].group == "cm"


def test_every_scenario_tells_a_story():
    assert [name for name, entry in catalogue().items() if not entry.story] == []


def test_repaired_rules_break_nothing():
    safe = [entry for name, entry in catalogue().items() if name.endswith("_safe")]
    assert len(safe) > 5
    assert [entry.name for entry in safe if entry.breaks] == []


@pytest.mark.parametrize("name", ["", "../../pyproject", "/etc/passwd", "fc", "fc/x1"])
def test_only_names_of_the_list_are_read(name):
    with pytest.raises(LaboratoryError, match="no scenario is called"):
        text_of(name)


def test_the_document_says_what_there_is():
    text = (Path(__file__).parents[3] / "docs" / "laboratory.md").read_text()
    named = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    assert {name for name, _ in FIRST} <= set(named) <= set(catalogue())
    assert f"first {STEPS_MAX} steps" in text
    assert f"more than {ANSWER_S_MAX:g} s" in text
