"""ATOP and All-Ack without dummies and null messages, through crashes, partitions and lost frames.

Nobody promises that the last messages of a quiet group are delivered then, so the swarm does not
draw these settings. Here everybody goes on sending, and whatever is not about liveness must hold.
"""

from random import Random

import pytest

from roundelay.check import Standing, Validity, check
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.sim.watch import Watch
from roundelay.trace.schema import Row

ENGINES = (
    "atop dummies=none",
    "atop dummies=switch factor=1 period_s=0.02 threshold_permille=0",
    "atop dummies=none factor=1 period_s=0.02 threshold_permille=0",
    "atop dummies=none policy=given weights=a:3,b:2",
    "allack nulls=no",
)
SEEDS = range(6)


def scenario(engine: str, seed: int) -> str:
    """Three or four nodes that all send all the time, and what happens to them."""
    draw = Random(f"{engine}/{seed}")
    nodes = "abcd"[: draw.choice((3, 4))]
    node = draw.choice(nodes)
    rest = ",".join(n for n in nodes if n != node)
    event, remedy = draw.choice(
        (
            (f"crash {node}", f"restart {node}"),
            (f"partition {node} {rest}", "merge"),
            (f"pause {node}", f"resume {node}"),
        )
    )
    return f"""
engine {engine}
seed {seed}
network lan latency={draw.choice((100, 500))}us jitter={draw.choice((0, 300))}us
nodes {" ".join(nodes)}
faults loss={draw.choice((0, 1, 5))}% duplicate=2% reorder=5%
load messages=600 rate=100/s safe={draw.choice((0, 20, 100))}%
at {draw.randint(100, 900)}ms {event}
at {draw.randint(1000, 1300)}ms {remedy}
run 1500ms
end after=2s
----
"""


def play(text: str) -> ScenarioRunner:
    runner = ScenarioRunner(watch=Watch())
    for block in parse(text):
        runner.play(block)
    return runner


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_delivered_is_delivered_as_promised(engine, seed):
    text = scenario(engine, seed)
    runner = play(text)
    report = check(runner.rows, runner.manifest())
    bad = [
        f"{v.property} {v.validity}: {v.reason}"
        for v in report.verdicts
        if not v.property.startswith("L")
        and report.profile.standing(v.property) is not Standing.OPTIONAL
        and v.validity not in (Validity.OK, Validity.VACUOUS)
    ]
    assert not bad, text
    for name in ("O5", "O1r", "D7"):
        assert report[name].validity is Validity.OK, f"{name} was not put to the test\n{text}"
    assert delivered(runner.rows) > 100, text


def delivered(rows: list[Row]) -> int:
    """Messages that some application has."""
    return len(
        {(r.m_src, r.m_inc, r.m_seq) for r in rows if r.kind == "deliver" and r.layer == "app"}
    )
