"""Seeds that draw everything: cluster, workload, network, faults. Nothing promised may break.

A failing seed prints its number; `roundelay.sim.swarm.scenario(seed, protocol)` is its scenario.
"""

import pytest

from roundelay.sim.swarm import run, scenario

CHUNK = 10


@pytest.mark.parametrize("first", range(0, 150, CHUNK))
def test_totem_keeps_its_promises(first):
    failed = {
        seed: outcome.failures
        for seed in range(first, first + CHUNK)
        if (outcome := run(seed, "totem")).failures
    }
    assert not failed


@pytest.mark.parametrize("first", range(0, 30, CHUNK))
def test_totem_alone_on_a_static_group(first):
    failed = {
        seed: outcome.failures
        for seed in range(first, first + CHUNK)
        if (outcome := run(seed, "totem", static=True)).failures
    }
    assert not failed


def test_a_seed_draws_one_scenario_and_another_draws_another():
    assert scenario(3, "totem") == scenario(3, "totem")
    assert len({scenario(seed, "totem") for seed in range(100)}) == 100


def test_the_swarm_is_broad():
    """What must be drawn somewhere in the seeds that are run."""
    text = "".join(scenario(seed, "totem") for seed in range(150))
    for needed in (
        "crash", "restart", "storage=lost", "storage=torn", "partition", "cut ", "merge",
        "pause", "slow", "drift", "loss=", "duplicate=", "reorder=", "spike=", "corrupt=",
        "size=9000", "packet_bytes=100", "safe=100%", "network bus", "network wan",
        "network switched", "after=",
    ):  # fmt: skip
        assert needed in text, needed
