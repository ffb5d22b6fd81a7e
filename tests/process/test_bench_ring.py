"""`bench ring` and `bench soak` with real processes, as small as they get."""

import json
import subprocess

import pytest

from roundelay.bench.ring import runs
from roundelay.bench.ring.jobs import Cell
from roundelay.bench.ring.peers import corosync
from roundelay.bench.ring.soak import soak
from roundelay.bench.ring.systems import OURS, PEERS
from roundelay.bench.ring.workload import Numbered
from roundelay.cli import main

pytestmark = pytest.mark.process

PATIENT_S = 2.0
"""The token timeout: whatever else runs here, nobody is suspected for it."""


def test_figures_of_ours_and_of_a_peer_in_one_document(capsys):
    if PEERS["pysyncobj"].missing() is not None:
        pytest.skip("PySyncObj is not installed")
    words = "--only throughput latency --peer pysyncobj --nodes 2 --rounds 1 --seconds 0.2 --json"
    assert main(["bench", "ring", *words.split(), "--timeout", str(PATIENT_S)]) == 0
    document = json.loads(capsys.readouterr().out)
    for figures in (document, document["peer"]):
        assert figures["msgs_per_s"] > 0
        assert 0 < figures["p50_ms"] <= figures["p99_ms"]
    assert document["peer"]["name"] == "pysyncobj"
    assert document["ratio"] == document["msgs_per_s"] / document["peer"]["msgs_per_s"]
    assert document["throughput"][0]["cell"]["nodes"] == 2
    times = {entry["system"]: entry["p50_ms"] for entry in document["latency"]}
    assert times["bare UDP"] > 0


@pytest.mark.parametrize(
    "cell",
    [
        Cell(nodes=3, reading="messages", service="safe", timeout_s=PATIENT_S),
        Cell(nodes=2, senders="one", datagram=1400, size=2000, trace=True, timeout_s=PATIENT_S),
        Cell("dtp", nodes=3, timeout_s=PATIENT_S),
        Cell("atop", nodes=3, service="safe", timeout_s=PATIENT_S),
        Cell("allack", nodes=3, senders="one", timeout_s=PATIENT_S),
        Cell(nodes=3, datagram=1400, cipher="aes", timeout_s=PATIENT_S),
        Cell("fc", nodes=3, service="safe", datagram=1400, timeout_s=PATIENT_S),
    ],
    ids=str,
)
def test_every_setting_of_a_run_reaches_its_nodes(cell):
    load = runs.load(OURS, cell, 0.2)
    assert load.messages > 0
    assert load.cpu_s > 0


@pytest.mark.parametrize("name", ["roundelay", "pysyncobj", "corosync-knet", "corosync-udpu"])
def test_every_message_of_a_run_can_be_verified(name):
    system = {OURS.name: OURS, **PEERS}[name]
    if why := system.missing():
        pytest.skip(why)
    cell = Cell(nodes=2, timeout_s=PATIENT_S) if system is OURS else Cell(nodes=2)
    assert runs.load(system, cell, 0.2, verify="all").messages > 0


