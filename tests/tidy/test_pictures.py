"""The pictures in the documents are what `roundelay draw` makes of the scenarios beside them.

A scenario under `docs/pictures` says in lines that begin with `# draw:` how it is drawn. A picture
of a scenario that is elsewhere has such lines in a file `NAME.draw`, and a line `# scenario:` that
names it from the top of the repository. `pytest --rewrite` draws all of them again.
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
PICTURES = sorted([*(DOCS / "pictures").glob("*.txt"), *(DOCS / "pictures").glob("*.draw")])
WIDTH_MAX = 700
"""As wide as a page shows without scrolling."""


def drawn(text: str, path: Path, out: Path) -> tuple[str, str]:
    """The scenario with what happens in it, and the picture that `path` asks for."""
    story = ScenarioRunner()
    actual = rewrite(text, story.play)
    write_trace(story, text, out / "trace")
    options = shlex.split(" ".join(re.findall(r"^# draw: (.+)$", path.read_text(), re.MULTILINE)))
    assert main(["draw", str(out / "trace"), "-o", str(out / "picture.svg"), *options]) == 0
    return actual, (out / "picture.svg").read_text()


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_picture_is_what_its_scenario_gives(path, tmp_path, request):
    text = path.read_text()
    if elsewhere := re.match(r"# scenario: (.+)\n", text):
        text = (DOCS.parent / elsewhere[1]).read_text()
    assert text.startswith("# "), "it does not open with its story"
    actual, picture = drawn(text, path, tmp_path)
    svg = path.with_suffix(".svg")
    if request.config.getoption("--rewrite"):
        if not elsewhere:
            path.write_text(actual)
        svg.write_text(picture)
        return
    assert all(block.expected for block in parse(text)) or elsewhere, "run pytest --rewrite"
    assert actual == text, "run pytest --rewrite and read the diff"
    assert picture == svg.read_text(), "run pytest --rewrite and look at the picture"


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_picture_fits_a_page_and_is_shown_on_one(path):
    width = re.search(r'width="(\d+)', path.with_suffix(".svg").read_text())
    assert width is not None
    assert int(width[1]) <= WIDTH_MAX
    shown = "\n".join(page.read_text() for page in DOCS.glob("*.md"))
    assert f"](pictures/{path.stem}.svg)" in shown


def test_every_picture_has_a_scenario():
    assert PICTURES
    assert {path.stem for path in PICTURES} == {svg.stem for svg in DOCS.glob("pictures/*.svg")}
