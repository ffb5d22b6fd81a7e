"""Goals of sealed traffic: each is reached in one story and missed in one that is much like it."""

from dataclasses import dataclass

import pytest
from tests.sim.played import of_commands, played

from roundelay.sim.coverage import Evidence, catalogue, goal_name, sealed, sentence


@dataclass(frozen=True, slots=True)
class Case:
    reached: str
    near: str
    near_nodes: str = "a b c"


BACK = "crash b\nrun 400ms\nrestart b\nrun 50ms\n"


def attack(kinds: str) -> str:
    return f"intruder rate=300/s kinds={kinds}\nrun 300ms"


CASES = {
    "replay-refused": Case("replay all", attack("plain,flood,cut")),
    "old-refused": Case("run 6s\nreplay all", "run 4s\nreplay all"),
    "flipped-refused": Case(attack("flip"), attack("forge")),
    "forged-refused": Case(attack("forge"), attack("flip")),
    "plain-refused": Case(attack("plain"), attack("forge")),
    "other-key-refused": Case(attack("forge"), attack("plain,replay")),
    "damaged-under-a-seal": Case("faults corrupt=20%\nrun 200ms", attack("flip")),
    "unproven-refused": Case("run 1ms", "run 1s", near_nodes="a"),
    "flooded": Case(attack("flood"), attack("forge,flip,cut")),
    "proof-renewed": Case("run 8s", "run 5s"),
    "challenge-repeated": Case(
        "crash b\nrun 400ms\nlose PROOF times=8\nrestart b\nrun 100ms", f"{BACK}run 8s"
    ),
    "believed-late": Case("faults spike=5% spike-by=3s\nrun 4s", "faults spike=5%\nrun 4s"),
    "key-changed": Case("key rotate\nkey reload all\nrun 3s", "key rotate\nkey reload a\nrun 3s"),
    "believed-after-a-restart": Case(BACK, "crash b\nrun 450ms"),
    "dead-refused": Case(f"{BACK}replay all from=b life=0", "crash b\nreplay all\nrestart b"),
    "replayed-after-a-restart": Case(f"{BACK}replay b", f"{BACK}replay a"),
    "own-life-refused": Case(BACK + attack("dead"), "crash b\n" + attack("dead")),
}


def play(nodes: str, commands: str) -> Evidence:
    head = f"engine totem\nseal\nnetwork lan latency=100us\nnodes {nodes}\nrun 60ms"
    return played(of_commands(f"{head}\n{commands}"))


@pytest.mark.parametrize("goal", CASES)
def test_the_goal_is_reached(goal):
    assert catalogue("totem", intruder=True)[goal](play("a b c", CASES[goal].reached))


@pytest.mark.parametrize("goal", CASES)
def test_the_goal_is_missed(goal):
    case = CASES[goal]
    assert not catalogue("totem", intruder=True)[goal](play(case.near_nodes, case.near))


def test_every_detector_has_its_stories_and_is_one_sentence():
    goals = (*sealed.ALWAYS, *sealed.IN_VIEWS)
    assert list(CASES) == [goal_name(goal) for goal in goals]
    for goal in goals:
        assert sentence(goal).endswith(".")
        assert "\n" not in sentence(goal)


def test_a_static_group_has_fewer():
    more = set(catalogue("totem", intruder=True)) - set(catalogue("totem"))
    static = set(catalogue("totem", static=True, intruder=True)) - set(
        catalogue("totem", static=True)
    )
    assert more - static == {goal_name(goal) for goal in sealed.IN_VIEWS}
