"""What a measurement of real nodes is believed for, and what it refuses."""

import dataclasses
import itertools
import json
from typing import cast

import pytest

from roundelay.bench.ring import (
    catchup,
    disk,
    figures,
    jobs,
    member,
    profile,
    runs,
    schedule,
    starts,
    workload,
)
from roundelay.bench.ring.cluster import Cluster, RunError, SplitError
from roundelay.bench.ring.figures import QUICK, full, quantile
from roundelay.bench.ring.floor import cpu_us_per_datagram
from roundelay.bench.ring.jobs import Cell, Job, Verify
from roundelay.bench.ring.peers import corosync
from roundelay.bench.ring.runs import Load, OrderError, verify
from roundelay.bench.ring.schedule import Part, Schedule
from roundelay.bench.ring.soak import Soak
from roundelay.bench.ring.systems import OURS, PEERS
from roundelay.bench.ring.workload import END, POOL, DisorderError, Ledger, draw, pool
from roundelay.cli import main
from roundelay.cli.bench import ring_profile
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


SENDERS = ("a", "b")


def all_of(sender: str, count: int) -> list[bytes]:
    built = workload.Numbered.of(sender, Cell())
    return [built.message(i) for i in range(count)]


def test_a_ledger_that_verifies_all_follows_them_to_the_end():
    ledger = Ledger(SENDERS, workload.expected(SENDERS, Cell(), "all"))
    ledger.add("a", 0, all_of("a", 300))
    ledger.add("b", 0, [*all_of("b", 2), END])
    assert not ledger.complete
    ledger.add("a", 300, [END])
    assert ledger.complete


@pytest.mark.parametrize(
    "wrong",
    [
        lambda message: message[:-1] + bytes([message[-1] ^ 1]),
        lambda message: message[:-1],
        lambda message: message + b".",
        lambda message: workload.Numbered.of("b", Cell()).message(1),
        lambda message: workload.Numbered.of("a", Cell()).message(1 + 256 * POOL),
    ],
    ids=["last byte", "short", "long", "sender", "number"],
)
def test_a_ledger_that_verifies_all_convicts_any_message_that_is_another(wrong):
    messages = all_of("a", 4)
    messages[1] = wrong(messages[1])
    sloppy = Ledger(SENDERS)
    sloppy.add("a", 0, [messages[1], pool("a", 100)[1]])  # It looks at the last one only.
    ledger = Ledger(SENDERS, workload.expected(SENDERS, Cell(), "all"))
    with pytest.raises(DisorderError, match=r"message 1 of a has .* not what was sent"):
        ledger.add("a", 0, messages)


def test_what_is_sent_is_what_is_expected():
    kinds: tuple[Verify, ...] = ("last", "all")
    for compared in kinds:
        sent = list(itertools.islice(workload.outgoing("a", Cell(size=50), compared), 3 * POOL))
        ledger = Ledger(("a",), workload.expected(("a",), Cell(size=50), compared))
        ledger.add("a", 0, sent)
        assert {len(message) for message in sent} == {50}


