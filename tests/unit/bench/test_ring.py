"""What a measurement of real nodes is believed for, and what it refuses."""

import dataclasses
from typing import cast

import pytest

from roundelay.bench.ring import figures, runs, workload
from roundelay.bench.ring.cluster import Cluster, RunError, SplitError
from roundelay.bench.ring.figures import QUICK, full, quantile
from roundelay.bench.ring.jobs import Cell, Job
from roundelay.bench.ring.runs import Load, OrderError, verify
from roundelay.bench.ring.soak import Soak
from roundelay.bench.ring.systems import OURS, PEERS
from roundelay.bench.ring.workload import END, POOL, DisorderError, Ledger, pool
from roundelay.cli import main
from roundelay.transport.address import free_addresses


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(("a", "b"))


def test_a_ledger_follows_two_senders_to_their_end(ledger):
    ledger.add("a", 0, pool("a", 100)[:3])
    ledger.add("b", 0, [END])
    assert not ledger.complete
    ledger.add("a", 3, [pool("a", 100)[3], END])
    assert ledger.complete
    assert ledger.counts() == {"a": 5, "b": 1}
    assert ledger.count == 6


@pytest.mark.parametrize("number", [2, 4], ids=["again", "gap"])
def test_a_ledger_convicts_a_message_out_of_turn(ledger, number):
    messages = pool("a", 100)
    ledger.add("a", 0, messages[:3])
    with pytest.raises(DisorderError, match=f"message {number} of a where 3 was due"):
        ledger.add("a", number, messages[number : number + 1])


def test_a_ledger_convicts_a_message_that_is_another(ledger):
    with pytest.raises(DisorderError, match="message 1 of a reads b'a02"):
        ledger.add("a", 0, [pool("a", 100)[0], pool("a", 100)[2]])


def test_a_ledgers_hash_tells_orders_apart():
    first, second = Ledger(("a", "b")), Ledger(("a", "b"))
    first.order("a", 0)
    first.order("b", 0)
    second.order("b", 0)
    second.order("a", 0)
    assert first.counts() == second.counts()
    assert first.digest != second.digest


def test_messages_of_a_pool_differ_and_have_their_size():
    for size in (8, 100, 10_000):
        messages = pool("a", size)
        assert len(set(messages)) == POOL
        assert {len(message) for message in messages} == {size}


def results(**changes):
    same = {"counts": {"a": 5, "b": 0}, "digest": 7}
    return {"a": {**same, "sent": 5}, "b": {**same, "sent": 0, **changes}}


def test_nodes_that_agree_are_believed():
    verify(results())


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"digest": 8}, "nodes a and b delivered in different orders"),
        ({"counts": {"a": 4, "b": 0}}, "node b delivered {'a': 4}, but {'a': 5} were sent"),
        ({"sent": 1}, "node a delivered {'a': 5}, but {'a': 5, 'b': 1} were sent"),
    ],
)
def test_nodes_that_do_not_agree_are_convicted(changes, sentence):
    with pytest.raises(OrderError) as caught:
        verify(results(**changes))
    assert str(caught.value) == sentence


def test_a_process_that_ends_early_is_told_of_with_its_last_words():
    with Cluster("roundelay.bench.no_such_module") as cluster:
        cluster.start(Job("idle", "a", free_addresses("a")))
        with pytest.raises(RunError, match=r"node a ended early: .*no_such_module"):
            cluster.expect("ready", "a", 60)


def test_a_node_that_cannot_start_says_why():
    with Cluster(OURS.module) as cluster:
        cluster.start(Job("idle", "a", {"a": "127.0.0.1:99999"}))
        with pytest.raises(RunError, match=r"node a failed: ConfigError: .*no port between"):
            cluster.expect("ready", "a", 60)


def test_a_job_survives_its_way_to_a_process():
    job = Job("pace", "a", free_addresses("ab"), ("a",), Cell(size=7, trace=True), beat_s=0.5)
    assert Job.from_json(job.to_json()) == job


def test_the_full_table_has_no_cell_twice_and_holds_the_quick_one():
    cells = full()
    assert len(set(cells)) == len(cells)
    assert set(QUICK) <= set(cells)
    for field in dataclasses.fields(Cell):
        if field.name not in ("engine", "timeout_s", "check", "cipher", "journal"):
            assert len({getattr(cell, field.name) for cell in cells}) > 1, field.name