def test_the_client_in_c_compiles_without_a_warning(tmp_path):
    if why := corosync.why_no_client_in_c():
        pytest.skip(why)
    strict = ("-std=gnu11", "-Wall", "-Wextra", "-Werror")
    command = [corosync.COMPILER, *strict, "-o", tmp_path / "client", corosync.CLIENT, "-lcpg"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


HARNESS = """
#define main client
#include "{client}"
#undef main
int main(int argc, char **argv) {{
  static unsigned char message[MESSAGE_BYTES_MAX];
  nodes = argc;
  read_pools(argv[1]);
  for (uint64_t number = 0; number < 70000; number += 99)
    fwrite(message, 1, build(2, number, message), stdout);
}}
"""


def test_the_client_in_c_builds_the_messages_that_we_build(tmp_path):
    if why := corosync.why_no_client_in_c():
        pytest.skip(why)
    (tmp_path / "harness.c").write_text(HARNESS.format(client=corosync.CLIENT))
    (tmp_path / "pools").write_bytes(corosync.pools_of(("a", "b"), Cell(size=300)))
    assert corosync._compile(tmp_path / "harness.c", tmp_path / "harness") == ""
    built = subprocess.run([tmp_path / "harness", tmp_path / "pools"], capture_output=True)
    ours = Numbered.of("b", Cell(size=300))
    assert built.stdout == b"".join(map(ours.message, range(0, 70_000, 99)))


def test_sealed_groups_next_to_plain_ones_in_one_document(capsys):
    words = "--sealed --nodes 2 --datagram 1400 --rounds 1 --seconds 0.2 --json"
    assert main(["bench", "ring", *words.split(), "--timeout", str(PATIENT_S)]) == 0
    document = json.loads(capsys.readouterr().out)
    for ratios in (document["sealed_ratio"], document["cpu_ratio"]):
        assert ratios.keys() == {"1400"}
        assert all(ratios["1400"][cipher] > 0 for cipher in ("aes", "chacha"))
    assert document["p50_more_ms"].keys() == {"aes", "chacha"}
    assert all(entry["suspicions"] == 0 for entry in document["throughput"])


def test_a_profile_names_functions_of_ours(capsys):
    words = [
        "bench",
        "ring",
        "--profile",
        "--rounds",
        "1",
        "--nodes",
        "2",
        "--seconds",
        "0.2",
        "--json",
    ]
    assert main([*words, "--timeout", str(PATIENT_S)]) == 0
    document = json.loads(capsys.readouterr().out)
    profile, costs = document["profile"], document["costs"]
    assert sum(us for _, us in costs["layers"]) == pytest.approx(costs["us_per_msg"])
    assert 0 < costs["floor_us"] < costs["us_per_msg"]
    assert any(share["name"].startswith("runtime/") for share in profile["functions"])
    assert sum(share["share"] for share in profile["layers"]) == pytest.approx(1.0)
    assert len(profile["layers"]) > 5


def test_a_crash_and_a_return_are_timed():
    (found,) = runs.recovery(Cell(nodes=2, timeout_s=0.2), [1])
    assert found.crash_s > 0.1  # Not before the timeout, give or take.
    assert found.pause_s > 0.1  # Totem delivers nothing before it has a new ring.
    assert 0 < found.rejoin_s < found.restart_s


def test_the_first_view_of_all_is_timed(capsys):
    words = "--only formation --nodes 2 --rounds 1 --json"
    assert main(["bench", "ring", *words.split(), "--timeout", str(PATIENT_S)]) == 0
    (found,) = json.loads(capsys.readouterr().out)["formation"]
    assert (found["nodes"], found["rounds"]) == (2, 1)
    assert 0 < found["formation_s"] == found["formation_s_max"] < PATIENT_S


def test_a_masked_crash_makes_a_pause_that_is_shorter_than_the_way_to_the_new_view():
    timeout_s = 1.0
    (found,) = runs.recovery(Cell("fc", timeout_s=timeout_s), [1])
    assert timeout_s / 10 < found.pause_s < timeout_s / 2 < found.crash_s


def test_an_idle_group_is_looked_at():
    shares = runs.idle(Cell(nodes=2, timeout_s=PATIENT_S), 0.2)
    assert len(shares) == 2
    assert all(0 < share < 1 for share in shares)


@pytest.mark.parametrize("journal", ["none", "interval"])
def test_a_soak_follows_memory(monkeypatch, journal):
    monkeypatch.setattr(runs, "BEAT_S", 0.2)
    told = []
    cell = Cell(nodes=2, timeout_s=PATIENT_S, journal=journal)
    found = soak(cell, 0.8, lambda done, due: told.append(done))
    assert told
    assert found.suspicions == 0
    assert 0 < found.early_mb <= found.peak_mb
    assert found.cpu_us_per_msg > 0
    assert found.cpu_share > 0


def test_a_soak_of_st_counts_recoveries_and_losses():
    found = soak(Cell("st", nodes=2, timeout_s=PATIENT_S), 0.5, lambda done, due: None)
    assert found.lost or not found.recoveries
