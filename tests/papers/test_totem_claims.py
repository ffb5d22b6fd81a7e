"""What `roundelay claims totem` measures, on runs too short to be figures.

Each test is about the measuring: that the model is what its page says, that latency and rotation
are what they are called, and that the rules side by side differ where they must.
"""

import csv
import json
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest

from roundelay.cli import main
from roundelay.core.effects import Kind
from roundelay.core.ids import NodeId, Service
from roundelay.experiments.claims import Claim, Outcome, judge, near, table
from roundelay.experiments.meter import Meter
from roundelay.experiments.papers.totem import accelerated, runs
from roundelay.experiments.papers.totem.runs import (
    MS,
    NODES,
    QUICK_HOP,
    SLOW_HOP,
    WARM_UP_NS,
    Cell,
    Latency,
    LiteralEngine,
    S,
    a_world,
    poisson,
    reformations,
    run,
    saturated,
    token_losses,
)
from roundelay.experiments.plan import read
from roundelay.experiments.registry import load_paper
from roundelay.experiments.results import Result
from roundelay.protocols.totem import TotemEngine
from roundelay.trace.schema import Row

# The meter


def row(kind: Kind, proc: int, t_ns: int, message: tuple[int, int] | None = None, **fields) -> Row:
    m_src, m_seq = message or (None, None)
    return Row(kind, proc, 0, 0, t_ns=t_ns, m_src=m_src, m_seq=m_seq, **fields)


def test_latency_is_from_the_application_to_each_delivery():
    """From handing over, not from the `submit` row, which a busy node writes later."""
    meter = Meter(2)
    meter.submitted(0, 100)
    meter.append(row(Kind.SUBMIT, 0, 130, (0, 0)))
    meter.append(row(Kind.ORIGINATE, 0, 150, (0, 0)))
    meter.append(row(Kind.DELIVER, 0, 150, (0, 0)))
    assert meter.flying
    meter.append(row(Kind.DELIVER, 1, 190, (0, 0)))
    assert meter.wait_ns == [50]
    assert meter.latency_ns == [50, 90]
    assert not meter.flying
    assert meter.deliveries == 2


def test_a_row_of_several_messages_is_several():
    meter = Meter(2)
    meter.submitted(1, 10)
    meter.submitted(1, 20)
    meter.append(row(Kind.DELIVER, 0, 50, (1, 0), count=2))
    assert meter.latency_ns == [40, 30]
    assert meter.deliveries == 2


def test_what_was_handed_over_before_or_after_does_not_count():
    """But what was in time does, however late it is delivered."""
    meter = Meter(1, 100, 200)
    for time_ns in (99, 100, 199, 200):
        meter.submitted(0, time_ns)
    for number in range(4):
        meter.append(row(Kind.DELIVER, 0, 205, (0, number)))
    assert meter.latency_ns == [105, 6]
    assert meter.deliveries == 0


def test_a_rotation_is_between_visits_of_the_first_node():
    meter = Meter(2, 100)
    for t_ns in (40, 110, 120, 150):
        meter.append(row(Kind.TOKEN, 0, t_ns, tag="acquire"))
        meter.append(row(Kind.TOKEN, 0, t_ns + 1, tag="release"))
        meter.append(row(Kind.TOKEN, 1, t_ns + 5, tag="acquire"))
    assert meter.visits == 3
    assert meter.rotation_ns == 20


# The model


def test_a_kilobyte_takes_nine_tenths_of_a_millisecond_on_the_wire():
    times: dict[int, int] = {}

    def sent(node: NodeId, verb: str, what: Any) -> None:
        if verb == "sends" and what.tag == "DATA":
            arrivals = world.network.arrivals(10 * S, "a", ("b", "c"), len(what.data))
            times.update(enumerate(time for time in arrivals if time is not None))

    world = a_world(0, lambda row: None, observer=sent)
    world.start()
    world.submit("c", bytes(1024))
    world.run(30 * MS)
    propagation = 5_000
    assert times == dict.fromkeys((0, 1), 10 * S + 900_000 + propagation)


