"""Commands that documents name are commands that there are, with flags that they have."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundelay.cli import command_line
from roundelay.cli.subcommands import CommandParser

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))]
BLOCK = re.compile(r"^```(\w*).*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^(?:\$ )?(?:until )?(?:\S*/)?roundelay (.+)$", re.MULTILINE)
QUOTED = re.compile(r"`(?:\S*/)?roundelay\s([^`]*[^`\s])`")
ENDS = re.compile(r"^(\||&&?|;|\d?>.*|<)$")
"""Words of the shell, which end a command."""
PLACEHOLDERS = {"COMMAND", "..."}


def words(line: str) -> list[str]:
    """Those of one command, as the shell splits them."""
    found = shlex.split(line, comments=True)
    return found[: next((at for at, word in enumerate(found) if ENDS.match(word)), len(found))]


def typed(text: str) -> Iterator[list[str]]:
    """Commands that a reader types as they are."""
    for language, block in BLOCK.findall(text):
        if language not in ("", "console", "bash", "sh"):
            continue
        for line in LINE.findall(block.replace("\\\n", " ")):
            yield words(line)


def mentioned(text: str) -> Iterator[list[str]]:
    """Commands in sentences, of which some say only what matters there."""
    for quoted in QUOTED.findall(text):
        yield words(" ".join(quoted.split()))


def unknown(parser: argparse.ArgumentParser, told: list[str]) -> list[str]:
    """Commands and flags among the words that the parser does not have; placeholders are no
    commands."""
    if isinstance(parser, CommandParser):
        parser.load()
    below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if below and told and not told[0].startswith("-"):
        if told[0] in PLACEHOLDERS:
            return []
        found = below[0].choices.get(told[0])
        return [told[0]] if found is None else unknown(found, told[1:])
    flags = [word.partition("=")[0] for word in told if re.match("--?[a-z]", word)]
    return [flag for flag in flags if flag not in parser._option_string_actions]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_can_be_typed_as_they_are_written(page):
    parser = command_line()
    for told in typed(page.read_text()):
        if not PLACEHOLDERS & set(told):
            parser.parse_args(told)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_in_sentences_exist(page):
    parser = command_line()
    for told in mentioned(page.read_text()):
        assert unknown(parser, told) == [], told


def test_they_are_found_and_a_wrong_one_would_be():
    texts = [page.read_text() for page in PAGES]
    assert sum(len(list(typed(text))) for text in texts) > 80
    assert sum(len(list(mentioned(text))) for text in texts) > 200
    wrong = (
        "```\nroundelay draw run --arround fault:2 -o x.svg   # a picture\n```\n`roundelay dreaw`"
    )
    ((*_, flag, _, _, _),) = typed(wrong)
    assert flag == "--arround"
    assert [unknown(command_line(), told) for told in (*typed(wrong), *mentioned(wrong))] == [
        ["--arround"],
        ["dreaw"],
    ]
