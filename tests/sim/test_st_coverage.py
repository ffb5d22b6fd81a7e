"""Every goal of ST: a story in which it is reached, and one that comes near."""

from typing import NamedTuple

import pytest
from tests.sim.played import of_commands, played

from roundelay.sim.coverage import Evidence, catalogue, goal_name, sentence
from roundelay.sim.engines.st import goals


class Case(NamedTuple):
    """Commands after the nodes, which begin with 60 ms of peace, in both stories."""

    reached: str
    near: str
    engine: str = "st"
    near_engine: str = ""
    network: str = "lan latency=100us"
    near_network: str = ""


LOST = "lose DT to=c times=1\nsubmit b x\nrun 60ms"
LOST_AND_FOUND = "lose DT to=c times=1\nsubmit b x\nsubmit b y\nrun 30ms"
HEARD = "submit b x\nrun 60ms"
TWO = "submit a x\nsubmit a y"
UNAWARE = """
{}
lose DT to=c times=1
submit a x
run 300us
submit a y
run 1ms
submit b z
run 30ms
"""
CROWD = "slow b 1ms\nsubmit a x times=12\nsubmit c y times=12\nrun 100ms"

CASES = {
    "found-by-a-packet": Case(LOST_AND_FOUND, LOST),
    "found-by-a-word": Case(LOST, LOST_AND_FOUND),
    "suspected-by-an-acknowledgment": Case(
        "lose DT to=c times=1\nsubmit b x to=a,b\nrun 30ms", "submit b x to=a,b\nrun 30ms"
    ),
    "missed-by-all": Case(
        "lose DT to=b,c times=2\nsubmit a x to=b,c\nrun 60ms",
        "lose DT to=b times=1\nsubmit a x to=b,c\nrun 60ms",
    ),
    "own-packet-missed": Case("lose DT to=b times=1\nsubmit b x\nrun 60ms", LOST),
    "foreign-packet-missed": Case("lose DT to=c times=1\nsubmit b x to=a,b\nrun 60ms", LOST),
    "overrun": Case(
        "submit a x times=20\nrun 60ms",
        "submit a x times=20\nrun 60ms",
        engine="st medium=channel",
        near_engine="st medium=channel",
        network="channel buffer=4 drain=200us",
        near_network="channel",
    ),
    "held-by-the-cut": Case(
        "lose RR from=c to=c\nsubmit b x\nrun 5ms\nlose none\nrun 60ms",
        HEARD,
        engine="st medium=channel",
        near_engine="st medium=channel",
        network="channel",
        near_network="channel",
    ),
    "window-closed": Case(
        "submit b x times=9\nrun 60ms", "submit b x times=9\nrun 60ms", engine="st window_packets=2"
    ),
    "no-room": Case(CROWD, CROWD, engine="st buffer_packets=2 ack_packets=1"),
    "packet-fetched": Case(LOST, HEARD),
    "fetched-from-another": Case(f"lose RET from=b times=1\n{LOST}", LOST),
    "list-from-another": Case(f"lose PAK from=b to=c times=1\n{LOST}", LOST),
    "list-in-parts": Case(
        "lose DT to=c times=1\nsubmit b x times=30\nrun 60ms",
        "lose DT to=c times=1\nsubmit b x times=3\nrun 60ms",
    ),
    "went-on-sending": Case(UNAWARE.format("lose RST to=b\nlose PAK to=b"), UNAWARE.format("")),
    "stopped-before-it-came": Case(UNAWARE.format("lose RST to=b\nlose PAK to=b"), LOST),
    "epoch-begun-by-another": Case(
        "lose DONE to=c\nlose DT to=b times=1\nsubmit a x\nrun 60ms",
        "lose DT to=b times=1\nsubmit a x\nrun 60ms",
    ),
    "told-by-one-ahead": Case(
        f"lose DONE to=c times=2\nlose RR to=c\nlose DT to=b times=1\n{TWO}\nrun 60ms",
        f"lose DT to=b times=1\n{TWO}\nrun 60ms",
    ),
    "one-after-the-other": Case(
        f"lose DT to=b times=1\n{TWO}\nrun 900us\nlose DT to=b times=1\n{TWO}\nrun 60ms",
        f"lose DT to=b times=1\n{TWO}\nrun 60ms\nlose DT to=b times=1\n{TWO}\nrun 60ms",
    ),
    # In views
    "ends-in-a-recovery": Case(
        "lose PAK to=c\nlose DT to=c times=1\nsubmit b x\nsubmit b y\nrun 5ms\ncrash b\nrun 400ms",
        f"{LOST}\ncrash b\nrun 400ms",
    ),
    "epochs-apart": Case(
        "lose DONE to=c\nlose DT to=c\nlose RR to=c\nlose DT to=b times=1\n"
        f"{TWO}\nrun 3ms\nsubmit a z\nrun 500us\ncrash b\nrestart b\nlose none\nrun 100ms",
        f"lose DT to=b times=1\n{TWO}\nrun 3ms\ncrash b\nrestart b\nrun 100ms",
    ),
    "reflector-gone": Case("crash a\nrun 400ms", "crash b\nrun 400ms"),
    "silence": Case("crash b\nrun 400ms", "run 400ms"),
}


def play(engine: str, network: str, commands: str) -> Evidence:
    text = f"engine {engine}\ngroup packet_messages=1\nnetwork {network}\nnodes a b c\nrun 60ms\n"
    return played(of_commands(f"{text}{commands}"))


@pytest.mark.parametrize("goal", CASES)
def test_the_goal_is_reached(goal):
    case = CASES[goal]
    assert catalogue("st")[goal](play(case.engine, case.network, case.reached))


@pytest.mark.parametrize("goal", CASES)
def test_the_goal_is_missed(goal):
    case = CASES[goal]
    network = case.near_network or case.network
    assert not catalogue("st")[goal](play(case.near_engine or "st", network, case.near))


def test_every_goal_has_its_stories_and_is_one_sentence():
    own = [*goals.ALWAYS, *goals.IN_VIEWS]
    assert set(map(goal_name, own)) == set(CASES)
    assert all(sentence(goal).endswith(".") and "\n" not in sentence(goal) for goal in own)
    assert set(catalogue("st", static=True)) < set(catalogue("st"))
