"""Every goal of the coverage catalogue: a story in which it is reached, and one that comes near.

A detector that cannot be shown firing says nothing when it is silent; one that fires on anything
says nothing when it fires.
"""

from typing import NamedTuple

import pytest
from tests.sim.played import of_commands, played

from roundelay.sim.coverage import Evidence, catalogue, sentence


class Case(NamedTuple):
    """Commands after the nodes, which begin with 60 ms of peace, in both stories."""

    reached: str
    near: str
    nodes: str = "a b c"
    near_nodes: str = ""
    engine: str = ""
    near_engine: str = ""
    group: str = "packet_messages=1"
    setup: str = ""
    """Besides, before the nodes; in the story that reaches the goal alone."""


GAP = """
lose DATA seq=1 to=a,b
submit c m1
run 150us
submit a m2 safe
run 300us
crash c
"""
"""c sends what reaches nobody, a sends something behind it, and c crashes."""

NO_GAP = """
lose TOKEN from=c
submit a m1 safe
submit c m2
run 250us
crash c
run 400ms
"""
"""a sends something safe and c something behind it, all get both, and c crashes with the token."""

OWED = f"""
{GAP}
run 220.9ms
cut a>b
run 100us
crash a
run 300ms
"""
"""a installs without c, delivers behind the gap, and crashes before b can install."""

DEAF = "lose DATA to=c\nlose JOIN to=c\nlose RITEM to=c\nlose MERGE to=c\nsubmit a m1 safe"

DOUBT = """
load messages=60 rate=60/s
at 195ms lose DATA from=a to=b,c,d,e
at 195ms submit a gap
at 198ms submit b behind
at 200ms crash a
at 202ms crash b after={}
at 202ms restart a
run 540ms
"""

EARLY = """
lose RTOKEN "token=hop {} seq 0 aru 0" times=1
crash a
run 400ms
"""
"""Of the ring of b and c, c installs with the ninth hop; b has installed with the one before."""

LARGE = "load messages=1 size=2000 from={} rate=1000/s\nrun {}\ncrash c\nrun 400ms"
SLOWLY = "totem visit_packets=1"
TURNING = "totem idle_rotations=9999"
"""A token that never rests: behind one that has, nothing follows."""
BUSY = f"{TURNING} accelerated=1"
LOSE_TOKENS = "lose TOKEN\nrun 120ms\nlose none\nrun 100ms"

