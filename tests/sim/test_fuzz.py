"""No frame ends a node: forged frames against every engine, in views and on static groups.

What is forged here reaches groups in all phases; `roundelay bench fuzz` goes on for as long as one
likes.
"""

import pytest

from roundelay.bench.fuzz.arena import Arena, Stopwatch
from roundelay.bench.fuzz.run import FAILURES_MAX, fuzz
from roundelay.group.engines import engine_factory

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
def test_forged_frames_end_no_node_under_the_rules_of_the_paper(rules, monkeypatch):
    made = []

    def factory(name):
        made.append(name)
        return engine_factory(name, {"rules": rules})

    monkeypatch.setattr("roundelay.bench.fuzz.arena.engine_factory", factory)
    tally = fuzz("fc", STATIC_FRAMES, seed=13, static=True)
    assert made
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
    assert failure.again.startswith("roundelay bench fuzz --engine totem --seed 1 --first 0")


def test_a_group_that_does_not_recover_is_stuck(monkeypatch):
    arena = Arena("allack", "1", Stopwatch(), static=False)
    assert arena.recover()
    monkeypatch.setattr("roundelay.links.engine.HoldBack.ready", lambda *_: [])
    assert not arena.recover()
