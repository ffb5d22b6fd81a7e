"""`roundelay audit`: what it prints, what it writes, and what it refuses."""

import json

import pytest

from roundelay.cli import main


def test_counts_of_one_failure(capsys):
    assert main(["audit", "fc", "-n", "5", "-k", "1", "--json", "--jobs", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["runs"], found["divergent"], found["scenarios"]) == (182, 0, [])
    assert [(case["assumption"], case["runs"]) for case in found["cases"]] == [
        ("A1", 63),
        ("A2", 119),
    ]
    assert found["stuck"] == sum(case["stuck"] for case in found["cases"])


def test_counterexamples_are_written_and_can_be_played(tmp_path, capsys):
    words = ["audit", "fc", "-n", "5", "-k", "1", "--assume", "W1", "--jobs", "1"]
    assert main([*words, "-o", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["divergent"] == 10
    assert len(found["scenarios"]) == 3
    for path in found["scenarios"]:
        assert main(["sim", "run", path]) == 0
        assert "diverged at 1" in capsys.readouterr().out


def test_it_ends_with_what_to_look_at(tmp_path, capsys):
    words = ["audit", "fc", "-n", "5", "-k", "1", "--assume", "W1", "--jobs", "1"]
    assert main(words) == 0
    assert capsys.readouterr().out.endswith("with -o DIR they are written as scenarios\n")
    assert main([*words, "-o", str(tmp_path)]) == 0
    command = capsys.readouterr().out.splitlines()[-1].partition(": roundelay ")[2]
    assert main(command.split()) == 0
    assert "roundelay draw" in capsys.readouterr().err


def test_the_table_has_a_row_for_each_assumption(capsys):
    words = ["audit", "fc", "-n", "5", "-k", "1", "--assume", "A1", "W2", "--rules", "safe"]
    assert main([*words, "--jobs", "1"]) == 0
    rows = [line.split()[:4] for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["assumption", "runs", "divergent", "stuck"],
        ["A1", "63", "0", "0"],
        ["W2", "48", "0", "0"],
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fc", "-n", "5", "-k", "3"], "k=3 members that fail together are too many"),
        (["fc", "-n", "5", "-k", "3", "--rules", "safe"], "k=3 members that fail together"),
        (["fc", "-n", "5", "-k", "-1"], "k=-1; it is a number of nodes"),
        (["fc", "-n", "5", "-k", "1", "--rules", "x"], "there are no rules 'x'"),
        (["fc", "-n", "5", "-k", "1", "--assume", "A3"], "there is no assumption 'A3'"),
        (["fc", "-n", "5", "-k", "0"], "there is no case to run"),
        (["fc", "-n", "5", "-k", "2", "--assume", "W4"], "there is no case to run"),
        (["fc", "-n", "0", "-k", "0"], "-n 0 is no group"),
        (["fc", "-n", "5", "-k", "1", "--jobs", "0"], "--jobs 0 does nothing"),
    ],
)
def test_what_cannot_be_audited(words, sentence, capsys):
    assert main(["audit", *words]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert not said.out


def test_engines_without_an_audit(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["audit", "totem", "-n", "5", "-k", "1"])
    assert exit_.value.code == 2
    assert "invalid choice: 'totem'" in capsys.readouterr().err