@pytest.mark.parametrize(("costs", "processor_ms"), [(SLOW_HOP, 1.5), (QUICK_HOP, 0.7)])
def test_an_idle_hop_is_so_much_processor_and_a_little_wire(costs, processor_ms):
    visits: list[int] = []

    def append(row: Row) -> None:
        if row.kind == Kind.TOKEN and row.tag == "acquire":
            visits.append(row.t_ns)

    world = a_world(0, append, costs=costs)
    world.start()
    world.run(S // 10)
    (gap,) = {after - before for before, after in pairwise(visits[5:])}
    assert processor_ms * MS < gap < (processor_ms + 0.1) * MS


# The runs


def originated(engine: type[TotemEngine]) -> list[int]:
    """Packets in each visit of a single sender, once it is going."""
    visits: list[int] = []

    def append(row: Row) -> None:
        if row.proc == 0 and row.kind == Kind.TOKEN and row.tag == "acquire":
            visits.append(0)
        elif row.kind == Kind.ORIGINATE and visits:
            visits[-1] += 1

    saturated(0, 1, senders=NODES[:1], engine=engine, append=append)
    return visits[-20:-1]


def test_the_rule_as_printed_alternates_full_and_empty_rotations():
    """§8.2 counts a sender's own last visit: a full window leaves it nothing for the next."""
    visits = originated(LiteralEngine)
    assert set(visits) == {0, 30}
    assert all(a != b for a, b in pairwise(visits))


def test_the_corrected_rule_fills_every_rotation():
    assert set(originated(TotemEngine)) == {30}


def test_five_senders_share_the_window():
    """No sender is always ready at the cost of another."""
    sent = dict.fromkeys(range(5), 0)

    def append(row: Row) -> None:
        if row.kind == Kind.ORIGINATE and row.t_ns > WARM_UP_NS:
            sent[row.proc] += 1

    rate = saturated(0, 1, append=append)
    assert 700 < rate < 1100
    assert max(sent.values()) - min(sent.values()) <= 6


def test_latencies_follow_from_the_rotation():
    """§9: agreed about half a rotation and safe about two, so safe would be four times agreed. What
    sending, the wire and receiving add to both makes it less."""
    agreed = poisson(1, 2, rate=400, service=Service.AGREED)
    safe = poisson(1, 2, rate=400, service=Service.SAFE)
    assert 8 < agreed.rotation_ms < 20
    assert agreed.rotation_ms == safe.rotation_ms
    assert 0.5 <= agreed.wait_ms / agreed.rotation_ms < 0.7
    assert agreed.wait_ms < agreed.latency_ms
    assert 2.5 < safe.latency_ms / agreed.latency_ms < 4
    assert 1.9 < safe.rotations < 2.5


def test_quicker_hops_make_shorter_rotations():
    slow = poisson(0, 1, rate=400, service=Service.AGREED)
    quick = poisson(0, 1, rate=400, service=Service.AGREED, costs=QUICK_HOP)
    assert quick.rotation_ms < slow.rotation_ms


def test_a_lost_token_is_made_good_within_its_timer_and_a_hop():
    times = token_losses(0, 3)
    assert len(times) == 3
    assert all(10 < time < 17 for time in times)


def test_a_new_ring_takes_two_rotations_of_commit_and_three_of_recovery():
    """§6.3 and §7: five times five hops; the first timeout comes within 100 ms of the loss."""
    for formed in reformations(0, 2):
        assert formed.hops == 25
        assert 100 < formed.total_ms < 100 + formed.forming_ms
        assert formed.forming_ms < 100


# The accelerated ring


def test_the_token_ahead_of_its_packets_saves_time_on_a_network_with_a_latency():
    """[BabayAmir16]: more throughput, and less latency at a higher rate."""
    net = 1_000_000_000
    before, after = (accelerated.saturated(0, net, n, 10) for n in (0, 20))
    assert after > 1.2 * before
    slow = accelerated.poisson(0, net, 0, 20, per_s=47_000, safe=False)
    fast = accelerated.poisson(0, net, 20, 20, per_s=61_100, safe=False)
    assert fast.latency_ms < 0.8 * slow.latency_ms
    assert fast.rotation_ms < slow.rotation_ms


def test_a_cell_of_a_switched_network_is_the_run_that_it_names():
    cell = Cell("switched poisson", 0.0, accelerated=3, length_ms=5, rate_per_s=20_000)
    delay = accelerated.poisson(1, 1_000_000_000, 3, 5, per_s=20_000, safe=False)
    assert run(cell, 1) == {"latency_ms": delay.latency_ms, "rotation_ms": delay.rotation_ms}
    cell = Cell("switched saturated", 0.0, length_ms=5)
    assert run(cell, 1) == {"rate_per_s": accelerated.saturated(1, 1_000_000_000, 0, 5)}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"hop_ms": 1.5, "length_ms": 5}, "hop_ms is 0"),
        ({"hop_ms": 0.0}, "needs a length"),
        ({"hop_ms": 0.0, "length_ms": 5, "link_bps": 7}, "link_bps is 1000000000 or 10000000000"),
    ],
)
def test_a_cell_of_a_switched_network_makes_sense(fields, words):
    with pytest.raises(ValueError, match=words):
        Cell("switched saturated", **fields)


# Claims


def test_the_same_seed_gives_the_same_figure():
    assert token_losses(3, 2) == token_losses(3, 2) != token_losses(4, 2)


def test_a_figure_is_the_mean_and_its_spread_the_extremes():
    claim = judge("c", "p", "about 10", [9.0, 13.0], near(10), unit="ms", reason="no")
    assert (claim.ours, claim.spread, claim.verdict) == (11, (9, 13), Outcome.COMES_OUT)
    assert claim.reason == ""
    assert judge("c", "p", "about 10", [13.0], near(10), reason="no").reason == "no"


