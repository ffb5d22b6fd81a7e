"""`roundelay sim`: what it prints and how it exits."""

import json

import pytest

from roundelay.cli import main

STORY = """# Two nodes and one message.
nodes a b
----
ok

submit a x
stabilize
----
a -> * DATA a:0
a delivers a:0 'x'
b delivers a:0 'x'
"""


@pytest.fixture
def story(tmp_path):
    path = tmp_path / "story.txt"
    path.write_text(STORY)
    return path


def test_a_scenario_that_comes_out_is_printed_with_its_replay_command(story, capsys):
    assert main(["sim", "run", str(story)]) == 0
    out = capsys.readouterr().out
    assert "b delivers a:0 'x'" in out
    assert f"again: roundelay sim run {story} --seed 0" in out


def test_a_scenario_that_does_not_come_out_is_a_diff(story, capsys):
    story.write_text(STORY.replace("b delivers a:0 'x'", "b delivers a:0 'y'"))
    assert main(["sim", "run", str(story)]) == 1
    out, err = capsys.readouterr()
    assert "-b delivers a:0 'y'" in out
    assert "+b delivers a:0 'x'" in out
    assert "--rewrite" in err


def test_rewriting(story, capsys):
    story.write_text(STORY.replace("b delivers a:0 'x'", "b delivers a:0 'y'"))
    assert main(["sim", "run", str(story), "--rewrite"]) == 0
    assert story.read_text() == STORY


def test_json_is_one_document(story, capsys):
    assert main(["sim", "run", str(story), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["same"] is True
    assert len(document["trace_sha256"]) == 64


def test_recording_replaying_and_writing_a_trace(story, tmp_path, capsys):
    record = tmp_path / "run.json"
    assert main(["sim", "run", str(story), "--seed", "4", "--record", str(record)]) == 0
    assert main(["sim", "replay", str(record), "--trace", str(tmp_path / "trace")]) == 0
    assert "the same run again" in capsys.readouterr().out
    assert (tmp_path / "trace" / "manifest.json").exists()
    fields = json.loads(record.read_text())
    record.write_text(json.dumps({**fields, "sha256": "0" * 64}))
    assert main(["sim", "replay", str(record)]) == 1
    assert "a different run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sim", "run", "/nowhere/at/all.txt"], "cannot read /nowhere/at/all.txt"),
        (["sim", "replay", "{story}"], "this is not a recording; make one with"),
        (["sim", "run", "{story}", "--trace", "{story}/x"], ""),
    ],
)
def test_what_cannot_be_read_or_written_is_a_sentence(story, arguments, sentence, capsys):
    assert main([word.format(story=story) for word in arguments]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert "Traceback" not in err


def test_a_broken_scenario_names_its_line(story, capsys):
    story.write_text("nodes a b\nfly\n----\n")
    assert main(["sim", "run", str(story)]) == 2
    assert "line 2: fly: 'fly' is not a command" in capsys.readouterr().err


def test_no_command_prints_help(capsys):
    assert main([]) == 2
    assert "usage: roundelay" in capsys.readouterr().out
