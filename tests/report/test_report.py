"""Reports of sweeps, tables and traces."""

import csv
import json
import re
from base64 import b64decode
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.report.made import made_sweep, made_trace

from roundelay.check import check
from roundelay.check.verdict import Validity
from roundelay.cli import main
from roundelay.core.effects import Kind
from roundelay.experiments.claims import Outcome
from roundelay.experiments.plan import papers
from roundelay.experiments.registry import load_paper
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.sweep.store import read_sweep
from roundelay.report import evidence, write_report
from roundelay.report.runs import view_bars
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row
from roundelay.trace.writer import Writer


def plots_of(page: str) -> list[dict[str, object]]:
    found = re.search(r'<script type="application/json" id="plots">(.*?)</script>', page)
    assert found is not None
    plots: list[dict[str, object]] = json.loads(found[1])
    return plots


@pytest.mark.parametrize("name", papers())
def test_a_paper_is_judged_as_its_claims_are(name, tmp_path):
    """From the directory of a sweep, by the function that `roundelay claims` uses."""
    made_sweep(tmp_path / "sweep", name)
    written = write_report(tmp_path / "sweep", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    sweep = read_sweep(tmp_path / "sweep")
    assert sweep is not None
    paper = name.removeprefix("papers/")
    findings = load_paper(paper).findings_of(sweep.results)
    assert written.claims.total() == len(findings.claims)
    assert page.count('class="chip ') == len(findings.claims)
    with (tmp_path / "report-files" / f"{paper}-claims.csv").open() as file:
        rows = list(csv.DictReader(file))
    ours = [str(claim.ours) if claim.ours is not None else "" for claim in findings.claims]
    assert [row["ours"] for row in rows] == ours
    for figure in findings.figures:
        for kind in ("csv", "png"):
            assert f"report-files/{paper}-{figure.name}.{kind}" in written.files
            assert (tmp_path / "report-files" / f"{paper}-{figure.name}.{kind}").stat().st_size
    curves = [plot for plot in plots_of(page) if plot["kind"] == "curves"]
    assert len(curves) == len(findings.figures)
    for plot, figure in zip(curves, findings.figures, strict=True):
        drawn = [(s["x"], s["y"]) for s in plot["series"]]  # type: ignore[attr-defined]
        points = [([p.x for p in s.points], [p.mean for p in s.points]) for s in figure.series]
        assert drawn == points


def test_figures_stand_beside_their_claims(tmp_path):
    made_sweep(tmp_path, "papers/dtp")
    write_report(tmp_path, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    parts = page.split('<div class="beside">')[1:]
    assert len(parts) == 4
    for part, word in zip(parts, ("stability", "buffer", "delivery", "overhead"), strict=True):
        claims = part[part.index('<ul class="claims">') : part.index("</ul>")]
        assert claims.count("<li>") == claims.count("<strong>")
        assert word in claims


def test_a_sweep_that_is_not_done_says_so_and_judges_nothing(tmp_path):
    made_sweep(tmp_path, "papers/totem", leave_out="new ring")
    written = write_report(tmp_path, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert not written.claims
    assert "60 of 66 cells" in page
    assert "6 not yet" in page
    assert "The claims cannot be judged: there is no run of" in page


def test_the_page_asks_nobody_for_anything(tmp_path):
    made_sweep(tmp_path, "papers/totem")
    write_report(tmp_path, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    outside = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', outside)
    assert "@import" not in outside
    assert "default-src &#x27;none&#x27;" in page


def test_a_trace_shows_its_verdicts_and_its_worst(tmp_path):
    report = check(*made_trace(tmp_path / "traces" / "template", "template"))
    made_trace(tmp_path / "traces" / "totem", "totem")
    written = write_report(tmp_path, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert written.verdicts[Validity.VIOLATED] == len(report.violated) > 0
    for verdict in report.violated:
        assert f"{verdict.property}: " in page
    assert "What O5 looks like" in page
    assert page.count("data:image/svg+xml;base64,") == 2
    (timeline,) = plots_of(page)
    assert timeline["kind"] == "timeline"
    assert timeline["rows"] == ["a", "b", "c", "d", "e"]


NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "'><svg onload=alert(3)>",
    "&lt;b&gt;",
    "]]><script>",
)


class Elements(HTMLParser):
    """The elements of a page, and the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}


def test_names_never_become_elements_of_a_page_or_a_picture(tmp_path):
    """They may come from anybody's trace."""
    found: list[Elements] = []
    for place, all_names in (("good", tuple("abcde")), ("evil", NAMES)):
        rows, manifest = made_trace(tmp_path / "made" / place, "template")
        names = all_names[: len(manifest.nodes)]
        assert len(names) == len(manifest.nodes) > 2
        told = replace(manifest, nodes=names, run="r" if place == "good" else NAMES[0])
        with Writer(tmp_path / place / "trace", told, format="jsonl") as writer:
            for row in rows:
                writer.append(row)
        page = tmp_path / f"{place}.html"
        write_report(tmp_path / place, page)
        found.append(Elements())
        found[-1].feed(page.read_text())
        pictures = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", page.read_text())
        picture = tmp_path / f"{place}.svg"
        assert main(["draw", str(tmp_path / place / "trace"), "-o", str(picture)]) == 0
        assert pictures
        for text in (*(b64decode(one).decode() for one in pictures), picture.read_text()):
            root = ElementTree.fromstring(text)
            assert not [e for e in root.iter() if e.tag.rpartition("}")[2] in ("script", "img")]
            assert not [name for e in root.iter() for name in e.attrib if name.startswith("on")]
    good, evil = found
    assert evil.tags == good.tags
    assert evil.attributes == good.attributes
    assert "alert(1)" in (tmp_path / "evil.html").read_text()


def test_a_trace_that_was_cut_is_told_of(tmp_path):
    made_trace(tmp_path / "totem", "totem")
    path = tmp_path / "totem" / "trace.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    write_report(tmp_path, tmp_path / "report.html")
    assert "trace.parquet" in (tmp_path / "report.html").read_text()


def test_bars_end_where_the_next_view_or_the_crash_begins():
    def install(proc: int, lseq: int, t_s: int, seq: int, kind: int = 0) -> Row:
        row = Row(Kind.INSTALL, proc, 0, lseq, t_ns=t_s * 10**9, members=(0, 1))
        return row._replace(c_seq=seq, c_rep=0, c_kind=kind)

    rows = [
        install(0, 0, 1, 4),
        install(0, 1, 3, 7, kind=1),
        install(0, 2, 4, 8),
        install(1, 0, 1, 4),
        Row(Kind.CRASH, 1, 0, 1, t_ns=2 * 10**9),
        Row(Kind.END, -1, 0, 0, t_ns=9 * 10**9),
    ]
    bars = view_bars(rows, Manifest("r", ("a", "b")))
    assert [(b.row, b.name, b.start, b.end, b.transitional) for b in bars] == [
        ("a", "4.a", 0, 2, False),
        ("a", "7.a", 2, 3, True),
        ("a", "8.a", 3, 8, False),
        ("b", "4.a", 0, 1, False),
    ]
    assert view_bars(rows[-1:], Manifest("r", ("a", "b"))) == []


def test_what_is_below_is_found(tmp_path):
    for place in ("a/sweep.json", "a/traces/x/manifest.json", "b/table.json", "b/part/x.json"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    found = evidence.find(tmp_path)
    assert found.sweeps == [tmp_path / "a"]
    assert found.traces == [tmp_path / "a" / "traces" / "x"]
    assert found.tables == [tmp_path / "b"]


def test_an_empty_directory_is_a_sentence(tmp_path, capsys):
    with pytest.raises(PipelineError, match="neither a sweep nor a table nor a trace"):
        write_report(tmp_path, tmp_path / "report.html")
    assert main(["report", str(tmp_path / "none"), "-o", str(tmp_path / "r.html")]) == 2
    assert "there is no directory" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path, capsys):
    made_trace(tmp_path / "totem", "totem")
    assert main(["report", str(tmp_path), "-o", "/dev/null/report.html"]) == 2
    assert "choose another place with -o" in capsys.readouterr().err


def test_the_command_says_where_it_is(tmp_path, capsys):
    made_sweep(tmp_path / "sweep", "papers/totem")
    out: Path = tmp_path / "report.html"
    assert main(["report", str(tmp_path / "sweep"), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"report: {out} (open it in a browser)" in said
    assert main(["report", str(tmp_path / "sweep"), "-o", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["claims"][str(Outcome.UNDERIVABLE)] == 1
    assert document["report"] == str(out)
