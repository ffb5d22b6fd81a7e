"""A node that is started fifty times, its storage intact, torn or lost, never reuses a number."""

from random import Random

import pytest

from roundelay.check import check
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.sim.watch import Watch

RESTARTS = 50


def play(seed: int, storage: tuple[str, ...]) -> ScenarioRunner:
    random = Random(f"restarts/{seed}")
    lines = [
        f"seed {seed}",
        "engine totem",
        "network lan latency=100us jitter=50us",
        "nodes a b c",
        "faults loss=1% duplicate=1%",
        "load messages=400 rate=60/s size=40 safe=30%",
    ]
    now = 50
    for _ in range(RESTARTS):
        node = random.choice("abc")
        after = random.choice(("", f" after={random.randint(1, 9)}"))
        lines.append(f"at {now}ms crash {node}{after}")
        now += random.choice((1, 3, 10, 60, 150))
        lines.append(f"at {now}ms restart {node} storage={random.choice(storage)}")
        now += random.choice((1, 3, 10, 60, 150, 400))
    lines += [f"run {now}ms", "end after=6s"]
    story = ScenarioRunner(watch=Watch())
    for block in parse("\n".join(lines) + "\n----\n"):
        story.play(block)
    return story


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "storage", [("kept",), ("torn",), ("lost",), ("kept", "torn", "lost")], ids="-".join
)
def test_no_view_id_twice_and_no_number_reused(seed, storage):
    story = play(seed, storage)
    report = check(story.rows, story.manifest())
    assert report.ok, [f"{v.property}: {v.reason}" for v in report.violated]
    assert sum(row.kind == "recover" for row in story.rows) >= RESTARTS // 2
    members: dict[tuple[int, int], tuple[int, ...]] = {}
    founded: set[tuple[int, int]] = set()
    for row in story.rows:
        if row.kind != "install":
            continue
        assert row.members is not None
        view = (row.c_seq or 0, row.c_rep or 0)
        assert members.setdefault(view, row.members) == row.members
        if row.prev_c is None:  # The view a start begins with: nobody has ever had its id.
            assert view not in founded
            founded.add(view)