def test_quantiles():
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([float(i) for i in range(1, 101)], 0.99) == 99.0
    assert quantile([5.0], 0.99) == 5.0


def test_ratios_are_taken_within_a_round(monkeypatch):
    """Rounds of 100 to 10 and 300 to 60 are ratios of 10 and 5, though medians would say 5.7."""
    peer = PEERS["pysyncobj"]
    rates = {"roundelay": iter((100.0, 300.0)), "pysyncobj": iter((10.0, 60.0))}
    asked = []

    def load(system, cell, seconds):
        asked.append((system.name, cell.datagram))
        return Load(next(rates[system.name]), 1000, 0.002, 10.0, 0)

    monkeypatch.setattr(runs, "load", load)
    (found,) = figures.throughput(
        [Cell(datagram=1400)], [peer], 1.0, 2, report=lambda done, total: None
    )
    assert found.msgs_per_s == 200.0
    assert found.cpu_us_per_msg == pytest.approx(2.0)
    assert found.peers["pysyncobj"].ratio == 7.5
    assert asked == [("pysyncobj", 60_000), ("roundelay", 1400)] * 2


def test_a_round_that_split_counts_for_nothing_but_is_told(monkeypatch):
    outcomes = iter((None, 300.0))

    def load(system, cell, seconds):
        if (rate := next(outcomes)) is None:
            raise SplitError("a false suspicion")
        return Load(rate, 1000, 0.002, 10.0, 0)

    monkeypatch.setattr(runs, "load", load)
    (found,) = figures.throughput([Cell()], [], 1.0, 2, report=lambda done, total: None)
    assert (found.msgs_per_s, found.splits) == (300.0, 1)


@pytest.mark.parametrize(
    ("suspicions", "peak_mb", "sound"), [(0, 110.0, True), (1, 110.0, False), (0, 130.0, False)]
)
def test_a_soak_is_sound_without_suspicions_and_growth(suspicions, peak_mb, sound):
    assert Soak(5, 60.0, 1, 1.0, suspicions, 100.0, peak_mb).sound is sound


@pytest.mark.parametrize(
    ("recoveries", "lost", "sound"), [(0, 0, True), (0, 3, True), (2, 3, True), (2, 0, False)]
)
def test_a_soak_is_not_sound_if_what_was_not_lost_is_made_good_for(recoveries, lost, sound):
    assert Soak(5, 60.0, 1, 1.0, 0, 100.0, 100.0, recoveries, lost).sound is sound


@pytest.mark.parametrize(
    "words",
    [
        ["ring", "--nodes", "1"],
        ["ring", "--engine", "fifo"],
        ["ring", "--engine", "totem", "causal"],
        ["ring", "--size", "4"],
        ["ring", "--datagram", "100"],
        ["ring", "--timeout", "0"],
        ["ring", "--seconds", "0"],
        ["ring", "--peer", "carrier-pigeon"],
        ["soak", "--minutes", "0"],
        ["soak", "--nodes", "1"],
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(words, capsys):
    assert main(["bench", *words]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("roundelay bench: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_pool_fits_the_head_of_its_messages():
    assert len(workload._head("a", POOL - 1)) <= 8


class Said:
    """A cluster that has said this."""

    def __init__(self, *said):
        self._said = iter(said)

    def hear(self, limit_s):
        return next(self._said)


def test_the_longest_pause_is_of_a_survivor_and_not_over_before_the_crash():
    said = Said(
        ("b", {"view": ["b"], "at_s": 5.0, "pauses": [(1.0, 3.0), (4.5, 0.5)]}),
        ("c", {"view": ["a"], "at_s": 5.0, "pauses": [(4.0, 9.0)]}),
        ("a", {"joining": 5.0}),
        ("a", {"view": ["a", "b"], "at_s": 6.0, "pauses": [(2.1, 0.2), (6.1, 0.7)]}),
        ("b", {"view": ["a", "b"], "at_s": 5.5, "pauses": [(5.6, 0.6)]}),
    )
    found = runs._await_view(cast("Cluster", said), ("a", "b"))
    assert found.at_s == 6.0
    assert found.pause_s(2.0) == 0.7
    assert found.pause_s(0.5) == 3.0
