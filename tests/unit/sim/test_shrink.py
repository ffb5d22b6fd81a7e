"""Shrinking, part by part: delta debugging, runs without chance, commands made plainer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.sim import simplify
from roundelay.sim.command_text import names, truncated, without_node
from roundelay.sim.ddmin import ddmin
from roundelay.sim.explicit import fates, numbered, typed, without_chance
from roundelay.sim.failure import Failure, Judge, shape
from roundelay.sim.scenario import ScenarioError, parse
from roundelay.sim.shrink import NoFailureError, shrink

# Delta debugging


@given(st.integers(0, 60), st.sets(st.integers(0, 59)))
def test_ddmin_finds_what_is_needed(count, wanted):
    needed = [item for item in range(count) if item in wanted]

    def still(rest):
        return rest if set(needed) <= set(rest) else None

    assert ddmin(range(count), still) == needed


def test_ddmin_ends_when_its_tries_are_used_up():
    asked = []

    def still(rest):
        asked.append(rest)

    assert ddmin(range(100), still, 7) == list(range(100))
    assert len(asked) == 7


def test_ddmin_goes_on_with_what_is_left():
    """Some things vanish with others."""

    def still(rest):
        return [item for item in rest if item < 5] if 3 in rest else None

    assert ddmin(range(40), still) == [3]


def test_ddmin_notices_what_became_superfluous():
    """Each even number is needed as long as its successor is there."""

    def still(rest):
        return rest if all(item - 1 in rest for item in rest if item % 2) else None

    assert ddmin(range(9), still) == []


# Without chance

CHANCE = """seed 5
engine totem
network lan latency=300us jitter=200us
nodes a b c
faults loss=4% duplicate=3% reorder=3% corrupt=1%
load messages=40 rate=80/s size=40 safe=30% from=a,b
at 20ms load messages=3 rate=100/s size=3000
at 100ms crash b
at 130ms restart b storage=torn
at 300ms partition a b,c
at 350ms merge
run 500ms
heal
load messages=3 rate=100/s
end after=500ms
----
"""


def commands_of(text):
    return tuple(command for block in parse(text) for _, command in block.commands)


def told(run):
    kinds = ("submit", "deliver", "install", "drop", "crash", "recover", "expire")
    return [
        (row.kind, row.proc, row.inc, row.t_ns, row.m_src, row.m_seq, row.tag, row.digest)
        for row in run.runner.rows
        if row.kind in kinds
    ]


@pytest.mark.parametrize("form", [numbered, typed])
def test_a_run_without_chance_is_the_same_run(form):
    run = Judge().run(commands_of(CHANCE))
    forced = fates(run)
    assert len(forced) == len(run.made) - 1  # The torn storage is not a frame.
    explicit = form(without_chance(run), forced)
    text = "\n".join(explicit)
    for chance in ("faults", "load", "jitter", "seed"):
        assert chance not in text
    assert told(Judge(seed=99).run(explicit)) == told(run)


def test_recorded_choices_are_made_explicit_too():
    run = Judge().run(commands_of(CHANCE))
    replayed = Judge(seed=5, choices=run.made).run(commands_of(CHANCE))
    explicit = numbered(without_chance(replayed), fates(replayed))
    assert told(Judge().run(explicit)) == told(run)


# Failures


def test_failures_are_told_apart_by_property_or_by_what_the_sentence_says():
    assert Failure("O5", "a before b").alike(Failure("O5", "c before d"))
    assert not Failure("O5").alike(Failure("O6"))
    assert not Failure("O5").alike(None)
    first = Failure("", "fcc of 8.a is wrong", shape=shape("fcc of 8.a is wrong", "abc"))
    again = Failure("", "fcc of 12.b is wrong", shape=shape("fcc of 12.b is wrong", "abc"))
    other = Failure("", "aru 3 is past seq 2", shape=shape("aru 3 is past seq 2", "abc"))
    assert first.alike(again)
    assert not first.alike(other)
    assert shape("is ('a', 'b') and ('c',)", "abc") == shape("is ('a',) and ('b', 'c')", "abc")


def test_a_run_that_does_not_fail_is_not_shrunk():
    with pytest.raises(NoFailureError, match="does not fail"):
        shrink("engine totem\nnetwork lan\nnodes a b\nrun 10ms\n----\n")
    with pytest.raises(ScenarioError):
        shrink("nodes a b\nfly\n----\n")


# Commands


def test_what_comes_after_a_moment_is_cut_off():
    commands = ("nodes a b", "at 5ms crash a", "at 9ms crash b", "run 6ms", "heal", "end after=1s")
    assert truncated(commands, 5_000_000) == ("nodes a b", "at 5ms crash a", "run 5ms")
    assert truncated(commands, 8_000_000) == (
        "nodes a b", "at 5ms crash a", "run 6ms", "heal", "heal", "run 2ms",
    )  # fmt: skip


def test_a_node_goes_with_all_its_lines():
    commands = (
        "nodes 3",
        "start a b c",
        'fate "b\'1/3>a" lost',
        "fate a/3>b lost",
        "fate a/3>c lost",
        "at 1ms submit b x",
        "at 1ms submit a x to=b,c",
        "at 1ms submit a x to=b",
        "at 2ms partition a b,c",
        "cut a>b c>a",
        "cut a>b",
        "crash b",
        "lose DATA to=b times=1",
        "load messages=3 from=a,b",
        "run 3ms",
    )
    assert without_node(commands, "b") == (
        "nodes a c",
        "start a c",
        "fate a/3>c lost",
        "at 1ms submit a x to=c",
        "at 2ms partition a c",
        "cut c>a",
        "load messages=3 from=a",
        "run 3ms",
    )
    assert names(commands) == ("a", "b", "c")


# Plainer forms


def always(commands):
    return True


@pytest.mark.parametrize(
    ("passage", "before", "after"),
    [
        (
            simplify.merge_runs,
            ("nodes a", "at 3ms crash a", "run 2ms", "heal", "run 5ms", "end after=1s"),
            ("nodes a", "at 2ms heal", "at 3ms crash a", "run 7ms", "end after=1s"),
        ),
        (
            simplify.start_with_nodes,
            ("nodes a b down", "fate a/3>b lost", "start a b", "run 1ms"),
            ("nodes a b", "fate a/3>b lost", "run 1ms"),
        ),
        (
            simplify.drop_options,
            ("engine totem window_packets=4", "costs send=1ms", "network bus rate=1Mbit"),
            ("engine totem", "network lan"),
        ),
        (
            simplify.simplify_lines,
            ("at 1ms submit a x safe size=90", "restart a storage=torn bytes=3"),
            ("at 1ms submit a x", "restart a"),
        ),
        (
            simplify.round_times,
            ("at 1234567ns crash a", "fate a/X>b copy=1.2ms", "run 2345us", "end after=8000ms"),
            ("at 1ms crash a", "fate a/X>b copy=2ms", "run 3ms", "end after=8s"),
        ),
        (
            simplify.shorten_waits,
            ("at 40ms crash a", "at 90ms restart a", "run 200ms"),
            ("at 1ms crash a", "at 2ms restart a", "run 3ms"),
        ),
        (
            simplify.merge_submissions,
            ("at 1ms submit a x", "at 2ms submit b x", "at 3ms submit a y"),
            ("at 1ms submit a x times=2", "at 2ms submit b x"),
        ),
        (simplify.lower_times, ("submit a x times=9",), ("submit a x",)),
        (simplify.name_messages, ("at 1ms submit a 17 safe",), ("at 1ms submit a m1 safe",)),
    ],
)
def test_plainer_forms(passage, before, after):
    assert passage(before, always) == after
    assert passage(before, lambda commands: False) == before


def test_what_matters_about_one_line_stays():
    commands = ("submit a x safe size=90", "submit b x safe size=90")
    assert simplify.simplify_lines(commands, lambda c: "safe" in c[1]) == (
        "submit a x",
        "submit b x safe",
    )


def test_numbers_stay_as_large_as_they_must():
    assert simplify.lower_times(("submit a x times=100",), lambda c: int(c[0][17:] or 1) >= 23) == (
        "submit a x times=23",
    )


# All together

DISORDER = """seed 2
engine template static
network lan jitter=2ms
nodes a b c d
load messages=40 rate=200/s
run 300ms
----
"""


def test_the_same_run_shrinks_to_the_same_story():
    first = shrink(DISORDER, budget=80, found="roundelay sim run story.txt")
    again = shrink(DISORDER, budget=80, found="roundelay sim run story.txt")
    assert first.scenario == again.scenario
    assert first.runs == again.runs <= 80
    assert f"# {first.failure}" in first.scenario
    assert f"\n{first.failure}\n" in first.scenario  # What `check` printed.
    assert "# Found by: roundelay sim run story.txt" in first.scenario
    assert first.witness


def test_the_wanted_failure_is_kept_and_the_budget_too():
    tried = []
    shrunk = shrink(
        DISORDER, 7, Failure("O6"), budget=12, progress=lambda done, of: tried.append((done, of))
    )
    assert shrunk.failure.property == "O6"
    assert tried == [(n, 12) for n in range(1, shrunk.runs + 1)]
    assert shrunk.runs <= 12


def test_a_manual_network_is_shrunk_command_by_command():
    story = """nodes a b c
submit a x
submit c z
submit b y
deliver a from=c
drop b from=c
deliver a from=b
deliver b from=a
check
----
"""
    shrunk = shrink(story, failure=Failure("O5"))
    assert shrunk.commands == ("nodes a b", "submit a m1", "submit b m2", *shrunk.commands[3:])
    assert len(shrunk.commands) <= 5