TOTEM = {
    # Packets
    "packed": Case("submit a x times=3\nrun 10ms", "submit a x\nrun 10ms", group="packet_bytes=99"),
    "large-message": Case(
        "load messages=1 size=300\nrun 50ms",
        "load messages=1 size=30\nrun 50ms",
        group="packet_bytes=99",
    ),
    "damaged-frame": Case("faults corrupt=5%\nrun 100ms", "faults loss=5%\nrun 100ms"),
    "behind-a-safe-one": Case(
        "submit a x safe\nsubmit a y\nrun 10ms", "submit a x\nsubmit a y safe\nrun 10ms"
    ),
    "read-as-a-burst": Case(
        "submit a x times=5\nrun 10ms", "submit a x times=5\nrun 10ms", setup="turn 500us"
    ),
    "flushed-together": Case(
        "submit a x times=3\nrun 10ms", "submit a x times=3\nrun 10ms", setup="turn 500us"
    ),
    # The token
    "token-sent-again": Case("lose TOKEN times=1\nrun 50ms", "faults duplicate=40%\nrun 50ms"),
    "served-by-another": Case(
        "lose DATA from=b to=c times=1\nsubmit b x\nrun 50ms",
        "lose DATA from=a to=c times=1\nsubmit a x\nrun 50ms",
    ),
    "request-passed-on": Case(
        "lose DATA from=b times=2\nsubmit b x\nrun 50ms",
        "lose DATA from=b to=c times=1\nsubmit b x\nrun 50ms",
    ),
    "window-closed": Case(
        "submit b x times=9\nrun 50ms",
        "submit b x times=9\nrun 50ms",
        engine="totem window_packets=2",
        near_engine="totem visit_packets=2",
    ),
    "token-rests": Case("run 50ms", "run 50ms", near_engine="totem idle_rotations=9999"),
    "rest-broken-off": Case("submit b x\nrun 50ms", "submit a x\nrun 50ms"),
    # The accelerated ring
    "token-overtakes": Case(
        "submit b x\nrun 50ms", "submit b x\nrun 50ms", engine=BUSY, near_engine=TURNING
    ),
    "asked-a-rotation-later": Case(
        "lose DATA seq=2 to=c times=1\nsubmit b x times=2\nrun 50ms",
        "lose DATA seq=1 to=c times=1\nsubmit b x times=2\nrun 50ms",
        engine=BUSY,
        near_engine=BUSY,
    ),
    "safe-a-rotation-later": Case(
        "submit b x safe\nrun 50ms",
        "submit b x safe\nrun 50ms",
        engine=BUSY,
        near_engine=TURNING,
    ),
    # How an old view ends
    "delivered-behind-a-gap": Case(f"{GAP}\nrun 300ms", NO_GAP),
    "owed-behind-a-gap": Case(OWED, f"{GAP}\nrun 300ms"),
    "transitional-delivery": Case(NO_GAP, NO_GAP.replace("safe", "")),
    "safe-across-a-crash": Case(NO_GAP, NO_GAP.replace("crash c", "partition a,b c")),
    "discarded-behind-a-gap": Case(
        f"{GAP.replace('submit a m2 safe', 'submit c m2')}run 300ms", GAP
    ),
    "held-by-one-survivor": Case(
        "lose DATA to=a\nsubmit c x\nrun 500us\ncrash c\nrun 300ms",
        "lose DATA from=c to=a\nsubmit b x\nrun 500us\ncrash c\nrun 300ms",
    ),
    "piece-left-over": Case(
        LARGE.format("c", "5ms"),
        LARGE.format("c", "90ms"),
        engine=SLOWLY,
        near_engine=SLOWLY,
        group="packet_bytes=99",
    ),
    "large-message-again": Case(
        LARGE.format("a", "5ms"),
        LARGE.format("c", "5ms"),
        engine=SLOWLY,
        near_engine=SLOWLY,
        group="packet_bytes=99",
    ),
    # How a new view is formed
    "commit-lost-filling": Case(
        "lose COMMIT index=1 times=1\ncrash c\nrun 400ms",
        "lose COMMIT index=2 times=1\ncrash c\nrun 400ms",
    ),
    "commit-lost-showing": Case(
        "lose COMMIT index=2 times=1\ncrash c\nrun 400ms",
        "lose COMMIT index=1 times=1\ncrash c\nrun 400ms",
    ),
    "forming-token-lost": Case(
        "lose RTOKEN times=1\ncrash c\nrun 400ms", "lose COMMIT times=1\ncrash c\nrun 400ms"
    ),
    "attempt-stuck": Case(
        "lose COMMIT\ncrash c\nrun 400ms", "lose COMMIT times=3\ncrash c\nrun 400ms"
    ),
    "obligation": Case(OWED, f"{GAP}\nrun 300ms"),
    "forced-failure": Case(
        "lose COMMIT to=c\nlose TOKEN\nrun 800ms", "lose COMMIT to=c\nlose TOKEN\nrun 300ms"
    ),
    "expelled-for-not-receiving": Case(
        f"{DEAF}\nrun 50ms",
        f"{DEAF}\nrun 2ms\nlose none\nrun 50ms",
        engine="totem fail_to_receive_visits=8",
        near_engine="totem fail_to_receive_visits=8",
    ),
    "left-alone": Case(
        f"{DEAF}\nrun 150ms\nsubmit b m2\nrun 600ms",
        f"{DEAF}\nrun 600ms",
        engine="totem fail_to_receive_visits=8",
        near_engine="totem fail_to_receive_visits=8",
    ),
    "idle-rings-meet": Case(
        "partition a,b c,d\nrun 500ms\nmerge\nrun 500ms",
        "load messages=900 rate=300/s\npartition a,b c,d\nrun 400ms\nmerge\nrun 300ms",
        nodes="a b c d",
    ),
    "three-rings-meet": Case(
        "partition a b c\nrun 500ms\nmerge\nrun 500ms",
        "partition a,b c\nrun 500ms\nmerge\nrun 500ms",
    ),
    "same-members-again": Case(LOSE_TOKENS, "crash c\nrun 400ms"),
    "view-of-one": Case(
        "partition a,b,c d\nrun 400ms", "partition a,b c,d\nrun 400ms", nodes="a b c d"
    ),
    "early-frame": Case(EARLY.format(9), EARLY.format(7)),
    "installed-answer": Case("run 10ms", "run 10ms", near_nodes="a"),
    # The primary component
    "primary-regained": Case(
        "partition a,b c\nrun 400ms\nmerge\nrun 400ms", "partition a,b c\nrun 400ms"
    ),
    "primary-in-doubt": Case(DOUBT.format(27), DOUBT.format(5), nodes="a b c d e"),
    # Crashes, pauses, cuts
    "quick-restart": Case(
        "crash b\nrun 2ms\nrestart b\nrun 100ms", "crash b\nrun 150ms\nrestart b\nrun 400ms"
    ),
    "storage-lost": Case(
        "crash b\nrestart b storage=lost\nrun 50ms", "crash b\nrestart b storage=torn\nrun 50ms"
    ),
    "storage-torn": Case(
        "crash b\nrestart b storage=torn\nrun 50ms", "crash b\nrestart b\nrun 50ms"
    ),
    "paused-and-back": Case(
        "pause c\nrun 400ms\nresume c\nrun 400ms", "pause c\nrun 50ms\nresume c\nrun 400ms"
    ),
    "parted-by-a-one-way-cut": Case("cut c>a\nrun 600ms", "partition a,b c\nrun 600ms"),
}

