"""What `roundelay claims atop` measures, on runs too short to be figures.

The tests of the runs are about the measuring: that the model is what its page says and that each
measure is what it is called. Those of the claims plant figures and look at the verdicts.
"""

import csv
import json
import pickle
from dataclasses import replace
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import Any

import pytest

from roundelay.cli import main
from roundelay.core.contract import Boot
from roundelay.experiments import figures
from roundelay.experiments.claims import Claim, Outcome
from roundelay.experiments.papers.atop import runs
from roundelay.experiments.papers.atop.results import (
    ALL_ACK,
    CAUSAL,
    COVER,
    COVER_BEFORE,
    DEMAND,
    NAMES,
    NULLS,
    RESTLESS,
    SWITCH,
    WRITTEN,
    WRITTEN_BEFORE,
)
from roundelay.experiments.papers.atop.runs import (
    ADAPTING_S,
    FAST_PER_S,
    PATIENCE_NS,
    SECONDS_MAX,
    WINDOW_PACKETS,
    Cell,
    Delays,
    S,
    run,
)
from roundelay.experiments.plan import read
from roundelay.experiments.registry import load_paper
from roundelay.experiments.results import Result
from roundelay.group.engines import engine_factory
from roundelay.protocols.atop.atop import AtopEngine

atop = load_paper("atop")

WAY_MS = 1.3
"""From a sender to another member, on average."""


def short(kind: Cell, period_s: float = 1.0, seconds: float = 8.0) -> Cell:
    return replace(kind, period_s=period_s, seconds=seconds)


@pytest.fixture(scope="module")
def measured():
    """One run of each kind, made when it is first asked for."""
    found: dict[Cell, dict[str, float]] = {}

    def measures(kind: Cell) -> dict[str, float]:
        if kind not in found:
            found[kind] = run(short(kind), 0)
        return found[kind]

    return measures


# The model


def test_frames_take_their_time_and_never_overtake_each_other():
    network = Delays(Random(1))
    last = {"b": 0, "c": 0}
    takes = []
    for now in range(0, 400_000_000, 200_000):
        times = network.arrivals(now, "a", ("b", "c"), 100)
        for receiver, time in zip("bc", times, strict=True):
            assert time is not None
            assert time >= max(now + 1_000_000, last[receiver])
            last[receiver] = time
            takes.append(time - now)
    assert len(set(takes)) > 1000
    assert fmean(takes) == pytest.approx(1_400_000, rel=0.05)  # Some wait for those before them.


def test_causal_delivery_takes_one_way_and_at_the_sender_no_time(measured):
    assert measured(CAUSAL)["latency_ms"] == pytest.approx(WAY_MS * 5 / 6, rel=0.02)


def test_members_send_at_the_rates_of_the_paper():
    cell = short(CAUSAL, 2.0, 40.0)
    assert cell.rates == (10, 10, 20, 0.5, 0.5, 0.5)
    measurement = runs._Measurement(cell, 0)
    measurement.measure()
    counts = [measurement._numbers[member] / 61 for member in range(6)]
    assert counts == pytest.approx(cell.rates, rel=0.05)


def test_gaps_between_messages_differ_by_a_tenth(monkeypatch):
    measurement = runs._Measurement(short(CAUSAL), 0)
    times: list[int] = []
    submit = measurement.world.submit

    def note(node, payload):
        assert len(payload) == 50
        if node == "c":
            times.append(measurement.world.loop.now)
        submit(node, payload)

    monkeypatch.setattr(measurement.world, "submit", note)
    measurement.measure()
    gaps_ms = [(b - a) / 1e6 for a, b in pairwise(times)]
    assert 45 <= min(gaps_ms) < 46
    assert 54 < max(gaps_ms) <= 55


def test_each_seed_has_slots_of_its_own():
    lists = []
    for view in (1, 2):
        core = runs._stack(Boot("sim", "a"), factory=engine_factory("atop"), view=view)
        core.start()
        assert isinstance(core.engine, AtopEngine)
        atom = core.engine.atom
        lists.append([atom._owner(slot) for slot in range(40)])
    assert lists[0] != lists[1]


