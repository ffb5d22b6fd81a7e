"""An engine of another distribution: installed beside Roundelay, it is an engine like any other.

The distribution is `examples/sequencer`, and nothing of Roundelay knows it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.process.cluster import Cluster

ROOT = Path(__file__).parents[2]
SEQUENCER = ROOT / "examples" / "sequencer"

SEEDS = (0, 20)
"""The first seed, and how many: enough for the sequencer's own goals, and quick."""
OWN_GOALS = {
    "several-in-one",
    "order-before-packet",
    "delivered-without-a-number",
}

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the distribution and nothing else."""
    folder = tmp_path_factory.mktemp("site")
    # No network: what builds the package is here, and what it depends on is not looked for.
    flags = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", *flags, "--target", folder, SEQUENCER)
    subprocess.run([str(word) for word in pip], check=True, timeout=180, cwd=folder)
    return folder


@pytest.fixture
def environment(installed, monkeypatch) -> dict[str, str]:
    """That of processes that find it."""
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    return dict(os.environ)


def roundelay(*words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "roundelay", *words],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def test_without_it_there_is_no_such_engine():
    said = roundelay("sim", "swarm", "--protocol", "sequencer", code=2)
    assert "no engine is called 'sequencer'; there are: " in said


@pytest.mark.parametrize("path", sorted((SEQUENCER / "scenarios").iterdir()), ids=lambda p: p.stem)
def test_its_stories(environment, path):
    roundelay("sim", "run", str(path))


def test_a_swarm_keeps_its_promises_and_reaches_its_own_goals(environment):
    first, seeds = map(str, SEEDS)
    words = ("--protocol", "sequencer", "--first", first, "--seeds", seeds, "--json")
    found = json.loads(roundelay("sim", "swarm", *words))
    assert not found["failed"]
    assert "O5w" not in found["never_tested"]
    assert found["coverage"].keys() >= OWN_GOALS
    assert OWN_GOALS.isdisjoint(found["uncovered"])


def test_a_static_swarm(environment):
    words = ("--protocol", "sequencer", "--static", "--seeds", "5", "--json")
    assert not json.loads(roundelay("sim", "swarm", *words))["failed"]


def test_forged_frames(environment):
    words = ("--engine", "sequencer", "--frames", "4000", "--json")
    found = json.loads(roundelay("bench", "fuzz", *words))
    assert found["exceptions"] == found["stuck"] == 0
    assert found["judged"]


def test_an_exploration(environment):
    words = ("--protocol", "sequencer", "--situation", "messages", "--deviations", "1")
    assert "violation" in roundelay("sim", "explore", *words)


def test_real_nodes_through_a_crash_of_the_sequencer(environment, tmp_path):
    with Cluster(tmp_path, "abc", "sequencer", relay=False) as cluster:
        cluster.start()
        cluster.view()
        cluster.traffic()
        counters = cluster.counters("b")
        assert counters["packets_received"] >= counters["packets_delivered"] / 2
        cluster.kill("a")
        cluster.view("b", "c")
        cluster.traffic("b", "c")
        cluster.start("a")
        cluster.view()
        cluster.traffic()
        whole = cluster.finish()
    found = json.loads(roundelay("check", str(whole), "--json"))
    assert found["ok"], found
    assert found["profile"] == "sequencer safe views"
    for record in cluster.records:
        roundelay("replay", str(record))


def test_a_ring_under_load(environment):
    words = "--engine sequencer --nodes 3 --size 100 --seconds 0.3 --rounds 1 --peer none --json"
    found = json.loads(roundelay("bench", "ring", "--only", "throughput", *words.split()))
    assert found["msgs_per_s"] > 0
