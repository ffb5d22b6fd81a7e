"""Every goal of FC: a story in which it is reached, and one that comes near."""

from pathlib import Path
from typing import NamedTuple

import pytest
from tests.sim.played import of_commands, played

from roundelay.sim.coverage import Evidence, catalogue, goal_name, sentence
from roundelay.sim.engines.fc import goals

SCENARIOS = Path(__file__).parents[1] / "scenarios" / "fc"


class Case(NamedTuple):
    """Commands after the nodes, which begin with 60 ms of peace, in both stories; or the name of a
    scenario."""

    reached: str
    near: str
    nodes: str = "a b c"
    near_nodes: str = ""
    engine: str = "fc"
    near_engine: str = ""


LOAD = "load messages=20 rate=500/s\nrun 60ms"
GONE = "crash b\nrun 100ms"
TWO_ASK = f"lose REGEN times=2\n{GONE}"
PAUSED = "pause b\nrun 60ms\nresume b\nrun 60ms"
BLINK = "pause b\nrun 8ms\nresume b\nrun 60ms"
UNHEARD = "run 10ms\nlose DEC from=b\nsubmit b x\nrun 2ms\ncrash b\nrun 100ms"
"""b has the token after 10 ms."""
UNAWARE = "run 10ms\nlose REGEN to=b\nlose DEC to=b\npause b\nrun 60ms\nresume b\nrun 60ms"
PARTED = """run 12ms
partition a,b,c d,e,f,g
submit a x
run 1ms
submit b y
run 1ms
submit c z
run {}ms
crash e
merge
run 300ms"""
"""a, b and c make three decisions. The others make the token anew after 26 ms, and one decision."""
MASKED = "lose REJOIN\npause c\nrun 50ms\nresume c\nrun 5ms\ncrash b\nrun 60ms"
SAFE = "pause c\nrun 40ms\nsubmit a x safe\nrun 20ms\nresume c\nrun 100ms"
ALONE = "crash b\ncrash c\nrun 400ms"
CROWD = "pause c\nload messages=400 rate=4000/s\nrun 300ms\nresume c\nrun 400ms"
SMALL = "fc batch_packets=3 window_packets=4 buffer_packets=48 silence_s=1"

CASES = {
    # The token
    "null-decision": Case("run 50ms", "submit a x\nrun 50ms", near_nodes="a"),
    "rest-broken-off": Case("submit b x\nrun 50ms", "run 50ms"),
    "several-in-one": Case(
        "submit a x\nsubmit b y\nsubmit c z\nrun 50ms",
        "submit a x\nrun 20ms\nsubmit b y\nrun 20ms\nsubmit c z\nrun 50ms",
    ),
    "decision-sent-again": Case(
        f"lose DEC from=a to=b times=1\n{LOAD}", f"lose DEC from=a to=c times=1\n{LOAD}"
    ),
    "regeneration": Case(GONE, BLINK),
    "two-regenerators": Case(TWO_ASK, GONE),
    "equal-counters": Case(TWO_ASK, GONE),
    "asked-in-vain": Case(TWO_ASK, GONE),
    "stale-epoch-refused": Case(PAUSED, BLINK),
    "old-holder-decides": Case(UNAWARE, UNAWARE.replace("run 60ms\nresume", "run 2ms\nresume")),
    # Chains
    "dropped-suffix": Case(UNHEARD, GONE),
    "ordered-again": Case(UNHEARD, UNHEARD.replace("submit b x\n", "")),
    "shorter-chain-wins": Case(
        PARTED.format(27),
        PARTED.format(20),
        nodes="a b c d e f g",
        engine="fc static",
        near_engine="fc static",
    ),
    "decision-fetched": Case(
        "lose DEC from=a to=c times=1\nrun 60ms", "lose DEC from=a to=b times=1\nrun 60ms"
    ),
    "chain-in-parts": Case(
        "lose DEC to=c\nlose CHAIN to=c\nrun 900ms\nlose none\nrun 100ms",
        "lose DEC to=c\nlose CHAIN to=c\nrun 60ms\nlose none\nrun 100ms",
        engine="fc silence_s=5",
        near_engine="fc silence_s=5",
    ),
    # Requests
    "body-fetched": Case(
        "lose REQ from=a to=c times=1\nsubmit a x\nrun 60ms", "submit a x\nrun 60ms"
    ),
    "request-repeated": Case("crash b\ncrash c\nsubmit a x\nrun 80ms", "submit a x\nrun 80ms"),
    "decision-before-request": Case(
        "lose REQ from=a to=c times=1\nsubmit a x\nrun 60ms", "submit a x\nrun 60ms"
    ),
    "window-closed": Case(
        "submit b x times=9\nrun 60ms",
        "submit b x times=9\nrun 60ms",
        engine="fc window_packets=2",
    ),
    # Members off the ring
    "masked-and-readmitted": Case(PAUSED, GONE),
    "masked-promise": Case(MASKED, MASKED.replace("pause c\n", "")),
    "safe-waited-for-the-masked": Case(SAFE, SAFE.replace(" safe", "")),
    # How an old view ends
    "silence-suspected": Case("crash c\nrun 300ms", "crash c\nrun 80ms"),
    "no-majority": Case(ALONE, "crash c\nrun 400ms"),
    "too-far-behind": Case(CROWD, CROWD, engine=SMALL, near_engine="fc silence_s=1"),
    "minority-ends-a-view": Case(
        "partition a b,c\nsubmit a x\nrun 400ms", "partition a b,c\nsubmit b x\nrun 400ms"
    ),
    "view-ends-in-a-regeneration": Case(ALONE, "crash c\nrun 400ms"),
    "delivered-unconfirmed": Case(
        "partition a b,c\nsubmit a x\nrun 400ms", "submit a x\nrun 50ms\npartition a b,c\nrun 400ms"
    ),
    "passed-over": Case("orphaned_body", "minority_ends_a_view"),
}


def play(nodes: str, engine: str, commands: str) -> Evidence:
    if (SCENARIOS / f"{commands}.txt").exists():
        return played((SCENARIOS / f"{commands}.txt").read_text())
    head = f"engine {engine}\ngroup packet_messages=1\nnetwork lan latency=100us\n"
    return played(of_commands(f"{head}nodes {nodes}\nrun 60ms\n{commands}"))


@pytest.mark.parametrize("goal", CASES)
def test_the_goal_is_reached(goal):
    case = CASES[goal]
    assert catalogue("fc")[goal](play(case.nodes, case.engine, case.reached))


@pytest.mark.parametrize("goal", CASES)
def test_the_goal_is_missed(goal):
    case = CASES[goal]
    run = play(case.near_nodes or case.nodes, case.near_engine or "fc", case.near)
    assert not catalogue("fc")[goal](run)


def test_every_goal_has_its_stories_and_is_one_sentence():
    own = [*goals.ALWAYS, *goals.IN_VIEWS]
    assert set(goals.LITERAL) <= set(own)
    assert set(map(goal_name, own)) == set(CASES)
    assert all(sentence(goal).endswith(".") and "\n" not in sentence(goal) for goal in own)
    assert set(catalogue("fc", static=True)) < set(catalogue("fc"))
