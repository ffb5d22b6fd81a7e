"""Clients of replicated machines on simulated logs: what they are told, and what is judged."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.bugs.planted import planted
from tests.bugs.planted_log import log_read_answered_locally  # noqa: F401  # Registers the bug.
from tests.sim.played import of_commands, played

from roundelay.check import Validity, check
from roundelay.sim.clients import CALLS
from roundelay.sim.coverage import Evidence
from roundelay.sim.coverage.objects import (
    WITH_MACHINES,
    call_through_a_view_change,
    item_taken_again,
    lock_of_the_lost,
    unanswered_write_seen,
)
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import ScenarioError, parse
from roundelay.sim.seeds import scenario
from roundelay.sim.watch import Watch
from roundelay.trace.schema import Row

BEGIN = """
engine totem
network lan latency=200us
journal objects=yes
nodes a b c
run 300ms
"""


def story(commands: str, begin: str = BEGIN) -> ScenarioRunner:
    runner = ScenarioRunner(watch=Watch())
    for block in parse(of_commands(begin + commands)):
        runner.play(block)
    return runner


def answers(runner: ScenarioRunner) -> list[tuple[str | None, int | None]]:
    return [(row.op, row.res) for row in runner.rows if row.kind == "reply"]


def at(runner: ScenarioRunner, op: str) -> list[Row]:
    return [row for row in runner.rows if row.kind == "reply" and row.op == op]


def test_clients_of_several_nodes_use_one_map_and_one_counter():
    run = story("""
call a set x 5
run 20ms
call b get x
call b delete x
run 20ms
call c get x
call c add 3
run 20ms
call a add 4
call a delete x
run 20ms
call b value
run 20ms
""")
    assert answers(run) == [
        *(("set", None), ("get", 5), ("delete", 1), ("get", None)),
        *(("add", 3), ("add", 7), ("delete", 0), ("value", 7)),
    ]


def test_clients_use_a_set_a_machine_of_their_own_and_several_keys_at_once():
    run = story("""
call a include x
call b pair 5
call c offer 4
run 20ms
call b include x
call c contains x
call a both
call b offer 3
run 20ms
call c highest
call a exclude x
call b pop x
call c revise x 7
run 20ms
call a pop x
call b contains x
run 20ms
""")
    said = {op: [row.res for row in at(run, op)] for op in CALLS}
    assert (said["include"], said["exclude"], said["contains"]) == ([1, 0], [1], [1, 0])
    assert (said["offer"], said["highest"]) == ([4, 4], [4])
    assert said["pop"] == [None, 7]
    assert [row.obj for row in at(run, "get")] == ["pair"]
    assert [row.res for row in at(run, "get")] == [5]
    assert not check(run.rows, run.manifest(), profile=["H1", "H2"]).violated


def test_a_time_to_live_ends_at_all_nodes_in_log_time():
    run = story("""
call a lend x 5
run 20ms
call b recall x
run 300ms
call c recall x
run 10ms
call a add 1
run 20ms
call b recall x
call c recall x
run 20ms
""")
    assert [row.res for row in at(run, "recall")] == [5, 5, None, None]
    assert not check(run.rows, run.manifest(), profile=["H1", "H2"]).violated


def test_two_have_a_turn_of_the_semaphore_and_one_leads():
    run = story("""
call a enter
call a lead
run 20ms
call b enter
call b lead
run 20ms
call c enter
run 20ms
call a leave
call a resign
run 20ms
crash b
run 500ms
call c enter
run 20ms
""")
    assert [row.proc for row in at(run, "enter")] == [0, 1, 2, 2]
    assert [row.proc for row in at(run, "acquire")] == [0, 1]
    assert {row.obj for row in at(run, "acquire")} == {"leader"}
    verdicts = check(run.rows, run.manifest(), profile=["H3"])
    assert verdicts["H3"].validity is Validity.OK


def test_a_lock_passes_from_its_holder_to_who_waits_and_from_the_lost():
    run = story("""
call c acquire
run 20ms
call b acquire
run 20ms
call a acquire
run 20ms
call c release
run 20ms
crash b
run 500ms
""")
    granted = at(run, "acquire")
    assert [row.proc for row in granted] == [2, 1, 0]
    tokens = [row.res for row in granted if row.res is not None]
    assert tokens == sorted(set(tokens))
    assert [row.res for row in at(run, "release")] == [1]


def test_an_item_is_done_by_who_took_it_last():
    run = story("""
