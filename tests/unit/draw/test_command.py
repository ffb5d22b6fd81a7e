"""`roundelay draw`."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from roundelay.check.verdict import Validity, Verdict
from roundelay.cli import main
from roundelay.core.effects import Kind
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import WORLD, Row
from roundelay.trace.writer import Writer

from . import stories


@dataclass
class Report:
    verdicts: list[Verdict]


Checker = Callable[..., None]


@pytest.fixture
def checker(monkeypatch: pytest.MonkeyPatch) -> Checker:
    """A checker that finds what the test wants it to."""

    def install(*verdicts: Verdict) -> None:
        def check(rows: object, manifest: object, *, profile: object, problems: object) -> Report:
            names = profile if isinstance(profile, list) else [v.property for v in verdicts]
            if unknown := [name for name in names if name not in [v.property for v in verdicts]]:
                raise ValueError(f"there is no property {unknown[0]!r}")
            return Report([verdict for verdict in verdicts if verdict.property in names])

        monkeypatch.setattr("roundelay.check.check", check, raising=False)

    return install


def test_a_written_trace_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.svg"
    assert main(["draw", "--trace", stories.TOTEM, "-o", str(file), "--title", "Totem 7.3"]) == 0
    assert ET.parse(file).getroot()[0].text == "Totem 7.3"
    out = capsys.readouterr().out
    assert "all events drawn" in out
    assert f"Open it in a browser: {file.as_uri()}" in out


def test_a_file_is_drawn_beside_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "run.txt"
    source.write_text(stories.DISAGREEMENT)
    assert main(["draw", str(source)]) == 0
    assert ET.parse(tmp_path / "run.svg").getroot()[0].text == "run.txt"
    assert "run.svg" in capsys.readouterr().out


def test_a_directory_is_drawn_beside_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest, rows = stories.partition()
    directory = tmp_path / "run.7"
    with Writer(directory, manifest, format="jsonl") as writer:
        for row in rows:
            writer.append(row)
    monkeypatch.chdir(directory)
    assert main(["draw", "."]) == 0
    assert ET.parse(tmp_path / "run.7.svg").getroot()[0].text == "run.7"


def test_what_is_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.svg"
    assert main(["draw", "--trace", stories.TOTEM, "-o", str(file), "--limit", "5"]) == 0
    assert "Shows 5 of 27 events (the first 5)." in capsys.readouterr().out
    assert "Shows 5 of 27 events" in file.read_text()


@pytest.mark.parametrize(
    ("rows", "flag"),
    [
        (
            [Row(Kind.INSTALL, 0, 0, 0, t_ns=1, c_seq=7, c_rep=0, c_kind=0, members=(0,))],
            "--around view",
        ),
        ([Row(Kind.FAULT, WORLD, 0, 0, t_ns=1, tag="start", x="a")], "--from and --to"),
        ([Row(Kind.FAULT, WORLD, 0, 0, t_ns=1, tag="partition")], "--around fault"),
    ],
)
def test_a_long_run_says_how_to_see_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: list[Row], flag: str
) -> None:
    later = [Row(Kind.EXPIRE, 0, 0, n, t_ns=n, layer="net", tag="t") for n in range(2, 9)]
    with Writer(tmp_path / "run", Manifest(run="r", nodes=("a",)), format="jsonl") as writer:
        for row in [*rows, *later]:
            writer.append(row)
    assert main(["draw", str(tmp_path / "run"), "--limit", "5"]) == 0
    said = capsys.readouterr().out
    assert f"(the first 5). To see what happened later, use {flag}." in said
    if "around" in flag:
        assert main(["draw", str(tmp_path / "run"), *flag.split(), "--limit", "5"]) == 0
        assert "To see" not in capsys.readouterr().out


def test_the_window_is_taken_from_the_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.svg"
    times = ["--from", "5us", "--to", "0.02ms"]
    more = ["--nodes", "p, q", "--hide", "receive"]
    assert main(["draw", "--trace", stories.TOTEM, "-o", str(file), *times, *more]) == 0
    out = capsys.readouterr().out
    assert "(only nodes p, q; without receive; from step 5 on; up to step 20)" in out


def test_the_first_violation_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], checker: Checker
) -> None:
    manifest, rows = stories.partition()
    told = tuple(row for row in rows if row.kind == Kind.DELIVER and row.proc in (0, 1))
    checker(
        Verdict("T1", Validity.OK, 3),
        Verdict("O5", Validity.VIOLATED, 2, told, "ann and bob disagree."),
        Verdict("O6", Validity.VIOLATED, 2, told[:1], "another story."),
    )
    with Writer(tmp_path / "run", manifest, format="jsonl") as writer:
        for row in rows:
            writer.append(row)
    file = tmp_path / "x.svg"
    arguments = ["draw", str(tmp_path / "run"), "-o", str(file)]
    assert main([*arguments, "--witness"]) == 0
    assert "O5 violated: ann and bob disagree." in capsys.readouterr().out
    assert file.read_text().count('class="halo"') == len(told) + 1  # And the legend's.
    assert main([*arguments, "--property", "O6", "--around-witness", "2"]) == 0
    assert "O6 violated: another story." in capsys.readouterr().out
    assert "Shows 5 of 54 events" in file.read_text()


def test_the_real_checker_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.svg"
    assert main(["draw", "--trace", "p!a pX p.a", "--property", "T2", "-o", str(file)]) == 0
    assert "T2 violated: p " in capsys.readouterr().out
    assert "T2 violated: p " in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--witness"], "does not say which protocol wrote it; name one property with --property"),
        (["--property", "T1"], "T1 is ok here, so there is no witness"),
        (["--property", "Z9"], "there is no property 'Z9'"),
        (["--from", "soon"], "--from: 'soon' is not a time; write it like"),
        (["--nodes", "p,z"], "the trace has no node 'z'; its nodes are p, q, r"),
        (["--limit", "0"], "--limit must be 1 or more"),
        (["-o", "/no/such/place/x.svg"], "cannot write /no/such/place/x.svg"),
        (["also.jsonl"], "give the PATH of a trace or a text with --trace"),
    ],
)
def test_errors_are_one_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    checker: Checker,
) -> None:
    monkeypatch.chdir(tmp_path)
    checker(Verdict("T1", Validity.OK, 3))
    assert main(["draw", "--trace", stories.TOTEM, *arguments]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


def test_a_trace_that_cannot_be_read_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["draw", str(tmp_path / "none.jsonl")]) == 2
    assert main(["draw", "--trace", "p!!"]) == 2
    assert main(["draw"]) == 2
    assert "Traceback" not in capsys.readouterr().err
