"""How groups with and without a journal are compared, and what of it is refused."""

import itertools

import pytest

from roundelay.bench.ring import disk, journals, runs
from roundelay.bench.ring.catchup import Catchup, per_s
from roundelay.bench.ring.cluster import SplitError
from roundelay.bench.ring.disk import Disk
from roundelay.bench.ring.jobs import Cell
from roundelay.bench.ring.runs import Load
from roundelay.bench.ring.systems import FLOOR, PEERS
from roundelay.cli import main
from roundelay.cli.bench import ring_journal
from roundelay.cli.bench.ring_journal import headline


def quiet(done, total):
    pass


@pytest.fixture
def disks(monkeypatch):
    """A disk that becomes slower with every round."""
    found = (Disk(1.0 + i, 9.0, 3e8 / (1 + i), 1e-9) for i in itertools.count())
    monkeypatch.setattr(disk, "measure", lambda directory: next(found))


def test_ratios_are_taken_within_a_round_and_every_other_round_is_turned_around(
    monkeypatch, disks, tmp_path
):
    rates = {
        "none": iter((100.0, 400.0, 100.0)),
        "off": iter((90.0, 320.0, 100.0)),
        "always": iter((50.0, 100.0, 75.0)),
    }
    asked = []

    def load(system, cell, seconds, disk):
        assert disk == tmp_path
        asked.append((cell.journal, system.module.rpartition(".")[2]))
        cpu_s = 1.5 if cell.journal == "off" else 1.0
        return Load(next(rates[cell.journal]), 1000, cpu_s, 10.0, 0)

    monkeypatch.setattr(runs, "load", load)
    found, seen = journals.throughput([Cell()], ("off", "always"), [], 1.0, 3, tmp_path, quiet)
    off, always = found
    forth = [("none", "member"), ("off", "log_member"), ("always", "log_member")]
    assert asked == [*forth, *reversed(forth), *forth]
    assert (off.plain_msgs_per_s, off.msgs_per_s) == (100.0, 100.0)
    assert (off.ratio, off.lowest, off.highest, off.cpu_ratio) == (0.9, 0.8, 1.0, 1.5)
    assert (always.ratio, always.cell.journal, always.peer_msgs_per_s) == (0.5, "always", None)
    assert len(seen) == 3


def test_a_rate_is_compared_with_what_all_nodes_write_to_the_disk_of_the_same_round(
    monkeypatch, disks, tmp_path
):
    cell = Cell(size=1000, nodes=3)
    most = journals.floor(3e8, cell)
    assert 0.99e5 < most < 1e5, "300 MB/s are 100 MB/s for each of three nodes, heads included"
    rates = {"none": iter((2e5, 2e5)), "always": iter((most, most / 4))}
    monkeypatch.setattr(
        runs, "load", lambda _, cell, seconds, disk: Load(next(rates[cell.journal]), 1, 1.0, 1.0, 0)
    )
    (found,), _ = journals.throughput([cell], ("always",), [], 1.0, 2, tmp_path, quiet)
    assert found.disk_share == pytest.approx(0.75), "1 in the first round, 1/2 on a slower disk"


def test_the_kernels_time_for_the_bytes_bounds_the_ratio(monkeypatch, disks, tmp_path):
    cell = Cell(size=1000, nodes=3)
    bound = journals.at_most(3e-6, 1e-9, cell)
    assert bound == pytest.approx(0.5, abs=0.01), "as much again as the messages cost by themselves"
    assert journals.at_most(3e-6, 0.0, cell) == 1.0
    load = Load(100.0, 1000, 3e-3, 10.0, 0)
    monkeypatch.setattr(runs, "load", lambda _, cell, seconds, disk: load)
    (found,), _ = journals.throughput([cell], ("off",), [], 1.0, 2, tmp_path, quiet)
    assert found.ratio_at_most == bound


def test_the_heads_of_small_packets_count():
    assert journals.floor(1e8, Cell(datagram=1400)) < 0.95 * journals.floor(1e8, Cell())


def test_the_peer_runs_with_its_own_journal_in_the_same_rounds(monkeypatch, disks, tmp_path):
    def load(system, cell, seconds, disk):
        ours = system.name == "roundelay"
        assert ours or (cell.journal, disk) == ("interval", tmp_path)
        return Load(100.0 if ours else 5.0, 1000, 1.0, 10.0, 0)

    monkeypatch.setattr(runs, "load", load)
    peers = [PEERS["pysyncobj"]]
    (found,), _ = journals.throughput([Cell()], ("always",), peers, 1.0, 2, tmp_path, quiet)
    assert found.peer_msgs_per_s == 5.0


def test_a_round_that_split_counts_for_nothing_but_is_told(monkeypatch, disks, tmp_path):
    outcomes = {"none": iter((100.0, 100.0)), "off": iter((None, 80.0))}

    def load(system, cell, seconds, disk):
        if (rate := next(outcomes[cell.journal])) is None:
            raise SplitError("a false suspicion")
        return Load(rate, 1000, 1.0, 10.0, 0)

    monkeypatch.setattr(runs, "load", load)
    (off,), _ = journals.throughput([Cell()], ("off",), [], 1.0, 2, tmp_path, quiet)
    assert (off.ratio, off.splits) == (0.8, 1)


