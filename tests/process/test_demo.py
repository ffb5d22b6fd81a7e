"""The main job: five real nodes through faults, judged on Spark, and a report to look at."""

import pytest

from roundelay.cli import main

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.mark.parametrize("engine", ["totem", "atop", "fc", "st"])
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