def test_no_sender_ever_waits_for_a_window():
    """Where all of a fast sender's messages wait until the run is given up."""
    seconds = ADAPTING_S + SECONDS_MAX + PATIENCE_NS / S
    assert max(FAST_PER_S) * seconds <= WINDOW_PACKETS
    measurement = runs._Measurement(short(WRITTEN_BEFORE, 5.0, 1.0), 0)
    measurement.measure()
    cores: list[Any] = [host.core for host in measurement.world.hosts.values()]
    assert [core.status.waiting_packets for core in cores] == [0] * 6
    assert max(core.engine.own_waiting for core in cores) > 1000


# The measures


def test_the_same_seed_gives_the_same_figures():
    cell = short(COVER, seconds=2.0)
    assert run(cell, 1) == run(pickle.loads(pickle.dumps(cell)), 1) != run(cell, 2)


def test_messages_come_at_the_same_times_whatever_the_protocol(measured):
    sent = {measured(kind)["sending_variance"] for kind in (CAUSAL, ALL_ACK, COVER, WRITTEN)}
    assert len(sent) == 1


def test_all_ack_waits_for_the_slowest_and_then_delivers_at_once(measured):
    found = measured(ALL_ACK)
    assert 500 < found["latency_ms"] < 1000
    assert found["dummies_per_message"] == 0
    assert found["empty_ticks_share"] > 0.6
    assert found["fullest_tick"] >= 5
    assert found["delivery_variance"] > 50 * measured(COVER)["delivery_variance"]


def test_null_messages_cost_frames_and_save_the_wait(measured):
    found = measured(NULLS)
    assert found["latency_ms"] < 3 * WAY_MS + NULLS.hold_ms
    assert 4 < found["dummies_per_message"] < 5  # Of five others, most have nothing to say.


def test_with_cover_latency_is_a_hold_and_a_way_more_than_causal(measured):
    found = measured(COVER)
    assert found["delivered_share"] == 1
    assert 0 < found["latency_ms"] - measured(CAUSAL)["latency_ms"] < COVER.hold_ms + 2
    assert found["distributions"] >= 1


def test_a_longer_hold_costs_latency_and_saves_dummies(measured):
    long, usual = run(short(replace(COVER, hold_ms=10.0)), 0), measured(COVER)
    assert 4 < long["latency_ms"] - usual["latency_ms"] < 8
    assert long["dummies_per_message"] < usual["dummies_per_message"]


def test_adaptation_saves_dummies(measured):
    before, after = measured(COVER_BEFORE), measured(COVER)
    assert before["distributions"] == 0
    assert after["dummies_per_message"] < 0.6 * before["dummies_per_message"]
    assert after["latency_ms"] < before["latency_ms"]


def test_without_dummies_members_drift_apart(measured):
    found = measured(WRITTEN)
    assert found["dummies_per_message"] == 0
    assert found["latency_ms"] > 50 * measured(CAUSAL)["latency_ms"]


def test_weights_change_more_often_without_a_threshold(measured):
    assert measured(WRITTEN)["distributions"] <= 3
    assert measured(RESTLESS)["distributions"] > 20


def test_what_is_never_delivered_counts_with_the_time_it_has_waited():
    """Before adaptation; the slow members deliver theirs."""
    found = run(short(WRITTEN_BEFORE, 3.0, 2.0), 0)
    assert 0 < found["delivered_share"] < 0.1
    assert 90_000 < found["latency_ms"] < 102_000


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"period_s": 0.0}, "period and hold are more than 0"),
        ({"hold_ms": -1.0}, "period and hold are more than 0"),
        ({"seconds": 100.0}, "at most 80"),
        ({"threshold_share": 3.0}, "between 0 and 2"),
        ({"protocol": "causal"}, "dummies of causal are none"),
        ({"protocol": "allack"}, "dummies of allack are none or demand"),
        ({"protocol": "allack", "adapts": False}, "atop alone"),
    ],
)
def test_a_cell_that_makes_no_sense_is_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        replace(COVER, **fields)