FIFO = {
    "served-by-its-sender": Case(
        "lose DATA from=a to=b times=1\nsubmit a x\nrun 50ms", "submit a x\nrun 50ms"
    ),
    "served-by-another": Case(
        "lose DATA from=a to=b\nsubmit a x\nrun 50ms",
        "lose DATA from=a to=b times=1\nsubmit a x\nrun 50ms",
    ),
    "last-one-lost": Case(
        "lose DATA from=a to=b times=1\nsubmit a x\nrun 50ms",
        "lose DATA from=a to=b times=1\nsubmit a x times=2\nrun 50ms",
    ),
    "early-packet": Case(
        "lose DATA from=a to=b times=1\nsubmit a x times=2\nrun 50ms",
        "lose DATA from=a to=b times=1\nsubmit a x\nrun 50ms",
    ),
    "window-closed": Case(
        "submit a x times=9\nrun 50ms",
        "submit a x times=9\nrun 50ms",
        engine="fifo window_packets=2",
    ),
    "silence-suspected": Case("crash c\nrun 200ms", "crash c\nrun 100ms"),
    "expelled-for-not-receiving": Case(
        "lose DATA to=c\nsubmit a x\nrun 500ms",
        "lose DATA to=c\nsubmit a x\nrun 100ms\nlose none\nrun 400ms",
        engine="fifo stall_s=0.2",
        near_engine="fifo stall_s=0.2",
    ),
}

LATE_TOKEN = "lose ACK to=b times=1\nsubmit a x\nsubmit b y\nsubmit c z\nrun 300ms"
"""b gets the token only when a repeats it; meanwhile two messages wait there."""

HASTY = "pinwheel watch_s=0.4"

UNHEARD = "lose MSG from=b\nlose ACK\nsubmit b x"
"""Nobody hears b's message, and nobody gets the token."""

UNAWARE = """
{}
submit c x
run 1ms
submit b y
run 1ms
partition a,b c
run 1500ms
"""