def test_what_does_not_come_out_says_why():
    with pytest.raises(ValueError, match="why"):
        judge("c", "p", "about 10", [20.0], near(10))


def test_the_table_is_aligned():
    claim = judge("short", "p", "about 10", [10.0], near(10), unit="ms", note="Remember this.")
    other = Claim("a longer claim", "p", "300/s", None, None, Outcome.UNDERIVABLE, reason="why")
    head, first, note, second, why = table([claim, other]).splitlines()
    assert head.index("verdict") == first.index("comes out") == second.index("cannot")
    assert (note.strip(), why.strip()) == ("Remember this.", "why")


@pytest.fixture
def quick(monkeypatch):
    """Instead of every run a figure, near what it would give."""

    def run(cell: Cell, seed: int) -> dict[str, float]:
        if cell.workload == "saturated":
            slow = cell.flow == "printed" and cell.senders == 1
            return {"rate_per_s": 700.0 if slow else 940.0 if cell.size_bytes == 100 else 900.0}
        if cell.workload == "poisson":
            latency_ms = 30.0 if cell.service == "safe" else 9.0
            return {"latency_ms": latency_ms, "wait_ms": 7.0, "rotation_ms": 14.0}
        if cell.workload == "token loss":
            return {"loss_ms": 16.0}
        if cell.workload == "switched saturated":
            return {"rate_per_s": 80_000.0 if cell.accelerated else 60_000.0}
        if cell.workload == "switched poisson":
            latency_ms = 0.24 if cell.accelerated else 0.43 if cell.link_bps < 2e9 else 0.14
            return {"latency_ms": latency_ms, "rotation_ms": 0.3}
        return {"total_ms": 140.0, "forming_ms": 46.0, "hops": 25.0}

    monkeypatch.setattr(runs, "run", run)


def test_a_cell_is_the_run_that_it_names():
    """And with the same seed: what a sweep measures is what this page is about."""
    assert run(Cell("saturated", 0.7, 1, senders=1, flow="printed"), 2) == {
        "rate_per_s": saturated(2, 1, senders=NODES[:1], engine=LiteralEngine, costs=QUICK_HOP)
    }
    latency = poisson(1, 1, rate=625, service=Service.SAFE)
    measures = run(Cell("poisson", 1.5, 1, rate_per_s=625, service="safe"), 1)
    assert Latency(**measures) == latency
    assert run(Cell("token loss", 1.5, losses=2), 4) == {"loss_ms": fmean(token_losses(4, 2))}
    formed = reformations(0, 2)
    measures = run(Cell("new ring", 1.5, losses=2), 0)
    assert measures["total_ms"] == fmean(r.total_ms for r in formed)


def test_a_run_that_is_missing_is_named():
    results = [Result(cell, seed, {}) for cell, seed in read("papers/totem", quick=True).runs()]
    with pytest.raises(ValueError, match=r"no run of .*saturated"):
        load_paper("totem").findings_of([r for r in results if r.cell.workload != "saturated"])


def test_the_command_prints_every_claim_and_writes_a_table(quick, tmp_path, capsys):
    assert main(["claims", "totem", "--jobs", "1", "-o", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "all senders / one sender" in out
    assert "cannot be derived" in out
    with (tmp_path / "out" / "totem-claims.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["verdict"] for row in rows} == {"comes out", "does not", "cannot be derived"}


def test_json_is_one_document(quick, capsys):
    assert main(["claims", "totem", "--jobs", "1", "--json", "--seeds", "1"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["protocol"], document["seeds"]) == ("totem", 1)
    fields = {"claim", "parameters", "paper", "ours", "spread", "verdict"}
    assert all(fields <= set(claim) for claim in document["claims"])
    by_name = {claim["claim"]: claim for claim in document["claims"]}
    assert by_name["all senders / one sender"]["verdict"] == "comes out"
    assert by_name["the same, flow control as printed"]["verdict"] == "does not"
    assert by_name["token loss, retransmission on"]["ours"] == 16
    assert by_name["reconfiguration - Token Loss timeout"]["spread"] == [40, 40]
    assert by_name["prior systems"]["ours"] is None
    assert by_name["accelerated / other ring, throughput"]["ours"] == pytest.approx(4 / 3)
    assert by_name["accelerated / other ring, agreed latency"]["verdict"] == "does not"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["claims", "corosync"],
            "no claims are known of 'corosync'; there are those of: atop, dtp, fc, st, totem",
        ),
        (["claims", "totem", "--seeds", "0"], "--seeds 0 measures nothing; give at least 1"),
    ],
)
def test_wrong_use_is_a_sentence(arguments, sentence, capsys):
    assert main(arguments) == 2
    assert sentence in capsys.readouterr().err