def test_a_schedule_corrects_what_was_planned():
    found = Schedule([Part("load", 4, 2.0), Part("crash", 2, 10.0)])
    assert found.left_s == 28.0
    found.note("load", 1, 4.0)
    assert found.left_s == 3 * 4.0 + 2 * 20.0  # Twice as slow as planned, all of it.
    assert found.share == 4.0 / 56.0
    found.note("load", 3, 12.0)
    found.note("crash", 1, 5.0)
    assert found.left_s == 5.0  # What crashes took is known now.
    found.note("crash", 1, 5.0)
    assert (found.left_s, found.share) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("--nodes 2 3 --sizes equal uniform", 5),
        ("--sealed --nodes 2 3", 2),
        ("--journal off always --nodes 2 3", 5),
        ("--profile", 2),
    ],
)
def test_a_command_does_as_many_steps_as_it_planned(words, parts, monkeypatch, tmp_path, capsys):
    pytest.importorskip("cryptography")
    schedules = []

    class Seen(Schedule):
        def __init__(self, planned):
            super().__init__(planned)
            self.planned = {part.name: part.steps for part in planned}
            schedules.append(self)

    def caught_up(*given):
        for i in range(catchup.STEPS):
            given[-1](i + 1, catchup.STEPS)
        return catchup.Catchup(1.0, 1.0, 1.0, 1.0, 1.0, True, 1.0, 1.0)

    def started(*given):
        for i in range(starts.STEPS):
            given[-1](i + 1, starts.STEPS)
        return [starts.Start(1.0, 1.0, 1.0)] * starts.STEPS

    load = Load(1.0, 1000, 1.0, 1.0, 0)
    crash = runs.Recovery(1.0, 1.0, 1.0, 1.0)
    for module, name, fake in (
        (schedule, "Schedule", Seen),
        (runs, "load", lambda *given, **named: load),
        (runs, "latencies", lambda *given: [1.0]),
        (runs, "reads", lambda *given: ([1.0], 1.0)),
        (runs, "idle", lambda *given: [1.0]),
        (runs, "formation", lambda *given: 1.0),
        (runs, "recovery", lambda *given: [crash]),
        (catchup, "measure", caught_up),
        (starts, "measure", started),
        (disk, "measure", lambda directory: disk.Disk(1.0, 1.0, 1e8, 1e-9)),
        (profile, "read", lambda file: profile.Profile([profile.Share("Python", 1.0, 1)], [])),
        (profile, "cpu_us_per_datagram", lambda *given: 1.0),
    ):
        monkeypatch.setattr(module, name, fake)
    peer = [] if "--sealed" in words else ["--peer", "none"]
    assert main(["bench", "ring", *words.split(), *peer, "--rounds", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["roundelay"]
    (found,) = schedules
    assert len(found.planned) == parts
    assert found._done == found.planned


def test_the_floor_is_what_the_datagrams_of_a_run_cost():
    """10,000 messages in 100 packets, each to two others, and 50 tokens."""
    load = Load(1.0, 10_000, 1.0, 1.0, 0, packets=100, tokens=50)
    asked = []

    def us(size, together):
        asked.append((size, together))
        return 8.0 if size > 1000 else 4.0

    floor = profile.floor_of(Cell(nodes=3, size=100), load, us)
    assert asked == [(10_064, 64), (100, 1)]
    assert floor.us_per_msg == pytest.approx(0.02 * 8.0 + 0.005 * 4.0)
    small = profile.floor_of(Cell(nodes=3, size=100, datagram=1400), load, us)
    assert small.datagram_bytes == 1400


def test_the_costs_of_layers_add_up():
    shares = [profile.Share("the engine", 0.75, 1), profile.Share("Python", 0.25, 1)]
    floor = profile.Floor(1400, 0.02, 8.0, 0.005, 4.0)
    found = profile.Profile(shares, [])
    costs = profile.Costs(2.0, profile.by_layer(found, 2.0), floor.us_per_msg, floor)
    assert [us for _, us in costs.layers] == [1.5, 0.5]
    text = ring_profile.table(costs)
    assert "the engine                  1.500 us  75.0%" in text
    assert "nothing but system calls    0.180 us   9.0%" in text
    assert "all layers together 500,000" in text


def test_bare_system_calls_cost_something():
    alone = cpu_us_per_datagram(1400, 1)
    assert alone > 0
    assert cpu_us_per_datagram(60_000) > 0


def test_peers_are_asked_for_by_their_kind_or_by_their_own_names():
    assert {p.variant for p in PEERS.values() if "corosync" in p.asked_for_by} == {"knet", "udpu"}
    assert [p.variant for p in PEERS.values() if "corosync-udpu" in p.asked_for_by] == ["udpu"]


def test_settings_that_are_no_defaults_are_known():
    assert OURS.unusual() == {"queue_bytes": jobs.QUEUE_BYTES}
    assert corosync._totem("knet") == corosync.DEFAULTS
    assert corosync._totem("udpu")["transport"] == "udpu"


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


def test_without_one_order_each_senders_own_is_compared():
    mine, yours, wrong = (Ledger(("a", "b"), in_one_order=False) for _ in range(3))
    for ledger, order in ((mine, "ab"), (yours, "ba")):
        for sender in order:
            ledger.order(sender, 0)
    wrong.order("a", 0, 2)
    wrong.order("b", 0)
    assert mine.digest == yours.digest != wrong.digest


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


@pytest.mark.parametrize(("sizes", "most"), [("equal", 100), ("uniform", 150), ("lognormal", 2000)])
def test_sizes_are_spread_around_their_mean_and_the_same_in_every_run(sizes, most):
    drawn = draw("a", 100, sizes)
    assert sum(drawn) / len(drawn) == pytest.approx(100, rel=0.005)
    assert min(drawn) >= 8
    assert max(drawn) == most
    assert [*map(len, pool("a", 100, sizes))] == drawn == draw("a", 100, sizes)
    if sizes != "equal":
        assert len(set(drawn)) > 50
        assert min(drawn) <= 50
        assert max(drawn) >= 150
        assert drawn != draw("b", 100, sizes)
        assert sorted(drawn) == sorted(draw("b", 100, sizes))


@pytest.mark.parametrize("sizes", ["equal", "uniform", "lognormal"])
def test_a_reader_can_tell_whether_messages_of_any_size_are_in_their_place(sizes):
    ledger = Ledger(("a",))
    messages = pool("a", 100, sizes) * 2
    ledger.add("a", 0, messages[:100])
    ledger.add("a", 100, messages[100:])
    with pytest.raises(DisorderError):
        ledger.add("a", len(messages), messages[1:2])


def test_the_full_table_has_no_cell_twice_and_holds_the_quick_one():
    cells = full()
    assert len(set(cells)) == len(cells)
    assert set(QUICK) <= set(cells)
    for field in dataclasses.fields(Cell):
        if field.name not in (
            "engine",
            "timeout_s",
            "check",
            "cipher",
            "journal",
            "pattern",
            "queue",
            "options",
        ):
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

    def load(system, cell, seconds, verify):
        asked.append((system.name, cell.datagram))
        return Load(next(rates[system.name]), 1000, 0.002, 10.0, 0)

    monkeypatch.setattr(runs, "load", load)
    (found,) = figures.throughput(
        [Cell(datagram=1400)], [peer], 1.0, 2, report=lambda done, total: None
    )
    assert found.msgs_per_s == 200.0
    assert found.cpu_us_per_msg == pytest.approx(2.0)
    assert found.peers["pysyncobj"].ratio == 7.5
    assert asked == [("pysyncobj", 60_000), ("roundelay", 1400), ("roundelay", 1400), asked[0]]
    assert found.compared is None


def test_cells_are_compared_with_the_first_that_has_the_same_to_do(monkeypatch):
    """The machine is ten times as slow in the second round, and the third one splits."""
    plain, traced, small = Cell(), Cell(trace=True), Cell(datagram=1400)
    rates = {
        plain: iter((100.0, 10.0, 1.0)),
        traced: iter((60.0, 8.0, None)),
        small: iter((3.0, 2.0, 1.0)),
    }
    asked = []

    def load(system, cell, seconds, verify):
        asked.append(cell)
        if (rate := next(rates[cell])) is None:
            raise SplitError("a false suspicion")
        return Load(rate, 1000, 1.0 / rate, 10.0, 0)

    monkeypatch.setattr(runs, "load", load)
    cells = [plain, small, traced]
    found = figures.throughput(cells, [], 1.0, 3, report=lambda done, total: None)
    in_turn = [plain, traced, small]
    assert asked == [*in_turn, *reversed(in_turn), *in_turn]
    assert [f.cell for f in found] == cells
    ratios = [f.compared for f in found]
    assert ratios[:2] == [None, None]
    assert ratios[2] is not None
    assert (ratios[2].first, ratios[2].rounds) == (plain, 2)
    assert (ratios[2].rate.lowest, ratios[2].rate.highest) == (0.6, 0.8)
    assert ratios[2].rate.median == pytest.approx(0.7)
    assert ratios[2].cpu.lowest == pytest.approx(1 / 0.8)


def test_a_round_that_split_counts_for_nothing_but_is_told(monkeypatch):
    outcomes = iter((None, 300.0))

    def load(system, cell, seconds, verify):
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


def test_queues_and_sets_of_options_make_cells(monkeypatch):
    found = []

    def load(system, cell, seconds, verify):
        found.append(cell)
        return Load(1.0, 1000, 1.0, 10.0, 0)

    monkeypatch.setattr(runs, "load", load)
    words = "--only throughput --peer none --rounds 1 --json --queue 4MiB 32MB --option --option"
    assert main(["bench", "ring", *words.split(), "accelerated=0"]) == 0
    assert found == [
        Cell(queue=queue, options=options)
        for queue in (4 << 20, 32_000_000)
        for options in ((), ("accelerated=0",))
    ]
    assert {member.fixed_settings(cell)["queue_bytes"] for cell in found} == {4 << 20, 32_000_000}
    assert Job.from_json(Job("load", "a", {}, cell=found[1]).to_json()).cell == found[1]


def test_a_soak_tells_how_much_of_the_processors_it_had():
    """At 2 us for a message, four cores could do two million."""
    found = Soak(5, 60.0, 1, 500_000.0, 0, 1.0, 1.0, cpu_us_per_msg=2.0, cores=4)
    assert found.cpu_share == 0.25


@pytest.mark.parametrize(
    ("recoveries", "lost", "sound"), [(0, 0, True), (0, 3, True), (2, 3, True), (2, 0, False)]
)
def test_a_soak_is_not_sound_if_what_was_not_lost_is_made_good_for(recoveries, lost, sound):
    assert Soak(5, 60.0, 1, 1.0, 0, 100.0, 100.0, recoveries, lost).sound is sound


@pytest.mark.parametrize(
    "words",
    [
        ["ring", "--nodes", "1"],
        ["ring", "--engine", "dtp", "--option", "window_packets=0"],
        ["ring", "--option", "no_such=1"],
        ["ring", "--size", "4"],
        ["ring", "--datagram", "100"],
        ["ring", "--timeout", "0"],
        ["ring", "--queue", "10"],
        ["ring", "--verify", "all", "--only", "latency"],
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
    assert found.joined == {"a": 5.0}
    assert found.pause_s(2.0) == 0.7
    assert found.pause_s(0.5) == 3.0
