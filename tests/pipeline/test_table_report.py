"""The report of a table: what ingest, check and measure left in it."""

import json
import re
import shutil

import pytest
from tests.report.made import made_trace

from roundelay.check.verdict import Validity
from roundelay.pipeline.ingest.into_table import ingest
from roundelay.pipeline.judge.check import check
from roundelay.pipeline.judge.verdict_table import VERDICTS, write_verdicts
from roundelay.pipeline.measure.measure import measure
from roundelay.report import evidence, write_report


def test_a_table_shows_verdicts_measures_views_and_a_witness(spark, tmp_path):
    home = tmp_path / "table"
    scenarios = ("template", "totem")
    made = {name: made_trace(tmp_path / "traces" / name, name) for name in scenarios}
    done = ingest(spark, [tmp_path / "traces" / name for name in scenarios], home)
    reports = check(spark, done.table)
    write_verdicts(reports, home / VERDICTS)
    lines = measure(spark, done.table, home)

    known = evidence.of_table(home)
    assert [run.row_count for run in known.runs] == [len(made[name][0]) for name in scenarios]
    assert known.measures.num_rows == len(lines)
    template = known.runs[0]
    assert template.rows() == sorted(made["template"][0], key=lambda row: row.gseq or 0)

    written = write_report(tmp_path, tmp_path / "report.html")
    violated = sum(len(one.report.violated) for one in reports)
    assert written.verdicts[Validity.VIOLATED] == violated > 0
    page = (tmp_path / "report.html").read_text()
    assert "Runs in table" in page
    assert "Traces, " not in page, "what is in the table is shown once"
    assert "What O5 looks like" in page
    found = re.search(r'id="plots">(.*?)</script>', page)
    assert found is not None
    kinds = [plot["kind"] for plot in json.loads(found[1])]
    assert kinds.count("timeline") == 1
    assert "lines" in kinds


@pytest.fixture(scope="module")
def checked(spark, tmp_path_factory):
    """A table with verdicts."""
    home = tmp_path_factory.mktemp("checked")
    made_trace(home / "traces", "template")
    done = ingest(spark, [home / "traces"], home / "table")
    write_verdicts(check(spark, done.table), home / "table" / VERDICTS)
    return home / "table"


FILES = ("table.json", VERDICTS, "part=*/_part.json", "part=*/*/*/*.parquet")


@pytest.mark.parametrize("file", FILES)
def test_a_broken_table_is_left_out_with_a_sentence(checked, tmp_path, file):
    """Whatever of it is damaged; what else is there is shown."""
    made_trace(tmp_path / "good", "totem")
    shutil.copytree(checked, tmp_path / "table")
    for path in (tmp_path / "table").glob(file):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    written = write_report(tmp_path, tmp_path / "report.html")
    assert len(written.skipped) == 1
    page = (tmp_path / "report.html").read_text()
    assert "Left out: " in page
    assert len(re.findall(r"<h2[^>]*>Run [^<]+</h2>", page)) == 1
