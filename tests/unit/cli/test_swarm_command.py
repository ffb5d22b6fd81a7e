"""`roundelay sim swarm`: its document, its summary, and how it exits."""

import json

import pytest

from roundelay.cli import main

SWARM = ["sim", "swarm", "--protocol", "totem", "--static", "--jobs", "1"]


def test_the_document_has_the_fields_that_scripts_rely_on(capsys):
    assert main([*SWARM, "--seeds", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["seeds"] == 1
    for field in ("violations", "liveness_failures", "outside_envelope", "inconclusive"):
        assert document[field] == 0
    assert document["vacuous"] >= 0
    assert len(document["trace_sha256"]) == 64
    unreached = [goal for goal, told in document["coverage"].items() if not told["seeds"]]
    assert document["uncovered"] == unreached


def test_the_summary_names_what_was_never_reached(capsys):
    assert main([*SWARM, "--seeds", "1", "--first", "3"]) == 0
    out = capsys.readouterr().out
    assert "coverage: " in out
    assert "never reached: " in out
    assert "look at one: roundelay sim swarm --protocol totem --static --first 3 --show" in out


def test_a_long_campaign_fails_for_what_it_never_reached(capsys, monkeypatch):
    monkeypatch.setattr("roundelay.sim.swarm.SEEDS_TO_COVER", 1)
    assert main([*SWARM, "--seeds", "1", "--first", "3", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["uncovered"]
    assert not document["failed"]


def test_a_seed_that_fails_is_drawn(capsys, tmp_path):
    swarm = ["sim", "swarm", "--protocol", "template", "--first", "1", "--seeds", "1"]
    assert main([*swarm, "-o", str(tmp_path / "pictures")]) == 1
    picture = tmp_path / "pictures" / "template-1.svg"
    assert capsys.readouterr().out.endswith(f"picture: {picture} (open it in a browser)\n")
    assert "violated: " in picture.read_text()


def test_a_picture_that_cannot_be_written_does_not_hide_the_failure(capsys, tmp_path):
    (tmp_path / "file").touch()
    swarm = ["sim", "swarm", "--protocol", "template", "--first", "1", "--seeds", "1"]
    assert main([*swarm, "-o", str(tmp_path / "file")]) == 1
    out = capsys.readouterr().out
    assert "again: roundelay sim swarm" in out
    assert "choose a place with -o" in out


@pytest.mark.parametrize("rules", ["paper", "link"])
def test_rules_that_an_engine_does_not_have_are_refused(rules, capsys):
    assert main([*SWARM, "--seeds", "1", "--rules", rules]) == 2
    assert f"totem has safe rules only; leave out --rules {rules}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["fc", "--rules", "paper"],
            "fc with rules=paper runs on static groups only; add --static",
        ),
        (["fc", "--rules", "link"], "fc with rules=link runs on static groups only; add --static"),
        (
            ["st", "--static", "--rules", "paper"],
            "st with rules=paper needs a network that is one channel, and seeds draw other",
        ),
        (["dtp", "--rules", "link"], "dtp: there are no rules 'link'; choose one of safe, paper"),
    ],
)
def test_rules_that_cannot_end_a_view_or_that_nobody_has_are_refused(words, sentence, capsys):
    assert main(["sim", "swarm", "--seeds", "1", "--protocol", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_seed_can_be_read(capsys):
    assert main([*SWARM, "--first", "7", "--show"]) == 0
    assert "\nengine totem static" in capsys.readouterr().out


def test_an_intruder_attacks_a_sealed_group(capsys):
    assert main([*SWARM, "--intruder", "--show", "--first", "3"]) == 0
    shown = capsys.readouterr().out
    assert "\nseal" in shown
    assert "intruder rate=" in shown
    assert main([*SWARM, "--intruder", "--seeds", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["intruder"] is True
    assert "replay-refused" in document["coverage"]


def test_an_intruder_goes_with_the_safe_rules(capsys):
    fc = ["sim", "swarm", "--protocol", "fc", "--static", "--rules", "link", "--intruder"]
    assert main(fc) == 2
    assert "--intruder goes with the safe rules" in capsys.readouterr().err
