"""No frame ends a node: forged frames against every engine, in views and on static groups.

What is forged here reaches groups in all phases; `roundelay bench fuzz` goes on for as long as one
likes.
"""

import shlex

import pytest

from roundelay.bench.fuzz.arena import Arena, Stopwatch
from roundelay.bench.fuzz.run import FAILURES_MAX, fuzz
from roundelay.cli import main

FRAMES = 7_000
STATIC_FRAMES = 3_000
SLOWEST_MS = 50.0
ENGINES = ("totem", "dtp", "cm", "pinwheel", "fifo", "atop", "allack", "causal", "fc", "st")


@pytest.mark.parametrize("engine", ENGINES)
def test_forged_frames_end_no_node_and_the_group_recovers(engine):
    tally = fuzz(engine, FRAMES, seed=11)
    assert tally.failures == []
    assert tally.frames >= FRAMES
    assert tally.judged >= 2
    assert tally.slowest_ms < SLOWEST_MS, tally.slowest
    # They were not merely dropped for their form, and came at all times.
    assert tally.drops["implausible"] > FRAMES // 100
    assert tally.drops["malformed"] < tally.frames // 2
    assert {"gather", "commit", "recovery", "operational"} == set(tally.phases)
    assert tally.phases["operational"] > FRAMES // 20


@pytest.mark.parametrize("engine", [*ENGINES, "template"])
def test_forged_frames_end_no_node_of_a_static_group(engine):
    tally = fuzz(engine, STATIC_FRAMES, seed=12, static=True)
    assert tally.failures == []
    assert tally.slowest_ms < SLOWEST_MS, tally.slowest


@pytest.mark.parametrize("rules", ["paper", "link"])
def test_forged_frames_end_no_node_under_the_rules_of_the_paper(rules):
    tally = fuzz("fc", STATIC_FRAMES, seed=13, static=True, options={"rules": rules})
    assert tally.failures == []
    assert tally.slowest_ms < SLOWEST_MS, tally.slowest


def test_a_seed_forges_the_same_frames_again():
    runs = [fuzz("totem", 1_500, seed=3) for _ in range(2)]
    assert runs[0].drops == runs[1].drops
    assert runs[0].phases == runs[1].phases


def test_an_input_that_raises_is_found_and_told_how_to_come_to_it_again(monkeypatch):
    def receive(self, origin, message):
        raise KeyError("planted")

    monkeypatch.setattr("roundelay.protocols.totem.TotemEngine.receive", receive)
    tally = fuzz("totem", 300, seed=1, static=True)
    assert not tally.sound
    assert tally.exceptions == FAILURES_MAX, "it gives up where no group lives long"
    failure = tally.failures[0]
    assert "planted" in failure.what
    assert "test_fuzz" in failure.where
    again = "roundelay bench fuzz --engine totem --static --seed 1 --first 0"
    assert failure.again.startswith(again)


def test_the_options_of_an_engine_are_part_of_the_command_that_comes_to_a_failure(monkeypatch):
    def receive(self, origin, message):
        raise KeyError("planted")

    monkeypatch.setattr("roundelay.protocols.fc.literal.LiteralMember.receive", receive)
    words = ["--engine", "fc", "--option", "rules=paper", "--option", "k=1", "--static"]
    options = {"rules": "paper", "k": "1"}
    tally = fuzz("fc", 300, seed=1, static=True, options=options)
    again = tally.failures[0].again
    assert again.startswith(shlex.join(["roundelay", "bench", "fuzz", *words, "--seed", "1"]))


@pytest.mark.parametrize(
    "words",
    [
        "--engine fc --option rules=x",
        "--engine fc --option rules",
        "--engine fc --option rules=link --option k=9",
        "--engine totem --option rules=paper",
        "--engine st --option rules=paper --option medium=channel",
    ],
)
def test_options_that_an_engine_does_not_have_here_are_refused_in_a_sentence(words, capsys):
    assert main(["bench", "fuzz", *words.split()]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_group_that_does_not_recover_is_stuck(monkeypatch):
    arena = Arena("allack", "1", Stopwatch(), static=False)
    assert arena.recover()
    monkeypatch.setattr("roundelay.links.engine.HoldBack.ready", lambda *_: [])
    assert not arena.recover()