call a put 7
run 20ms
call c take
run 20ms
cut c>a
cut c>b
cut a>c
cut b>c
run 600ms
call b take
run 50ms
call b done
run 50ms
heal
run 900ms
call c done
run 50ms
""")
    taken = at(run, "take")
    assert [row.proc for row in taken] == [2, 1]
    assert taken[0].res == taken[1].res
    assert [(row.proc, row.res) for row in at(run, "done")] == [(1, 1), (2, 0)]
    verdicts = check(run.rows, run.manifest(), profile=["H4"])
    assert verdicts["H4"].validity is Validity.OK


def test_there_is_nothing_to_give_back_for_who_has_nothing():
    run = story("call a release\ncall a done\ncall a back\nrun 50ms")
    assert not [row for row in run.rows if row.kind in ("invoke", "reply")]


def test_a_node_that_was_given_a_snapshot_has_the_machines_of_the_others():
    run = story("""
call a set x 5
call b acquire
call a put 1
run 20ms
crash c power
run 400ms
call a add 2
run 50ms
snapshot a
snapshot b
restart c storage=lost
run 500ms
call c get x
call c value
run 50ms
""")
    logs = [host.log for host in run.world.hosts.values()]
    states = {
        log.application.machines.snapshot()
        for log in logs
        if log is not None and log.application.machines is not None
    }
    assert len(states) == 1
    assert answers(run)[-2:] == [("get", 5), ("value", 2)]


def test_a_node_reads_its_machines_from_its_journal():
    run = story("""
call a set x 5
run 20ms
snapshot a
call a add 2
run 20ms
blackout
run 50ms
restart a
restart b
restart c
run 900ms
call a get x
call b value
run 50ms
""")
    assert answers(run)[-2:] == [("get", 5), ("value", 2)]


def test_calls_need_machines_and_words_that_make_sense():
    with pytest.raises(ScenarioError, match="objects=yes"):
        story("call a value", BEGIN.replace(" objects=yes", ""))
    for wrong in ("call a", "call a jump", "call a set x", "call a value 5"):
        with pytest.raises(ScenarioError, match="write a node and a call"):
            story(wrong)


STALE = """
call b set x 1
run 20ms
lose DATA to=c
call a set x 2
run 20ms
call c get x
run 20ms
"""


def test_a_read_that_is_answered_locally_is_not_linearizable():
    names = ("H1", "H2", "J12")
    sound = story(STALE)
    assert not check(sound.rows, sound.manifest(), profile=names).violated
    with planted("log_read_answered_locally"):
        run = story(STALE)
    verdicts = check(run.rows, run.manifest(), profile=names)
    assert {verdict.property for verdict in verdicts.violated} == set(names)


# What the swarm draws, and its goals


def test_the_swarm_draws_clients_of_all_kinds():
    drawn = [scenario(seed, "totem", log=True) for seed in range(60)]
    assert 20 < sum("objects=yes" in text for text in drawn) < 40
    ops = Counter(re.findall(r"call \w+ (\w+)", "".join(drawn)))
    assert ops.keys() == CALLS.keys()
    assert min(ops.values()) > 10
    written = re.findall(r"^journal.*$", "\n".join(drawn), re.MULTILINE)
    assert not [line for line in written if "application=" in line and "objects=" in line]


LOST = "call c acquire\nrun 20ms\ncall a acquire\nrun 20ms"
TAKEN = "call a put 1\nrun 20ms\ncall c take\nrun 20ms"
WRITE = "call c set x 1\nrun 10ms\ncall c set x 2\nrun {wait}\ncrash c\nrun 500ms\ncall a get x"
GOALS: dict[Callable[[Evidence], bool], tuple[str, str]] = {
    lock_of_the_lost: (f"{LOST}\ncrash c\nrun 500ms", f"{LOST}\ncall c release\nrun 50ms"),
    item_taken_again: (
        f"{TAKEN}\ncall c back\nrun 20ms\ncall b take\nrun 20ms",
        f"{TAKEN}\ncall c done\nrun 20ms\ncall b put 2\ncall b take\nrun 20ms",
    ),
    unanswered_write_seen: (
        f"{WRITE.format(wait='900us')}\nrun 50ms",
        f"{WRITE.format(wait='20ms')}\nrun 50ms",
    ),
    call_through_a_view_change: (
        "crash c\nrun 20ms\ncall a set x 1\nrun 500ms",
        "crash c\nrun 500ms\ncall a set x 1\nrun 50ms",
    ),
}


@pytest.mark.parametrize("goal", WITH_MACHINES, ids=lambda goal: goal.__name__)
def test_a_goal_is_reached_and_missed(goal: Any):
    reached, near = GOALS[goal]
    assert goal(played(of_commands(BEGIN + reached)))
    assert not goal(played(of_commands(BEGIN + near)))
