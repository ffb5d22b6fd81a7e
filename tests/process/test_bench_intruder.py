"""`bench intruder` with real processes, as small as it gets."""

import json

import pytest

from roundelay.bench.ring.cluster import RunError
from roundelay.cli import main
from roundelay.cli.bench import intruder

pytestmark = pytest.mark.process


def test_an_intruder_changes_no_view_and_delivers_nothing(capsys):
    words = "--seconds 1 --rounds 1 --flood 20000 --datagram 1400 --floor --timeout 2 --json"
    assert main(["bench", "intruder", *words.split()]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["views_changed"] == 0
    assert document["foreign_delivered"] == 0
    assert document["throughput_ratio"] > 0
    assert document["floor_ratio"] > 0
    assert document["rmem_max"] is None or document["rmem_max"] > 0
    quiet, attacked, drained = document["sessions"]
    assert (quiet["kind"], attacked["kind"], drained["kind"]) == ("quiet", "attacked", "drained")
    assert quiet["sent"] == {}
    sent, drops = attacked["sent"], attacked["drops"]
    assert all(sent[kind] > 0 for kind in ("flood", "replayed", "flipped", "forged"))
    for reason in ("foreign", "unproven", "replay", "seal", "plain", "version"):
        assert drops[reason] > 0, reason
    assert sum(drops.values()) <= sum(sent.values()) + 1000
    assert attacked["intruder_cpu"] > 0
    assert drained["drain_cpu"] > 0
    assert not drained["drops"].get("foreign")


def test_nodes_that_fail_end_the_command_with_a_sentence(capsys, monkeypatch):
    def measure(args):
        raise RunError("node a ended early")

    monkeypatch.setattr(intruder, "_measure", measure)
    assert main(["bench", "intruder"]) == 2
    assert capsys.readouterr().err.startswith("roundelay bench: node a ended early")
