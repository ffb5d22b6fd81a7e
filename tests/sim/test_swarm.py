"""Seeds that draw everything: cluster, workload, network, faults. Nothing promised may break.

A failing seed prints its number; `roundelay sim swarm --protocol P --show --first SEED` prints its
scenario.
"""

import re

import pytest

from roundelay.sim.coverage import catalogue
from roundelay.sim.seeds import MISHAPS, scenario
from roundelay.sim.swarm import run

CHUNK = 10

SEEDS = {
    ("totem", False): range(200),
    ("fifo", False): range(100),
    ("dtp", False): range(30),
    ("cm", False): range(30),
    ("pinwheel", False): range(30),
    ("totem", True): range(30),
    ("fifo", True): range(20),
    ("dtp", True): range(10),
    ("cm", True): range(10),
    ("pinwheel", True): range(20),
}
"""By protocol, and whether the group is static."""

COVERING: dict[tuple[str, bool], tuple[int, ...]] = {
    ("totem", False): (42, 81, 113, 157),
    ("fifo", False): (7, 10, 15, 83),
    ("dtp", False): (6, 11, 13, 17, 27, 33),
    ("cm", False): (0, 6, 24, 27, 46, 74, 99),
    ("pinwheel", False): (3, 5, 12, 13, 28, 31, 132),
    ("totem", True): (18, 27, 29),
    ("fifo", True): (21, 22, 24),
    ("dtp", True): (16, 37),
    ("cm", True): (39,),
    ("pinwheel", True): (3, 19),
}
"""Seeds that reach the whole catalogue together. A change of what is drawn, or of a protocol, may
call for others: a campaign with `--json` names the first seed that reached each goal."""

CHUNKS = [(*key, first) for key, seeds in SEEDS.items() for first in seeds[::CHUNK]]


@pytest.mark.parametrize(("protocol", "static", "first"), CHUNKS)
def test_what_is_promised_is_kept(protocol, static, first):
    failed = {
        seed: outcome.failures
        for seed in range(first, first + CHUNK)
        if (outcome := run(seed, protocol, static=static)).failures
    }
    assert not failed


@pytest.mark.parametrize(("protocol", "static"), COVERING)
def test_everything_in_the_catalogue_is_reached(protocol, static):
    missed = set(catalogue(protocol, static=static))
    for seed in COVERING[protocol, static]:
        missed.difference_update(run(seed, protocol, static=static).reached)
    assert not missed


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
        "network switched", "after=", "lose DATA to=", "lose COMMIT", "lose RTOKEN", "lose none",
        "window_packets=", "fail_to_receive_visits=",
    ):  # fmt: skip
        assert needed in text, needed


@pytest.mark.parametrize("protocol", ["dtp", "cm", "pinwheel"])
def test_the_swarm_draws_every_resilience_and_policy_settings(protocol):
    texts = [scenario(seed, protocol) for seed in range(60)]
    drawn = set()
    for text in texts:
        names, resilience = re.findall(r"^nodes (.+)$|resilience=(\d+)", text, re.MULTILINE)[::-1]
        size, given = len(names[0].split()), int(resilience[1])
        drawn.add({size - 1: "all", size // 2: "half", 0: "none"}[given])
    assert drawn == {"none", "half", "all"}
    text = "".join(texts)
    assert ("window_packets=" in text and "batch_packets=" in text) is (protocol == "pinwheel")
    for needed in ("silence_s=", "attempts=", "lose ACK", "lose MSG", "lose REQ"):
        assert needed in text


def test_every_mishap_is_something_that_happens():
    """Each kind of mishap, drawn alone, ends in commands that a story accepts."""
    for protocol in ("totem", "fifo", "dtp"):
        text = "".join(scenario(seed, protocol) for seed in range(60))
        assert text.count("\nat ") > 10 * len(MISHAPS)
