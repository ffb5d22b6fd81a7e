"""Pages of the documents, followed literally: their files are saved, and their lines typed into
real terminals."""

import os
import re
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from tests.patience import play
from tests.process.terminals import ROOT, Terminals, blocks
from tests.process.test_examples import base_port

import roundelay
from roundelay.structures import Counter

pytestmark = pytest.mark.process

README = ROOT / "README.md"

DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"
GUIDES = [path for path in sorted(DOCS.glob("*.md")) if blocks(path) and path != TUTORIAL]


def without_index(home: Path) -> dict[str, str]:
    """Settings with which `pip install` builds and installs without a network: it finds what
    this environment has, but for Roundelay."""
    packages = home / "packages"
    packages.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "roundelay" not in path.name:
            (packages / path.name).symlink_to(path)
    return {
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # Which means what its name says.
        "PIP_NO_INDEX": "1",
        "PYTHONPATH": str(packages),
    }


@pytest.mark.parametrize("page", [TUTORIAL, *GUIDES], ids=lambda page: page.stem)
def test_a_page_is_followed_as_a_whole_or_not_at_all(page):
    text = page.read_text()
    assert text.count("\n```console") == sum(kind == "console" for kind, _, _ in blocks(page))
    if page == TUTORIAL:
        assert text.count("\n```") == 2 * len(blocks(page))


def test_the_tutorial_does_what_it_says(tmp_path):
    """It begins in the clone, and installs Roundelay from there."""
    environment = without_index(tmp_path) | {"VIRTUAL_ENV_DISABLE_PROMPT": "1"}
    with Terminals(tmp_path, ROOT, environment) as terminals:
        terminals.follow(TUTORIAL, tmp_path / "tutorial")


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_does_what_it_says(page, tmp_path):
    """It begins in an empty directory, where the command `roundelay` is found."""
    with Terminals(
        tmp_path, tmp_path, {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    ) as terminals:
        terminals.follow(page, tmp_path)


def test_the_program_of_the_readme_counts(tmp_path, monkeypatch, capsys):
    """It is run as `a`; `b` and `c` are there meanwhile."""
    (block,) = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    first = base_port()
    code = re.sub(r"\b540(\d)\b", lambda port: str(first + int(port[1]) - 1), block)
    known: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), known)
    monkeypatch.chdir(tmp_path)

    def node(name: str) -> roundelay.Replicated[Counter]:
        return roundelay.replicate(
            Counter, "hits", node=name, peers=known["PEERS"], journal=f"data/{name}"
        )

    async def story() -> None:
        async with node("b") as b, node("c"):
            await known["main"]("a")
            assert await b.value() == 1

    play(story)
    assert capsys.readouterr().out == "1\n"


def test_there_are_guides():
    assert {page.stem for page in GUIDES} >= {"keys", "incident", "monitoring", "slow", "wrong"}
