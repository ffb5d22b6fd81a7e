"""Every scenario file says what happens; `pytest --rewrite` puts in what does.

`pytest -k` looks at the names of files and functions, too: these two are such that `-k st_` selects
by the names of scenarios alone.
"""

from pathlib import Path

import pytest

from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse, rewrite

ROOT = Path(__file__).parent
FILES = sorted(ROOT.rglob("*.txt"))
assert FILES, "there are no scenarios"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test(path, request):
    text = path.read_text()
    story = ScenarioRunner()
    actual = rewrite(text, story.play)
    if request.config.getoption("--rewrite"):
        path.write_text(actual)
        return
    assert all(block.expected for block in parse(text)), "run pytest --rewrite and read the diff"
    assert actual == text
