"""`roundelay check`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from roundelay import cli
from roundelay.trace import mini
from roundelay.trace.writer import Writer

FINE = "p!a q?a p.a=1 q.a=1 q!b p?b q.b=2 p.b=2 end{p,q}"
WRONG = "p!a q!b p?b q?a p.a p.b q.b q.a end{p,q}"


def written(directory: Path, text: str, **fields: str) -> Path:
    """A trace on disk, in the format that needs nothing."""
    manifest, rows = mini.parse(text, "story")
    path = directory / "trace"
    with Writer(path, replace(manifest, **fields), format="jsonl") as writer:  # type: ignore[arg-type]
        for row in rows:
            writer.append(row)
    return path


def test_a_clean_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = written(tmp_path, FINE, protocol="template")
    assert cli.main(["check", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("story, held to template safe static: ")
    assert "violated" not in out
    assert "roundelay draw" not in out
    assert not err


def test_a_violation(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = written(tmp_path, WRONG, protocol="template")
    assert cli.main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    assert "O5   violated" in out
    assert "witness of O5" in out
    assert "delivers a" in out
    picture = path.with_name(f"{path.stem}-witness.svg")
    assert out.endswith(f"picture: {picture} (open it in a browser)\n")
    assert "O5: " in picture.read_text()


def test_where_no_picture_can_be_written_its_command_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = written(tmp_path, WRONG, protocol="template")
    path.with_name(f"{path.stem}-witness.svg").mkdir()
    assert cli.main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    assert out.endswith(f"see it: roundelay draw {path} --witness -o witness.svg\n")


def test_a_line(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["check", "--trace", "p!a q!a", "--profile", "totem"]) == 1
    out = capsys.readouterr().out
    assert "q sends a, which p has sent" in out
    assert "roundelay draw" not in out
    assert cli.main(["check", "--trace", FINE, "--properties", "O5, D2"]) == 0


def test_a_trace_of_a_log_is_held_to_what_logs_promise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    text = "p+V1{p}!{p}* p>0 p&V1=0{p} p=a@0 p|1"
    assert cli.main(["check", "--trace", text, "--profile", "totem"]) == 1
    said = capsys.readouterr().out
    assert "held to totem safe views log: " in said
    assert "J5   violated" in said
    assert "p knows 1 entry to be committed in R1" in said
    path = written(tmp_path, text, protocol="totem")
    assert cli.main(["check", str(path)]) == 1
    assert "J5   violated" in capsys.readouterr().out
    path = written(tmp_path, text, protocol="totem", fsync="")
    assert cli.main(["check", str(path)]) == 0


def test_all(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["check", "--trace", FINE, "--profile", "totem", "--all"]) == 0
    out = capsys.readouterr().out
    assert "S3   vacuous" in out


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = written(tmp_path, WRONG, protocol="template")
    assert cli.main(["check", str(path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["run"] == "story"
    assert document["profile"] == "template safe static"
    assert document["ok"] is False
    assert document["problems"] == []
    verdicts = {verdict["property"]: verdict for verdict in document["verdicts"]}
    assert verdicts["O5"]["verdict"] == "violated"
    assert verdicts["O5"]["standing"] == "promised"
    assert verdicts["O5"]["title"]
    assert verdicts["O5"]["reason"]
    assert verdicts["O5"]["witness"][0]["kind"] == "deliver"
    assert verdicts["D1"] == {
        "property": "D1",
        "title": "What is delivered was sent before",
        "verdict": "ok",
        "instances": 4,
        "reason": "",
        "standing": "promised",
        "witness": [],
    }


def test_a_trace_without_its_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = written(tmp_path, WRONG)
    for file in path.glob("*manifest.json"):
        file.unlink()
    assert cli.main(["check", str(path), "--profile", "template"]) == 1
    out = capsys.readouterr().out
    assert "problem: there is no manifest" in out
    assert "O5   violated" in out
    assert " ok " not in out


def test_a_damaged_trace_shows_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = written(tmp_path, WRONG, protocol="template")
    (data,) = path.glob("*.jsonl")
    lines = data.read_text().splitlines(keepends=True)
    data.write_text("".join(lines[:3] + lines[4:]))
    assert cli.main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    assert "problem: " in out
    assert "O5   violated" not in out
    assert "inconclusive" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the PATH of a trace or a text with --trace, one of the two"),
        (["x", "--trace", "p!a"], "one of the two"),
        (["/nowhere/at/all"], "there is no trace at"),
        (["--trace", "P?!"], "is not an event of the mini-language"),
        (["--trace", "  "], "the text holds no event"),
        (["--trace", "p!a"], "does not say which protocol wrote it; name a profile with --profile"),
        (["--trace", "p!a", "--profile", "raft"], "there is no protocol 'raft'; choose one of"),
        (["--trace", "p!a", "--properties", "Z9"], "there is no property 'Z9'; choose from T1"),
        (["--trace", "p!a", "--properties", ","], "--properties names none"),
        (["--trace", "p!a", "--properties", "D1", "--profile", "fc"], "one of the two"),
    ],
)
def test_errors_are_sentences(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["check", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("roundelay check: ")
    assert message in err
    assert "Traceback" not in err
