"""`ingest`, `check --master` and `measure`, in the session of these tests."""

import json
from contextlib import contextmanager

import pytest

from roundelay import cli
from roundelay.pipeline import session
from roundelay.pipeline.examine import examine

from .conftest import write_text

pytestmark = pytest.mark.slow

FINE = "p!a q?a p.a=1 q.a=1 q!b p?b q.b=2 p.b=2 end{p,q}"
WRONG = "p!a q!b p?b q?a p.a p.b q.b q.a end{p,q}"


@pytest.fixture(autouse=True)
def shared(spark, monkeypatch):
    @contextmanager
    def open_session(*_, **__):
        yield spark

    monkeypatch.setattr(session, "open_session", open_session)
    monkeypatch.setattr("roundelay.pipeline.examine.open_session", open_session)


@pytest.fixture
def traces(tmp_path):
    write_text(tmp_path / "in" / "fine", FINE, "fine", protocol="template")
    write_text(tmp_path / "in" / "wrong", WRONG, "wrong", protocol="template")
    return tmp_path / "in"


def test_the_way_from_traces_to_verdicts_and_measures(traces, tmp_path, capsys):
    table = str(tmp_path / "table")
    assert cli.main(["ingest", str(traces), "-o", table]) == 0
    assert "18 rows of 2 runs added; 2 runs in" in capsys.readouterr().out
    assert cli.main(["ingest", str(traces), "-o", table]) == 0
    assert "2 files are in the table already" in capsys.readouterr().out
    assert cli.main(["check", table, "--master", "local[2]"]) == 1
    out = capsys.readouterr().out
    assert "2 runs, by their gravest verdict: 1 vacuous, 1 violated" in out
    assert "wrong, held to template safe static" in out
    assert "p delivers a before b, q delivers b before a" in out
    assert "picture: " in out
    assert cli.main(["check", table, "--master", "local[2]", "--json", "--properties", "D2"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is True
    assert [one["run"] for one in document["runs"]] == ["fine", "wrong"]
    assert document["runs"][0]["verdicts"][0]["instances"] == 4
    assert cli.main(["measure", table]) == 0
    assert "delivery" in capsys.readouterr().out


def test_a_trace_without_a_table_is_checked_too(traces, capsys):
    assert cli.main(["check", str(traces / "fine"), "--master", "local[2]"]) == 0
    assert "fine, held to template safe static" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ingest", "/nowhere", "-o", "{}"], "there is no trace at /nowhere"),
        (["measure", "{}"], "there is no table in"),
        (["check", "{}/x", "--master", "local[2]"], "there is no trace at"),
        (["check", "--trace", "p!a", "--master", "local[2]"], "give the PATH of a table"),
    ],
)
def test_errors_are_sentences(words, sentence, tmp_path, capsys):
    assert cli.main([word.format(tmp_path) for word in words]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert "Traceback" not in err


def test_all_of_it_for_a_few_traces(traces, tmp_path):
    done = examine([traces], tmp_path / "table")
    assert not done.ok
    assert [one.report.ok for one in done.reports] == [True, False]
    assert {line.run for line in done.lines} == {"fine", "wrong"}
    assert (tmp_path / "table" / "verdicts.parquet").exists()
    assert (tmp_path / "table" / "measures.csv").exists()
