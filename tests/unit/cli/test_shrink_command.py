"""`roundelay sim shrink`: what it prints, what it writes and how it exits."""

import json

import pytest

from roundelay.cli import main

DISORDER = """# Nobody orders anything.
engine template static
network lan jitter=2ms
nodes a b c
load messages=20 rate=200/s
run 200ms
----
"""


@pytest.fixture
def failing(tmp_path):
    path = tmp_path / "failing.txt"
    path.write_text(DISORDER)
    return path


def test_a_file_is_shrunk_to_a_file_that_comes_out_as_it_says(failing, tmp_path, capsys):
    small, picture = tmp_path / "small.txt", tmp_path / "small.svg"
    arguments = ["--seed", "3", "-o", str(small), "--draw", str(picture), "--budget", "40"]
    assert main(["sim", "shrink", str(failing), *arguments]) == 0
    out = capsys.readouterr().out
    assert "violated: " in out
    assert f"try: roundelay sim run {small}" in out
    text = small.read_text()
    assert text.startswith(f"# {out.splitlines()[0]}")
    assert f"# Found by: roundelay sim run {failing} --seed 3" in text
    assert picture.read_text().startswith("<svg")
    assert main(["sim", "run", str(small)]) == 0
    assert out.splitlines()[0] in capsys.readouterr().out


def test_a_recording_is_shrunk_too(failing, tmp_path, capsys):
    record, small = tmp_path / "run.json", tmp_path / "small.txt"
    assert main(["sim", "run", str(failing), "--record", str(record)]) == 0
    capsys.readouterr()
    assert main(["sim", "shrink", str(record), "-o", str(small), "--budget", "30", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["runs"] <= 30
    assert document["commands"] < 15
    assert document["failure"].startswith(document["property"])
    assert document["found"] == f"roundelay sim replay {record}"
    assert small.exists()


def test_a_seed_of_the_swarm_is_shrunk_too(tmp_path, capsys):
    small = tmp_path / "small.txt"
    swarm = ["--protocol", "template", "--seed", "1", "--budget", "20"]
    assert main(["sim", "shrink", *swarm, "-o", str(small)]) == 0
    command = "roundelay sim swarm --protocol template --static --first 1 --seeds 1"
    assert f"# Found by: {command}" in small.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name a FILE, or a seed of the swarm"),
        (["{file}", "--protocol", "totem"], "name a FILE, or a seed of the swarm"),
        (["--protocol", "totem"], "say which seed of the swarm failed"),
        (
            ["--protocol", "fc", "--rules", "link", "--seed", "1"],
            "static groups only; add --static",
        ),
        (["{file}", "--budget", "0"], "--budget must be 1 or more"),
        (["/nowhere/at/all.txt"], "cannot read /nowhere/at/all.txt"),
        (["{fine}"], "the run does not fail, so there is nothing to shrink; it was: roundelay"),
        (["{broken}"], "line 1: fly: 'fly' is not a command"),
        (["{file}", "--draw", "/nowhere/at/all.svg"], "cannot write /nowhere/at/all.svg"),
    ],
)
def test_what_cannot_be_shrunk_is_a_sentence(failing, tmp_path, arguments, sentence, capsys):
    fine, broken = tmp_path / "fine.txt", tmp_path / "broken.txt"
    fine.write_text("network lan\nnodes a b\nrun 1ms\n----\n")
    broken.write_text("fly\nnodes a\n----\n")
    words = [word.format(file=failing, fine=fine, broken=broken) for word in arguments]
    assert main(["sim", "shrink", *words, "-o", str(tmp_path / "small.txt")]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert "Traceback" not in err
