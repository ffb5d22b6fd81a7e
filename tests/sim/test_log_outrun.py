"""A node with an empty disk catches up, though the others append faster than it is sent the log."""

import re

import pytest

from roundelay.core.effects import Kind
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import rewrite

STORY = """engine totem
network lan latency=200us
group packet_bytes=1200
journal catchup_bytes_per_s=100000 idle_bytes_per_s=100000 fetch_window_bytes=4000 \
burst_bytes=2000 live_window_bytes=60000 yield_look_s=0.2 yield_nearer_s=5 yield_share_max=SHARE
nodes a b c
run 300ms
partition a,b c
run 300ms
load messages=4000 rate=80/s size=500 append=100%
run 1s
crash c
restart c storage=lost
merge
run 10s
----
"""
LATE = 2
"""The number of c, which never gets as far as a while that appends at full speed."""
S = 1_000_000_000


def play(share: float) -> ScenarioRunner:
    runner = ScenarioRunner()
    rewrite(STORY.replace("SHARE", str(share)), runner.play)
    return runner


def stored(runner: ScenarioRunner, proc: int, until_s: float) -> int:
    rows = (row for row in runner.rows if row.kind == Kind.STORED and row.proc == proc)
    return max((row.idx or 0 for row in rows if row.t_ns < until_s * S), default=0)


@pytest.fixture(scope="module")
def runs() -> dict[float, ScenarioRunner]:
    return {share: play(share) for share in (0.0, 0.5)}


def test_it_reaches_the_end_and_then_keeps_up(runs):
    runner = runs[0.5]
    caught = [r for r in runner.rows if r.kind == Kind.CAUGHT and r.proc == LATE and r.inc == 1]
    assert caught
    for second in (10.5, 11.5):
        assert stored(runner, LATE, second) > stored(runner, 0, second) - 20
    names = re.findall(r"log (?:look|yield)", " ".join(r.tag for r in runner.rows))
    assert {"log look", "log yield"} <= set(names)


def test_if_nobody_yields_it_is_outrun(runs):
    runner = runs[0.0]
    lags = [stored(runner, 0, s) - stored(runner, LATE, s) for s in (4.5, 7.5, 10.5)]
    assert lags == sorted(lags)
    assert lags[2] > lags[0] + 200
    assert not [r for r in runner.rows if r.kind == Kind.CAUGHT and r.proc == LATE and r.inc == 1]


def test_the_others_append_at_full_speed_again_once_it_is_there(runs):
    """What waited meanwhile is ordered too: in the end nothing is lacking."""
    assert stored(runs[0.5], 0, 11.5) >= stored(runs[0.0], 0, 11.5) - 50


def test_they_give_up_no_more_than_they_may(runs):
    slow, full = (stored(runs[share], 0, 7.5) - stored(runs[share], 0, 4.5) for share in (0.5, 0.0))
    assert 0.45 < slow / full < 0.95
