"""The example of docs/sweeps.md: a paper of one's own, by adding the files that the page shows."""

import re
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from roundelay import experiments
from roundelay.experiments import claims
from roundelay.experiments.claims import Outcome
from roundelay.pipeline.sweep import work
from roundelay.pipeline.sweep.plan import parse
from roundelay.pipeline.sweep.store import open_store
from roundelay.report import write_report

PAGE = Path(__file__).parents[2] / "docs" / "sweeps.md"


@pytest.fixture
def atoll(tmp_path, monkeypatch) -> str:
    """Its two modules put in place; its plan is returned."""
    example = PAGE.read_text().partition("## A paper of your own")[2]
    blocks = re.findall(r"^   ```(python|toml)\n(.*?)^   ```", example, re.DOTALL | re.MULTILINE)
    (_, runs), (_, plan), (_, found) = blocks
    package = tmp_path / "experiments"
    package.mkdir()
    (package / "atoll_runs.py").write_text(dedent(runs))
    (package / "atoll.py").write_text(dedent(found))
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(package)])
    monkeypatch.setitem(claims.MODULES, "atoll", "roundelay.experiments.atoll")
    for name in ("atoll", "atoll_runs"):
        # Put back what was there, which is nothing, when the test is over.
        monkeypatch.delitem(sys.modules, f"roundelay.experiments.{name}", raising=False)
    return dedent(plan)


def test_the_example_of_the_page_works(atoll, tmp_path):
    try:
        plan = parse(atoll, "papers/atoll", quick=True)
        with open_store(tmp_path / "sweep", plan) as held:
            held.add(0, [work.run(job) for job in held.pending(retry=False)])
            held.finish()
            assert not held.errors()
            assert len(held.rows) == 12
        written = write_report(tmp_path / "sweep", tmp_path / "report.html")
    finally:
        for name in ("atoll", "atoll_runs"):
            sys.modules.pop(f"roundelay.experiments.{name}", None)
    assert dict(written.claims) == {Outcome.COMES_OUT: 1}
    page = (tmp_path / "report.html").read_text()
    assert "Figure 1: Latency" in page
    assert page.index('class="beside"') < page.index("✓ comes out")