def test_costly_cells_begin_first():
    """Those with dummies have more frames, and those as written take longer."""
    kinds = sorted(NAMES, key=lambda kind: -kind.cost)
    assert kinds[0] == COVER_BEFORE
    assert kinds[-1] == CAUSAL


# Claims

LATENCY_MS = {
    CAUSAL: 1.1,
    NULLS: 5.0,
    COVER: 3.3,
    DEMAND: 12.0,
    SWITCH: 60.0,
    WRITTEN: 9000.0,
    RESTLESS: 2000.0,
    COVER_BEFORE: 4.1,
    WRITTEN_BEFORE: 99_000.0,
}
DUMMIES = {NULLS: 4.5, COVER: 1.1, DEMAND: 3.6, SWITCH: 0.5, COVER_BEFORE: 2.35}


def planted(cell: Cell, seed: int) -> dict[str, float]:
    """What a run would give if everything were as expected."""
    kind = replace(cell, period_s=1.0)
    latency_ms = LATENCY_MS.get(kind, 740 * cell.period_s)
    return {
        "latency_ms": latency_ms * (1 + seed / 1000),
        "delivered_share": 0.05 if kind == WRITTEN_BEFORE else 1.0,
        "dummies_per_message": DUMMIES.get(kind, 0.0),
        "sending_variance": 0.06,
        "delivery_variance": 18.0 if kind == ALL_ACK else 0.06,
        "delivery_rate": 1.0,
        "empty_ticks_share": 0.9,
        "fullest_tick": 27.0,
        "distributions": 1.0,
    }


def results(changed: Cell | None = None, **changes: float) -> list[Result]:
    """As planted, but for some measures of one kind of runs."""
    return [
        Result(
            cell,
            seed,
            planted(cell, seed) | (changes if replace(cell, period_s=1.0) == changed else {}),
        )
        for cell, seed in read("papers/atop", quick=True).runs()
    ]


def failures(found: list[Result]) -> list[Claim]:
    claims = atop.findings_of(found).claims
    return [claim for claim in claims if claim.verdict is Outcome.DOES_NOT]


EXPECTED = ["ATOP, demand", "ATOP, switch", *["ATOP as written / causal"] * 5]
"""What does not come out, even if everything is as expected."""


def test_what_is_as_expected_comes_out_with_dummies_and_not_as_written():
    claims = atop.findings_of(results()).claims
    failed = failures(results())
    assert len(failed) == len(EXPECTED)
    assert all(f.claim.startswith(name) for f, name in zip(failed, EXPECTED, strict=True))
    assert sum(claim.verdict is Outcome.UNDERIVABLE for claim in claims) == 3
    first, *_ = claims
    assert (first.claim, first.parameters) == ("All-Ack, latency / slow period", "slow 1/s")
    assert first.ours == pytest.approx(0.741, abs=0.001)
    assert first.spread == pytest.approx((0.74, 0.7415), abs=0.0001)


def test_as_written_it_says_how_many_times_slower_and_why():
    (claim, *_) = (c for c in failures(results()) if "as written" in c.claim)
    assert claim.ours == pytest.approx(9000 / 1.1)
    assert claim.reason.startswith("9.0 s (9.0 to 9.0, by the slot list): no rule keeps a member")
    assert not any("All-Ack" in c.claim and "written" in c.claim for c in failures(results()))


def test_dummies_stand_next_to_every_latency_of_atop():
    for claim in atop.findings_of(results()).claims:
        if " - causal, latency" in claim.claim or "before / after" in claim.claim:
            assert "dummies a message" in claim.reason


