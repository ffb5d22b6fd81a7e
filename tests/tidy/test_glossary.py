"""The glossary names things of the code that exist, each word once."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
LINES = [line.strip().strip("|").split("|") for line in GLOSSARY.read_text().splitlines()]
ROWS = [
    tuple(cell.strip() for cell in line)
    for line in LINES
    if len(line) == 4 and not line[0].startswith((" word", "---"))
]


def found(name: str) -> object:
    """What a dotted name below `roundelay` stands for; AttributeError if there is none."""
    module, parts = "roundelay", name.split(".")
    thing = importlib.import_module(module)
    for part in parts:
        module = f"{module}.{part}"
        if not hasattr(thing, part):
            importlib.import_module(module)
        thing = getattr(thing, part)
    return thing


def test_every_word_is_there_once():
    words = [row[0] for row in ROWS]
    assert len(words) > 50
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_code_has_what_a_row_names(row):
    names = re.findall(r"`([^`]+)`", row[2])
    assert names, "no place in the code"
    for name in names:
        assert (ROOT / name).exists() if "/" in name else found(name) is not None


def test_a_name_that_does_not_exist_is_noticed():
    with pytest.raises((AttributeError, ImportError)):
        found("core.ids.Nonsense")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_meaning_is_a_sentence(row):
    assert row[1].endswith((".", "..."))
    assert row[1][0].isupper() or row[1].startswith('"')