DTP = {
    # The token
    "null-transfer": Case("run 100ms", "submit a x\nrun 20ms"),
    "token-sent-again": Case(
        "lose ACK to=b times=1\nsubmit a x\nrun 300ms", "faults duplicate=40%\nrun 300ms"
    ),
    "old-transfer": Case(
        "fate a/ACK>b copy=120ms\nsubmit a x\nrun 300ms",
        "fate a/ACK>b copy=50ms\nsubmit a x\nrun 300ms",
    ),
    "several-in-one": Case(LATE_TOKEN, LATE_TOKEN.replace("lose ACK to=b times=1\n", "")),
    # What is missing
    "number-before-packet": Case(
        "lose MSG from=a to=b times=1\nsubmit a x\nrun 50ms",
        "lose ACK from=a to=b times=1\nsubmit a x\nrun 50ms",
    ),
    "order-told-again": Case(
        "lose ACK from=a to=c times=1\nsubmit c x\nrun 80ms",
        "lose ACK from=a to=b times=1\nsubmit c x\nrun 80ms",
        engine="pinwheel msg_repeat_s=0.05",
        near_engine="pinwheel msg_repeat_s=0.05",
    ),
    "asked-the-holder": Case(
        "lose MSG from=a to=c times=1\nsubmit a x\nrun 50ms",
        "lose MSG from=a to=b times=1\nsubmit a x\nrun 50ms",
    ),
    "asked-the-predecessor": Case(
        "lose MSG from=a to=b times=1\nsubmit a x\nrun 50ms",
        "lose MSG from=a to=c times=1\nsubmit a x\nrun 50ms",
    ),
    "waits-for-resilience": Case(
        "submit a x\nrun 500ms", "submit a x\nrun 500ms", engine="pinwheel resilience=2"
    ),
    "window-closed": Case(
        "submit b x times=9\nrun 50ms",
        "submit b x times=9\nrun 50ms",
        engine="pinwheel window_packets=2",
    ),
    # How an old view ends
    "withdrawn": Case(
        f"{UNHEARD}\nrun 600ms\nlose none\nrun 600ms",
        "lose MSG from=b\nsubmit b x\nrun 600ms",
        engine=HASTY,
    ),
    "delivered-without-a-number": Case(
        "lose ACK from=a\nsubmit b x\nrun 5ms\ncrash a\nrun 1500ms",
        "lose ACK from=a\nsubmit b x\nrun 5ms\ncrash a\nrun 1500ms",
        near_engine="pinwheel resilience=1",
    ),
    "passed-over": Case(
        UNAWARE.format("lose ACK to=c"),
        UNAWARE.format("").replace("partition", "submit c z\nrun 1ms\npartition"),
        engine="pinwheel resilience=1",
        near_engine="pinwheel resilience=1",
    ),
    # Who is suspected
    "successor-suspected": Case("crash b\nrun 1200ms", "crash b\nrun 300ms"),
    "token-lost": Case(
        "lose ACK from=b to=c\nrun 145ms\ncrash b\nrun 2500ms",
        "run 145ms\ncrash b\nrun 2500ms",
    ),
    "never-ordered": Case(
        f"run 290ms\n{UNHEARD}\nrun 430ms",
        f"run 290ms\n{UNHEARD}\nrun 300ms",
        engine=HASTY,
        near_engine=HASTY,
    ),
    "expelled-for-not-receiving": Case(
        "lose MSG to=b\nsubmit a x\nrun 1200ms",
        "lose MSG to=b\nsubmit a x\nrun 300ms\nlose none\nrun 900ms",
        engine="pinwheel asking_attempts=5",
        near_engine="pinwheel asking_attempts=5",
    ),
}

ADAPTING = "atop factor=1 period_s=0.005 threshold_permille=0"
"""Every change of shares makes a new distribution, within 5 ms."""

CHANGED = "submit b x times=8\nrun 10ms\nsubmit a y\nrun 20ms\nsubmit b z\nrun 20ms"
"""b sends most, and a, the book-keeper, tells a distribution with its next packet."""

UNAWARE_C = """
submit b x times=8
run 10ms
lose DATA from=a to=c
submit a y
run 200us
submit c z
run 30ms
"""
"""The same, and c, which has not heard of it, goes on with the old distribution."""

HALF_WAY = """
submit b x times=8
run 6ms
lose DATA from=a,b to=c
submit a y
run 200us
crash {}
run 300ms
"""
"""b has heard of a new distribution, and c has not."""

IN_VAIN = """
lose DATA sender=2 to={}
submit c x times=12
submit a y
run 4ms
crash c
crash d
run 300ms
"""
"""d fills its slots for what c sent, and both crash."""

ATOP = {
    "slot-skipped": Case(UNAWARE_C, UNAWARE_C, engine=ADAPTING),
    "distribution-changed": Case(CHANGED, CHANGED, engine=ADAPTING),
    "distribution-passed-over": Case(
        "submit b x times=8\nrun 6ms\nsubmit c x times=8\nrun 50ms",
        "submit b x times=8\nrun 50ms",
        engine=f"{ADAPTING} hold_s=0.02",
        near_engine=f"{ADAPTING} hold_s=0.02",
    ),
    "learned-late": Case(
        UNAWARE_C,
        UNAWARE_C.replace("lose DATA from=a to=c\n", ""),
        engine=ADAPTING,
        near_engine=ADAPTING,
    ),
    "packed-dummy": Case(
        "submit b x times=20\nrun 20ms",
        "submit b x times=20\nrun 20ms",
        near_engine="atop dummies=demand",
    ),
    "switched-by-a-dummy": Case(
        "submit b x times=8\nrun 10ms\nsubmit a y\nrun 20ms",
        "submit b x times=8\nrun 10ms",
        engine=ADAPTING,
        near_engine=f"{ADAPTING} hold_s=1",
    ),
    # How an old view ends
    "skipped-at-the-end": Case(
        "crash c\nsubmit b x times=9\nrun 300ms", "submit b x times=9\nrun 50ms\ncrash c\nrun 300ms"
    ),
    "ends-in-a-change": Case(HALF_WAY.format("c"), HALF_WAY.format("c"), engine=ADAPTING),
    "half-told": Case(
        HALF_WAY.format("a"),
        HALF_WAY.format("a").replace("lose DATA from=a,b to=c\n", ""),
        engine=ADAPTING,
        near_engine=ADAPTING,
    ),
    "dummy-partly-used": Case(IN_VAIN.format("a,b"), IN_VAIN.format("d"), nodes="a b c d"),
}

