"""The report of a table: what ingest, check and measure left in it."""

import json
import re

from tests.report.made import made_trace

from roundelay.check.verdict import Validity
from roundelay.pipeline.check import VERDICTS, check, write_verdicts
from roundelay.pipeline.ingest import ingest
from roundelay.pipeline.measure import measure
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
