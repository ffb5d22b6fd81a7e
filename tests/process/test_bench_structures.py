"""`roundelay bench structures`: both systems are measured, and in a short time."""

import json

import pytest

from roundelay.bench.structures.run import PEER, SYSTEMS, MemberError, measure
from roundelay.cli import main

pytestmark = pytest.mark.process


@pytest.mark.slow
def test_both_systems_in_one_run(capsys):
    words = ["--nodes=2", "--seconds=1", "--rounds=1", "--outstanding=50", "--json"]
    assert main(["bench", "structures", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    ours, peer = found["systems"].values()
    for figures in (ours, peer):
        assert all(value > 0 for value in figures.values())
        assert figures["map_p50_ms"] <= figures["map_p99_ms"]
    assert found["writes_ratio"] == ours["map_writes_per_s"] / peer["map_writes_per_s"]
    assert 0 < 2 * found["hop_p50_ms"] < 1000
    assert found["latency_ratio"] == ours["map_p50_ms"] / peer["map_p50_ms"]


def test_a_process_that_ends_is_told_of(monkeypatch):
    monkeypatch.setitem(SYSTEMS, PEER, "roundelay.no_such_module")
    with pytest.raises(MemberError, match=r"node a of pysyncobj gave no answer.*no_such_module"):
        measure(PEER, 1, 2, 0.1, "off")


@pytest.mark.parametrize("words", [["--nodes=9"], ["--outstanding=1"], ["--seconds=0"]])
def test_what_makes_no_sense_is_refused(words, capsys):
    assert main(["bench", "structures", *words]) == 2
    assert "give " in capsys.readouterr().err
