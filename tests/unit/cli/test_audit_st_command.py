"""`roundelay audit st`: its document, its table, its files, and what it refuses."""

import json

import pytest

from roundelay.cli import main

AUDIT = ["audit", "st", "--jobs", "1"]


def test_the_document_has_the_fields_that_scripts_rely_on(tmp_path, capsys):
    assert main([*AUDIT, "--runs", "24", "--json", "-o", str(tmp_path / "found")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["runs"] == 24
    assert 0 < document["single"] < 24
    assert document["paper"]["violations"] > 0
    assert document["paper"]["single_violations"] <= document["paper"]["violations"]
    assert document["safe"]["violations"] == 0
    assert set(document["paper"]["kinds"]) == {
        "pairwise",
        "cyclic",
        "source",
        "causal",
        "unfinished",
    }
    paths = [path for path in document["scenarios"] if "paper-" in path]
    assert paths
    for path in document["scenarios"]:
        assert main(["sim", "run", path]) == 0
    trace = str(tmp_path / "trace")
    assert main(["sim", "run", paths[0], "--trace", trace]) == 0
    assert main(["draw", trace, "-o", str(tmp_path / "story.svg")]) == 0
    assert (tmp_path / "story.svg").read_text().startswith("<svg")


def test_the_table(capsys):
    assert main([*AUDIT, "--runs", "3", "-n", "3", "--loss", "30"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 runs with a loss, ")
    assert "\npairwise " in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--runs", "0"], "--runs 0 does nothing; give at least 1"),
        (["-n", "1"], "-n 1: give a group of 2 to 9 members"),
        (["--loss", "5", "0"], "--loss 0: give percent, from 1 to 99"),
        (["--loss", "100"], "--loss 100: give percent, from 1 to 99"),
        (["--loss", "nan"], "--loss nan: give percent, from 1 to 99"),
    ],
)
def test_what_makes_no_sense_is_refused(words, sentence, capsys):
    assert main([*AUDIT, *words]) == 2
    assert sentence in capsys.readouterr().err
