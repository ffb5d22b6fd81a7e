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

import pyarrow as pa
import pytest
from tests.report.made import made_sweep, made_trace

from roundelay.check import check
from roundelay.check.verdict import Validity
from roundelay.cli import main
from roundelay.experiments.claims import (
    Accepted,
    Outcome,
    above,
    at_least,
    at_most,
    below,
    between,
    near,
)
from roundelay.experiments.plan import papers
from roundelay.experiments.registry import load_paper
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.sweep.store import read_sweep
from roundelay.report import evidence, write_report
from roundelay.report.fields import in_words
from roundelay.report.measures import measures_table
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
    assert "96 of 102 cells" in page
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
    (timeline,) = plots_of(page)
    assert timeline["kind"] == "timeline"
    assert timeline["rows"] == ["a", "b", "c", "d", "e"]
    # Each fault is marked, told of, and has a diagram; the violation has one too.
    marks = timeline["faults"]
    assert isinstance(marks, list)
    told = [mark["told"] for mark in marks]
    assert [word for word in told if word.startswith(("crash", "restart", "partition"))] == [
        *("crash c", "restart c", "partition {a,b} {c,d,e}")
    ]
    assert "crash of c" in page
    diagrams = page.count("<summary>Diagram of fault")
    assert diagrams >= len(marks)
    assert page.count("data:image/svg+xml;base64,") == diagrams + 1


def test_the_title_names_the_run_and_what_is_fine_raises_no_alarm(tmp_path):
    made_trace(tmp_path / "totem", "totem")
    write_report(tmp_path, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert re.search(r"<title>Run [^<]+</title>", page)
    assert re.search(r'<li class="none"><b>0</b> promises violated</li>', page)
    assert "in the simulator, seed" in page


def test_measures_say_what_they_are():
    table = pa.Table.from_pylist(
        [
            {"run": "r", "measure": "bytes", "unit": "per byte", "count": 4, "mean": 9.5},
            {"run": "r", "measure": "own", "unit": "ms", "count": 4, "mean": 1.5},
            {"run": "r", "measure": "of my own", "unit": "ms", "count": 4, "mean": 1.5},
        ]
    )
    told = measures_table(table)
    assert told.index("delivery to the sender") < told.index("bytes a byte")
    assert "how long a sender waits" in told
    assert "<strong>of my own</strong>" in told
    many = pa.concat_tables([table] * 20)
    assert measures_table(many).count("how long a sender waits") == 1


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


def test_the_plot_of_all_measures_begins_with_curves(tmp_path):
    """In words, and no more curves than can be told apart."""
    for name in ("papers/totem", "papers/dtp"):
        home = tmp_path / name.replace("/", "-")
        made_sweep(home, name)
        write_report(home, home / "report.html")
    totem, dtp = ((tmp_path / f"papers-{n}" / "report.html").read_text() for n in ("totem", "dtp"))
    (plot,) = plots_of(totem)
    assert (plot["kind"], plot["x"]) == ("explorer", "rate_per_s")
    assert '<option value="latency_ms" selected="">latency (ms)</option>' in totem
    assert '<option value="workload" selected="">workload</option>' in totem
    assert '<option value="protocol" selected="">protocol</option>' in dtp
    assert totem.index("What was measured") < totem.index("✓ comes out")
    assert dtp.index("Figure 2") < dtp.index("What was measured")


def test_claims_cite_their_source_and_say_what_is_accepted(tmp_path):
    made_sweep(tmp_path, "papers/totem")
    write_report(tmp_path, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "The Totem Single-Ring Ordering" in page
    assert "<dt>[Totem95], section 9</dt><dd>about 0.5</dd>" in page
    assert "<dd>0.375 to 0.625 (within a quarter of 0.5)</dd>" in page
    assert "<dd>more than 800</dd>" in page
    sweep = read_sweep(tmp_path)
    assert sweep is not None
    claims = load_paper("totem").findings_of(sweep.results).claims
    judged = [claim for claim in claims if claim.accepted is not None]
    assert page.count('class="gauge ') == len(judged) == len(claims) - 1


@pytest.mark.parametrize(
    ("accepted", "told", "inside", "outside"),
    [
        (near(0.5), "0.375 to 0.625 (within a quarter of 0.5)", [0.375, 0.602], [0.37, 0.661]),
        (near(1, 0.0), "exactly 1", [1], [0.999, 1.001]),
        (above(800), "more than 800", [801], [800]),
        (at_least(50), "at least 50", [50], [49]),
        (below(10), "less than 10", [9], [10]),
        (at_most(1.25), "at most 1.25", [1.25], [1.26]),
        (between(0.65, 0.85), "0.65 to 0.85", [0.65, 0.85], [0.64, 0.86]),
        (Accepted(0, 4, open=True), "more than 0, at most 4", [1, 4], [0, 5]),
    ],
)
def test_what_is_accepted_is_told_as_it_is_judged(accepted, told, inside, outside):
    assert str(accepted) == told
    assert all(accepted(value) for value in inside)
    assert not any(accepted(value) for value in outside)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("gap_ms", "mean time between two messages of a member (ms)"),
        ("measured rate_per_s", "messages a second, measured"),
        ("pause_s", "pause (s)"),
        ("token_bytes", "token (bytes)"),
        ("two_words", "two words"),
    ],
)
def test_fields_have_words(field, words):
    assert in_words(field) == words
