"""fifo through crashes, partitions, one-way cuts and a bad network: what it promises holds."""

from random import Random

import pytest

from roundelay.check import Report, Standing, Validity, check
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse

SEEDS = 40
NODES = "abcde"
BEYOND = ("S1", "S2", "S3", "S4", "L4")
"""Not promised by the profile, and yet so: safe packets are safe, and all becomes stable."""


def scenario(seed: int) -> str:
    """A run drawn from a seed: a group, a load, a bad network, some events, and a quiet end."""
    draw = Random(f"fifo/{seed}")
    nodes = NODES[: draw.randint(2, 5)]
    rates = [
        f"{name}={draw.choice(shares)}%"
        for name, shares in (
            ("loss", (1, 3, 8)),
            ("duplicate", (1, 5)),
            ("reorder", (2, 10)),
            ("spike", (1,)),
        )
        if draw.random() < 0.6
    ]
    lines = [
        f"engine fifo window_packets={draw.choice((4, 64))}",
        f"seed {seed}",
        f"network lan latency={draw.choice((100, 500))}us jitter={draw.choice((50, 400))}us",
        f"nodes {' '.join(nodes)}",
        f"faults {' '.join(rates)}" if rates else "faults none",
        f"load messages=400 rate={draw.choice((50, 200))}/s safe={draw.choice((0, 20))}%",
    ]
    events: list[tuple[int, str]] = []
    for _ in range(draw.randint(1, 5)):
        at = draw.randint(50, 1500)
        until = at + draw.randint(20, 600)
        node = draw.choice(nodes)
        match draw.choice(("crash", "partition", "cut", "pause", "slow")):
            case "crash":
                fuse = draw.choice(("", f" after={draw.randint(1, 8)}"))
                storage = draw.choice(("kept", "lost", "torn"))
                events += [
                    (at, f"crash {node}{fuse}"),
                    (until, f"restart {node} storage={storage}"),
                ]
            case "partition":
                cut = draw.randint(1, len(nodes) - 1)
                mixed = draw.sample(nodes, len(nodes))
                sides = f"{','.join(mixed[:cut])} {','.join(mixed[cut:])}"
                events += [(at, f"partition {sides}"), (until, "merge")]
            case "cut":
                other = draw.choice([n for n in nodes if n != node])
                events += [(at, f"cut {node}>{other}"), (until, "merge")]
            case "pause":
                events += [(at, f"pause {node}"), (until, f"resume {node}")]
            case "slow":
                events += [(at, f"slow {node} 1ms"), (until, f"slow {node} 0us")]
    lines += [f"at {at}ms {event}" for at, event in sorted(events)]
    quiet = ["run 2200ms", "heal", "run 2s", "load messages=40 rate=100/s safe=20%", "end after=2s"]
    return "\n".join([*lines, *quiet, "----", ""])


def play(text: str, seed: int | None = None) -> ScenarioRunner:
    story = ScenarioRunner(seed=seed)
    for block in parse(text):
        story.play(block)
    return story


def bad(report: Report) -> list[str]:
    """Verdicts that a run must not get, on what is not optional."""
    return [
        f"{v.property} {v.validity}: {v.reason}"
        for v in report.verdicts
        if report.profile.standing(v.property) is not Standing.OPTIONAL
        and v.validity not in (Validity.OK, Validity.VACUOUS)
    ]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_violated_and_all_settles(seed):
    text = scenario(seed)
    story = play(text)
    manifest = story.manifest()
    report = check(story.rows, manifest)
    assert not bad(report), text
    assert not bad(check(story.rows, manifest, profile=BEYOND)), text
    for name in ("L1", "L2", "O1r"):
        assert report[name].validity is Validity.OK, f"{name} was not put to the test\n{text}"


STATIC = """
engine fifo static window_packets={window}
network lan latency=200us jitter=300us
nodes a b c d
faults loss={loss}% duplicate=5% reorder=10% spike=1% corrupt=1%
load messages=300 rate=300/s safe=20% subset=20%
at 100ms pause b
at 160ms resume b
run 1s
end after=2s
----
"""


@pytest.mark.parametrize("seed", range(8))
def test_a_static_group_loses_nothing_without_any_help_of_membership(seed):
    text = STATIC.format(window=(4, 64)[seed % 2], loss=(1, 5, 20)[seed % 3])
    story = play(text, seed)
    manifest = story.manifest()
    assert not bad(check(story.rows, manifest)), text
    assert not bad(check(story.rows, manifest, profile=("S1", "S3", "S4", "L4", "D9", "D10"))), text