ALLACK = {
    "equal-stamps": Case(
        "submit a x\nsubmit b y\nrun 50ms", "submit a x\nrun 1ms\nsubmit b y\nrun 50ms"
    ),
    "null-sent": Case(
        "submit a x\nrun 50ms", "submit a x\nrun 50ms", near_engine="allack nulls=no"
    ),
    "delivered-unheard": Case(
        "crash c\nsubmit a x\nrun 300ms", "submit a x\nrun 50ms\ncrash c\nrun 300ms"
    ),
}

UNANSWERED = """
lose DATA sender=1 to={}
submit b x
run 200us
submit c y
run 1ms
crash b
crash c
run 300ms
"""
"""c answers what b sent, and both crash."""

CAUSAL = {
    "waits-for-a-cause": Case(
        "lose DATA from=a to=b times=1\nsubmit a x\nrun 200us\nsubmit c y\nrun 50ms",
        "lose DATA from=a to=b times=1\nsubmit a x\nsubmit c y\nrun 50ms",
    ),
    "in-two-orders": Case(
        "submit a x\nsubmit b y\nrun 50ms", "submit a x\nrun 1ms\nsubmit b y\nrun 50ms"
    ),
    "dropped-for-want-of-a-cause": Case(
        UNANSWERED.format("a,d"), UNANSWERED.format("a"), nodes="a b c d"
    ),
}

STORIES = {
    "totem": TOTEM,
    "fifo": FIFO,
    "pinwheel": DTP,
    "atop": ATOP,
    "allack": ALLACK,
    "causal": CAUSAL,
}
"""Pinwheel stands for its kin too, whose goals are among its own."""

CASES = [
    (protocol, goal, case) for protocol, cases in STORIES.items() for goal, case in cases.items()
]
NAMES = [f"{protocol}-{goal}" for protocol, goal, _ in CASES]


def play(nodes: str, engine: str, group: str, commands: str, setup: str = "") -> Evidence:
    head = f"engine {engine}\ngroup {group}\nnetwork lan latency=100us\n{setup}"
    head += f"\nnodes {nodes}\nrun 60ms"
    return played(of_commands(f"{head}\n{commands}"))


@pytest.mark.parametrize(("protocol", "goal", "case"), CASES, ids=NAMES)
def test_the_goal_is_reached(protocol, goal, case):
    run = play(case.nodes, case.engine or protocol, case.group, case.reached, case.setup)
    assert catalogue(protocol)[goal](run)


@pytest.mark.parametrize(("protocol", "goal", "case"), CASES, ids=NAMES)
def test_the_goal_is_missed(protocol, goal, case):
    run = play(case.near_nodes or case.nodes, case.near_engine or protocol, case.group, case.near)
    assert not catalogue(protocol)[goal](run)


PROTOCOLS = ("totem", "fifo", "causal", "allack", "atop", "dtp", "cm", "pinwheel")


def test_every_detector_has_its_stories():
    told = {catalogue(protocol)[goal] for protocol, goal, _ in CASES}
    for protocol in PROTOCOLS:
        for static in (False, True):
            assert told.issuperset(catalogue(protocol, static=static).values())


def test_every_goal_is_one_sentence():
    for goal in {goal for protocol in PROTOCOLS for goal in catalogue(protocol).values()}:
        assert sentence(goal).endswith(".")
        assert "\n" not in sentence(goal)


def test_a_static_group_has_a_smaller_catalogue():
    for protocol in PROTOCOLS:
        assert set(catalogue(protocol, static=True)) < set(catalogue(protocol))
