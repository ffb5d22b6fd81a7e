"""The main job: five real nodes through faults, judged on Spark, and a report to look at."""

import json
import re
from pathlib import Path

import pytest

from roundelay.cli import main

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.mark.parametrize("engine", ["totem", "st"])
def test_the_demo_judges_real_nodes_and_writes_a_report(tmp_path, capsys, engine):
    pytest.importorskip("pyspark")
    assert main(["demo", "--engine", engine, "-o", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    for what in ("kill -9 of b", "SIGSTOP", "the network parts", "b starts again"):
        assert what in told
    assert "Every promise held." in told
    page = (tmp_path / "report.html").read_text()
    assert "plotly" in page
    assert list((tmp_path / "table").iterdir())
    # The report marks the faults at the times that the console says, and the command draws one.
    plots = re.search(r'<script type="application/json" id="plots">(.*?)</script>', page)
    assert plots is not None
    (timeline,) = [plot for plot in json.loads(plots[1]) if plot["kind"] == "timeline"]
    marked = [f"{fault['at']:.1f}" for fault in timeline["faults"]]
    assert marked[:6] == re.findall(r"([0-9.]+) s  fault [1-6]: ", told)
    picture = re.search(r"picture: +roundelay (draw .* -o (\S+))", told)
    assert picture is not None
    assert main(picture[1].split()) == 0
    assert "crash b" in Path(picture[2]).read_text()
