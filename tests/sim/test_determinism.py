"""The same seed gives the same trace: twice, in two processes, under two hash seeds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roundelay.sim.recording import Recording, RecordingError
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse

FAULTS = """
network lan latency=100us jitter=80us
nodes 5
faults loss=5% duplicate=3% reorder=3% spike=1% corrupt=1%
load messages=300 rate=200/s size=40 safe=20% subset=10%
at 100ms crash b
at 150ms partition a,c d,e
at 250ms restart b storage=torn
at 300ms merge
at 320ms pause d
at 400ms resume d
at 410ms slow e 1ms
run 600ms
end after=300ms
----
"""

CHILD = """
import sys
from roundelay.sim.scenario import parse
from roundelay.sim.runner import ScenarioRunner
story = ScenarioRunner(seed=int(sys.argv[1]))
for block in parse(sys.stdin.read()):
    story.play(block)
print(story.sha256(), len(story.rows))
"""


def play(seed: int, choices: dict[str, str] | None = None) -> ScenarioRunner:
    story = ScenarioRunner(seed=seed, choices=choices)
    for block in parse(FAULTS):
        story.play(block)
    return story


def in_another_process(seed: int, hash_seed: str) -> tuple[str, int]:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(seed)],
        input=FAULTS,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    sha256, rows = child.stdout.split()
    return sha256, int(rows)


def test_one_seed_one_trace_in_two_processes_under_two_hash_seeds():
    here = play(11)
    assert len(here.rows) > 3000
    assert in_another_process(11, "1") == (here.sha256(), len(here.rows))
    assert in_another_process(11, "2") == (here.sha256(), len(here.rows))


def test_another_seed_another_trace():
    assert play(11).sha256() != play(12).sha256()


def test_a_recording_is_the_same_run_without_chance():
    first = play(11)
    recording = Recording.from_json(Recording.of(FAULTS, first).to_json())
    assert len(recording.choices) > 100
    assert recording.replay().sha256() == first.sha256()


def test_a_recording_with_one_choice_less_is_another_run():
    first = play(11)
    assert first.choices is not None
    dropped = next(k for k, v in first.choices.made.items() if v == "lost")
    given = {k: v for k, v in first.choices.made.items() if k != dropped}
    assert play(11, given).sha256() != first.sha256()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 2}', '{"format": 1, "x": 2}'])
def test_what_is_no_recording_is_refused_in_a_sentence(text):
    with pytest.raises(RecordingError, match=r"not a recording|format 2"):
        Recording.from_json(text)


def test_the_simulator_draws_from_seeded_generators_only():
    """The import contracts keep chance out of the cores; here nobody takes the shared generator."""
    root = Path(__file__).parents[2] / "src" / "roundelay" / "sim"
    for path in root.rglob("*.py"):
        lines = [line for line in path.read_text().splitlines() if "import" in line]
        drawn = [line for line in lines if "random" in line or "secrets" in line]
        assert set(drawn) <= {"from random import Random"}, path.name
