"""`bench ring --journal` and `bench soak --journal --kills` with real processes, as small as they
get."""

import json

import pytest

from roundelay.bench.kills.judge import Receipts, judge
from roundelay.bench.kills.rounds import Kind, draw
from roundelay.bench.kills.run import Plan, read, soak
from roundelay.bench.ring import catchup, runs, starts
from roundelay.bench.ring.jobs import Cell
from roundelay.bench.ring.systems import LOGGED, PEERS
from roundelay.cli import main
from roundelay.journal.directory import group_directory

pytestmark = pytest.mark.process

PATIENT_S = 2.0
"""The token timeout: whatever else runs here, nobody is suspected for it."""


def test_groups_with_a_journal_next_to_one_without_in_one_document(capsys, tmp_path):
    words = "--journal off always --nodes 2 --peer none --rounds 1 --seconds 0.2 --json"
    words += " --only throughput latency reads --disk"
    assert main(["bench", "ring", *words.split(), str(tmp_path), "--timeout", str(PATIENT_S)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["journal_ratio"].keys() == {"off", "always"}
    assert all(ratio > 0 for ratio in document["journal_ratio"].values())
    assert all(0 < document["agreed_p50_ms"] < p50 for p50 in document["commit_p50_ms"].values())
    assert document["fdatasync_p50_ms"] > 0
    assert document["read_p50_ms"] > 0
    assert document["reads_per_s"] > 100
    assert list(tmp_path.iterdir()) == [], "journals are removed"


@pytest.mark.parametrize(
    "cell",
    [
        Cell(nodes=3, reading="messages", journal="interval", timeout_s=PATIENT_S),
        Cell(nodes=2, senders="one", size=2000, datagram=1400, journal="off", timeout_s=PATIENT_S),
    ],
    ids=str,
)
def test_what_is_read_from_the_log_is_verified(cell):
    load = runs.load(LOGGED, cell, 0.2)
    assert load.messages > 0
    assert load.cpu_s > 0


def test_the_peer_runs_with_its_journal(tmp_path):
    if PEERS["pysyncobj"].missing() is not None:
        pytest.skip("PySyncObj is not installed")
    cell = Cell(nodes=2, journal="interval")
    assert runs.load(PEERS["pysyncobj"], cell, 0.2, disk=tmp_path).messages > 0


def test_a_fresh_node_catches_up_in_an_idle_group_and_under_load(tmp_path):
    cell = Cell(size=1000, journal="off", timeout_s=PATIENT_S)
    found = catchup.measure(cell, 2_000_000, 0.5, 1.0, tmp_path, lambda done, due: None)
    assert found.mb >= 2
    assert found.idle_mb_per_s > 0
    assert found.full_msgs_per_s > 0
    assert found.during_msgs_per_s > 0


def test_all_nodes_start_again_with_a_short_log_and_a_long_one(tmp_path):
    cell = Cell(nodes=2, size=1000, journal="interval", timeout_s=PATIENT_S)
    short, long = starts.measure(cell, 2_000_000, tmp_path, lambda done, due: None)
    assert (short.mb, long.mb) == (0.001, 2.001)
    for start in (short, long):
        assert 0 < start.joined_s < start.killed_s


def test_kills_and_damage_break_no_promise(capsys, tmp_path):
    """Two rounds with five nodes; the command has two hundred. The seed draws the kill of two, with
    three that go on alone, and a damaged record."""
    first, second = draw("abcde", "always", 2, 67)
    assert (first.kind, len(first.victims), first.alone) == (Kind.MINORITY, 2, True)
    assert second.kind == Kind.DAMAGED
    words = ["bench", "soak", "--journal", "--kills", "--nodes", "5", "--rounds", "2", "--json"]
    assert main([*words, "--seed", "67", "-o", str(tmp_path / "journals")]) == 0
    document = json.loads(capsys.readouterr().out)
    verdict = document["verdict"]
    assert document["sound"]
    assert document["rounds_of"] == {"minority": 1, "damaged": 1}
    assert document["kills"] >= 3
    assert verdict["confirmed"] > 100
    assert verdict["entries"] >= verdict["confirmed"]


def test_the_judge_reads_what_nodes_have_written(tmp_path):
    """With one bit of a real journal changed, it objects. Before, a node loses its disk, others are
    killed while they fill it, and then all lose their power, after which two go on."""
    outcome = soak(Plan(rounds=2, per_s=50, seed=34), tmp_path, lambda done, due: None)
    assert outcome.sound, outcome
    assert outcome.rounds_of == {Kind.DONORS: 1, Kind.POWER: 1}
    assert outcome.donors, "nobody was killed while it filled the journal"
    (whole,) = read(tmp_path, "a")
    assert not whole.breaches
    (segment, *_) = sorted((group_directory(tmp_path / "a", "kills") / "log").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[data.index(b"client-0/1/")] ^= 1
    segment.write_bytes(data)
    (damaged,) = read(tmp_path, "a")
    verdict = judge(Receipts(), [damaged])
    assert not verdict.kept
    assert "is damaged at byte" in verdict.words[0]
