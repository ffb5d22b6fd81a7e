"""The example of docs/sweeps.md: a paper of one's own, by adding the files that the page shows."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from roundelay.cli import main
from roundelay.experiments import papers
from roundelay.experiments.claims import Outcome
from roundelay.experiments.plan import read
from roundelay.pipeline.sweep import work
from roundelay.pipeline.sweep.store import open_store
from roundelay.report import write_report

PAGE = Path(__file__).parents[2] / "docs" / "sweeps.md"


@pytest.fixture
def atoll(tmp_path, monkeypatch) -> Iterator[None]:
    """The folder that the page describes, put in place."""
    example = PAGE.read_text().partition("## A paper of your own")[2]
    blocks = re.findall(
        r"^\d\. \*\*`([\w.]+)`.*?^   ```\w+\n(.*?)^   ```", example, re.DOTALL | re.MULTILINE
    )
    assert [name for name, _ in blocks] == [
        *("__init__.py", "runs.py", "plan.toml", "claims.py", "figures.py")
    ]
    folder = tmp_path / "papers" / "atoll"
    folder.mkdir(parents=True)
    for name, text in blocks:
        (folder / name).write_text(dedent(text))
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(folder.parent)])
    yield
    for name in [name for name in sys.modules if name.startswith(f"{papers.__name__}.atoll")]:
        del sys.modules[name]
    vars(papers).pop("atoll", None)


def test_the_example_of_the_page_works(atoll, tmp_path):
    plan = read("papers/atoll", quick=True)
    with open_store(tmp_path / "sweep", plan) as held:
        held.add(0, [work.run(job) for job in held.pending(retry=False)])
        held.finish()
        assert not held.errors()
        assert len(held.rows) == 12
    written = write_report(tmp_path / "sweep", tmp_path / "report.html")
    assert dict(written.claims) == {Outcome.COMES_OUT: 1}
    page = (tmp_path / "report.html").read_text()
    assert "Figure 1: Latency" in page
    assert page.index('class="beside"') < page.index("✓ comes out")


def test_its_claims_are_measured_by_the_command(atoll, capsys):
    assert main(["claims", "atoll", "--jobs", "1"]) == 0
    assert "comes out" in capsys.readouterr().out
