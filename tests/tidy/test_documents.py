"""Documents say what the code has."""

import re
from pathlib import Path

from roundelay.check import PROPERTIES
from roundelay.core.effects import Kind
from roundelay.sim.story import Story
from roundelay.trace.schema import Row

DOCS = Path(__file__).parents[2] / "docs"


def named(text: str) -> set[str]:
    """Words in backquotes at the beginning of the rows of tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [re.split(r"(?<!\\)\|", line)[1] for line in lines]
    return {quoted for cell in cells for quoted in re.findall(r"`([^`]+)`", cell)}


def test_every_property_is_documented_with_its_title():
    text = (DOCS / "properties.md").read_text()
    listed = dict(re.findall(r"^\| ([A-Z]\w+) \| (.+) \|$", text, re.MULTILINE))
    assert listed == {name: p.title for name, p in PROPERTIES.items()}


def test_every_column_and_kind_of_the_trace_is_documented():
    words = named((DOCS / "trace.md").read_text())
    assert set(Row._fields) | {"run"} <= words
    assert set(Kind) <= words


def test_every_scenario_command_is_documented():
    commands = {name[5:] for name in dir(Story) if name.startswith("_cmd_")}
    listed = {phrase.split()[0] for phrase in named((DOCS / "scenarios.md").read_text())}
    assert commands - listed == {"start"}  # Told of where `nodes` is.
    assert "`start a b`" in (DOCS / "scenarios.md").read_text()


def test_the_walks_name_things_that_exist():
    text = (DOCS / "engines.md").read_text()
    source = "\n".join(path.read_text() for path in (DOCS.parent / "src").rglob("*.py"))
    for name in set(re.findall(r"`(?:\w+\.)?(_\w+)`", text)):
        assert f"def {name}(" in source, name
    for owner, name in re.findall(r"`([A-Z]\w+)\.(\w+)", text):
        assert re.search(rf"class {owner}\b", source), owner
        assert f"def {name}(" in source, name