def test_commits_are_compared_with_deliveries_of_the_same_round(monkeypatch, disks, tmp_path):
    times = {"none": iter((0.001, 0.005, 0.002)), "always": iter((0.003, 0.006, 0.005))}
    hops = iter((0.0001, 0.0003, 0.0002))

    def latencies(system, cell, per_s, seconds, disk=None):
        return [next(hops if system is FLOOR else times[cell.journal])] * 4

    monkeypatch.setattr(runs, "latencies", latencies)
    (found,) = journals.latency([Cell()], ("always",), [], 100.0, 1.0, 3, tmp_path, quiet)
    assert (found.plain_p50_ms, found.p50_ms, found.p99_ms) == (2.0, 5.0, 5.0)
    assert found.more_ms == pytest.approx(2.0)
    assert found.fdatasync_p50_ms == 2.0
    assert found.hop_p50_ms == pytest.approx(0.2)


def test_the_bare_disk_is_measured_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "WRITTEN_BYTES", 2 * disk.BLOCK_BYTES)
    monkeypatch.setattr(disk, "SYNCS", 3)
    found = disk.measure(tmp_path)
    assert 0 < found.fdatasync_ms <= found.fdatasync_p99_ms
    assert found.bytes_per_s > 0
    assert 0 < found.cpu_s_per_byte < 1e-6
    assert list(tmp_path.iterdir()) == []


def test_growth_is_taken_between_the_first_and_the_last_point_inside():
    points = [(0.0, 0), (1.0, 100), (2.0, 400), (3.0, 500), (4.0, 9000)]
    assert per_s(points, 0.5, 3.5) == 200.0
    assert per_s(points, 3.5, 4.5) == 0.0


def test_what_a_group_keeps_while_a_node_catches_up():
    found = Catchup(100.0, 1.0, 100.0, 50.0, 9.0, True, 1000.0, 850.0)
    assert found.ratio == 0.85
    assert Catchup(100.0, 1.0, 100.0, 50.0, 9.0, True, 0.0, 0.0).ratio == 0.0


def test_the_headline_has_the_figures_of_each_policy():
    def entry(policy, **figures):
        return {"cell": {"journal": policy}, **figures}

    document = {
        "throughput": [
            entry("off", ratio=0.9, disk_share=0.2, ratio_at_most=0.8, peer_msgs_per_s=5.0),
            entry("always", ratio=0.7, disk_share=0.1, ratio_at_most=0.8, peer_msgs_per_s=5.0),
            entry("always", ratio=0.1, disk_share=0.1, ratio_at_most=0.8, peer_msgs_per_s=6.0),
        ],
        "latency": [
            entry(
                "always",
                plain_p50_ms=0.5,
                p50_ms=2.5,
                p99_ms=6.0,
                fdatasync_p50_ms=1.0,
                hop_p50_ms=0.1,
                peer_p50_ms=None,
            )
        ],
        "reads": [entry("always", p50_ms=0.5, reads_per_s=9.0)],
        "catchup": [
            {
                "idle_mb_per_s": 210.0,
                "loaded_mb_per_s": 64.0,
                "loaded_s": 40.0,
                "loaded_caught": True,
                "full_msgs_per_s": 100.0,
                "during_msgs_per_s": 90.0,
            }
        ],
    }
    assert headline(document) == {
        "journal_ratio": {"off": 0.9, "always": 0.7},
        "disk_share": {"off": 0.2, "always": 0.1},
        "ratio_at_most": {"off": 0.8, "always": 0.8},
        "peer": {"name": "pysyncobj", "msgs_per_s": 5.0},
        "agreed_p50_ms": 0.5,
        "commit_p50_ms": {"always": 2.5},
        "commit_p99_ms": {"always": 6.0},
        "fdatasync_p50_ms": 1.0,
        "hop_p50_ms": 0.1,
        "read_p50_ms": 0.5,
        "reads_per_s": 9.0,
        "catchup_mb_per_s": 210.0,
        "catchup_loaded_mb_per_s": 64.0,
        "catchup_loaded": {"ended": True, "seconds": 40.0},
        "catchup_ring_ratio": 0.9,
    }


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--journal always --sealed", "leave --sealed"),
        ("--journal always --full", "leave --sealed"),
        ("--journal always --service safe", "no service"),
        ("--journal always --only idle", "--only takes throughput"),
        ("--journal off --only start", "lets nobody go on"),
        ("--journal always --fill 0", "--fill 0"),
        ("--journal always --disk /no/such/place", "is no directory"),
        ("--disk /tmp", "add --journal"),
        ("--only reads", "need --journal"),
    ],
)
def test_what_cannot_be_compared_is_refused(words, why, capsys):
    assert main(["bench", "ring", *words.split()]) == 2
    assert why in capsys.readouterr().err


def test_a_policy_alone_measures_one_cell(monkeypatch):
    asked = []

    def measure(cells, peers, args, machine):
        asked.extend(cells)
        return 0

    monkeypatch.setattr(ring_journal, "measure", measure)
    assert main(["bench", "ring", "--journal", "off", "--peer", "none"]) == 0
    assert asked == [Cell()]
    assert asked[0].journal == "none", "each policy is put into a cell where it is measured"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--kills", "--kills needs --journal"),
        ("--journal --kills --nodes 2", "3 to 9"),
        ("--journal --kills --rounds 0", "at least 1"),
        ("--journal --kills -o /proc/nothing", "-o /proc/nothing"),
    ],
)
def test_a_soak_that_cannot_be_is_refused(words, why, capsys):
    assert main(["bench", "soak", *words.split()]) == 2
    assert why in capsys.readouterr().err