@pytest.mark.parametrize(
    ("kind", "change", "names"),
    [
        (ALL_ACK, {"latency_ms": 700.0}, {"All-Ack, latency / slow", "All-Ack, latency, by"}),
        (COVER, {"latency_ms": 5.2}, {"ATOP, cover - causal", "ATOP, cover, latency before"}),
        (COVER, {"latency_ms": 1.0}, {"ATOP, cover - causal"}),
        (COVER_BEFORE, {"latency_ms": 3.0}, {"ATOP, cover, latency before"}),
        (WRITTEN_BEFORE, {"delivered_share": 0.2}, {"ATOP as written, share"}),
        (COVER, {"dummies_per_message": 0.8}, {"ATOP, cover, dummies a"}),
        (
            COVER,
            {"dummies_per_message": 5.0},
            {"ATOP, cover, dummies a", "ATOP, cover, dummies after", "ATOP, cover / All-Ack"},
        ),
        (ALL_ACK, {"delivery_variance": 2.9}, {"All-Ack / ATOP"}),
        (COVER, {"delivery_variance": 0.1}, {"ATOP, cover, variance"}),
        (COVER, {"delivery_rate": 0.8}, {"ATOP, cover, delivered"}),
        (ALL_ACK, {"delivery_rate": 1.2}, {"All-Ack, delivered"}),
    ],
)
def test_what_is_otherwise_does_not(kind, change, names):
    failed = {claim.claim for claim in failures(results(kind, **change))}
    failed -= {claim.claim for claim in failures(results())}
    assert all(any(claim.startswith(name) for name in names) for claim in failed), failed
    assert all(any(claim.startswith(name) for claim in failed) for name in names), failed


def test_latency_that_depends_on_the_slow_senders_is_found():
    found = results()
    for i, r in enumerate(found):
        if replace(r.cell, period_s=1.0) == COVER and r.cell.period_s == 5:
            found[i] = replace(r, measures=r.measures | {"latency_ms": 4.3})
    (claim,) = (c for c in failures(found) if c.claim == "ATOP, cover, largest / smallest latency")
    assert claim.ours == pytest.approx(4.3 / 3.3, rel=0.01)


def test_a_fast_atop_as_written_would_come_out():
    failed = failures(results(WRITTEN, latency_ms=4.0))
    assert sum(claim.claim.startswith("ATOP as written / causal") for claim in failed) == 1


def test_a_claim_names_its_figure():
    findings = atop.findings_of(results())
    drawn = {figure.name for figure in findings.figures}
    assert {claim.figure for claim in findings.claims} == {*drawn, ""}


def test_runs_that_are_missing_are_named():
    found = results()
    with pytest.raises(ValueError, match=r"no run of ATOP, cover, slow 1 in 3 s"):
        atop.findings_of([r for r in found if r.cell != replace(COVER, period_s=3.0)])
    with pytest.raises(ValueError, match=r"causal, slow 1/s was not run with seed 2"):
        atop.findings_of([r for r in found if r.seed < 2 or r.cell != CAUSAL])
    with pytest.raises(ValueError, match="two periods"):
        atop.findings_of([r for r in found if r.cell.period_s == 3])


def test_the_plan_runs_every_kind_at_every_rate():
    for quick, seeds in ((True, 3), (False, 10)):
        plan = read("papers/atop", quick=quick)
        assert len(plan.seeds) == seeds
        cells = {run.cell for run in plan.runs()}
        periods_s = (1.0, 2.0, 3.0, 5.0)
        assert cells == {replace(kind, period_s=p) for kind in NAMES for p in periods_s}


# Figures and the command


def test_the_figures_have_a_point_for_each_rate_and_curve():
    by_name = {figure.name: figure for figure in atop.findings_of(results()).figures}
    assert [(name, len(f.series)) for name, f in by_name.items()] == [
        ("latency", 10),
        ("dummies", 5),
        ("variance", 4),
    ]
    for figure in by_name.values():
        for series in figure.series:
            assert [p.x for p in series.points] == [1, 2, 3, 5]


def test_the_command_writes_tables_and_plots(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(runs, "run", planted)
    monkeypatch.setattr(figures, "draw", lambda figure, path: path.touch())
    assert main(["claims", "atop", "--jobs", "1", "--json", "-o", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["protocol"], document["seeds"]) == ("atop", 3)
    names = ["atop-latency", "atop-dummies", "atop-variance"]
    expected = [*(f"{name}.{kind}" for name in names for kind in ("csv", "svg")), "atop-claims.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(expected)
    with (tmp_path / "atop-latency.csv").open() as file:
        assert {row["subject"] for row in csv.DictReader(file)} == {*NAMES.values()}
