"""The pictures in the documents are what `roundelay draw` makes of the scenarios beside them.

A scenario under `docs/pictures` says in lines that begin with `# draw:` how it is drawn;
`pytest --rewrite` draws it again.
"""

import re
import shlex
from pathlib import Path

import pytest

from roundelay.cli import main
from roundelay.cli.sim.files import write_trace
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse, rewrite

DOCS = Path(__file__).parents[2] / "docs"
SCENARIOS = sorted((DOCS / "pictures").glob("*.txt"))
WIDTH_MAX = 700
"""As wide as a page shows without scrolling."""


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_picture_is_what_its_scenario_gives(path, tmp_path, request):
    text = path.read_text()
    assert text.startswith("# "), "it does not open with its story"
    story = ScenarioRunner()
    actual = rewrite(text, story.play)
    write_trace(story, text, tmp_path / "trace")
    options = shlex.split(" ".join(re.findall(r"^# draw: (.+)$", text, re.MULTILINE)))
    drawn = tmp_path / "picture.svg"
    assert main(["draw", str(tmp_path / "trace"), "-o", str(drawn), *options]) == 0
    svg = path.with_suffix(".svg")
    if request.config.getoption("--rewrite"):
        path.write_text(actual)
        svg.write_text(drawn.read_text())
        return
    assert all(block.expected for block in parse(text)), "run pytest --rewrite and read the diff"
    assert actual == text
    assert drawn.read_text() == svg.read_text(), "run pytest --rewrite and look at the picture"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_picture_fits_a_page_and_is_shown_on_one(path):
    width = re.search(r'width="(\d+)', path.with_suffix(".svg").read_text())
    assert width is not None
    assert int(width[1]) <= WIDTH_MAX
    shown = "\n".join(page.read_text() for page in DOCS.glob("*.md"))
    assert f"](pictures/{path.stem}.svg)" in shown


def test_every_picture_has_a_scenario():
    assert SCENARIOS
    for svg in (DOCS / "pictures").glob("*.svg"):
        assert svg.with_suffix(".txt") in SCENARIOS, svg.name
