"""What `roundelay claims fc` measures, on runs too short to be figures.

The tests of the runs are about the measuring: that the model is what its page says and that each
measure is what it is called. Those of the claims plant figures and look at the verdicts.
"""

import csv
import json
import pickle
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from roundelay.cli import main
from roundelay.core.effects import Kind
from roundelay.core.ids import NodeId
from roundelay.experiments import figures
from roundelay.experiments.claims import Claim, Outcome
from roundelay.experiments.papers.fc import runs
from roundelay.experiments.papers.fc.results import (
    NAMES,
    RULES,
    a_delay,
    a_recovery,
    an_agreement,
)
from roundelay.experiments.papers.fc.runs import (
    MS,
    STAGGER_MS,
    WAIT_MS,
    Cell,
    Decisions,
    Rules,
    a_world,
    run,
)
from roundelay.experiments.plan import read
from roundelay.experiments.registry import load_paper
from roundelay.experiments.results import Result
from roundelay.trace.schema import Row

fc = load_paper("fc")


def short(cell: Cell) -> Cell:
    return replace(cell, seconds=0.4) if cell.workload == "delay" else replace(cell, crashes=2)


@pytest.fixture(scope="module")
def measured():
    """One run of each cell, made when it is first asked for."""
    found: dict[Cell, dict[str, float]] = {}

    def measures(cell: Cell) -> dict[str, float]:
        if cell not in found:
            found[cell] = run(short(cell), 0)
        return found[cell]

    return measures


# The model


@pytest.mark.parametrize("rules", RULES)
def test_a_request_is_one_frame_and_one_decision_whatever_its_size(rules):
    frames: list[tuple[str, int]] = []

    def sent(node: NodeId, verb: str, what: Any) -> None:
        if verb == "sends" and (what.tag == "REQ" or what.frame.message.runs):
            frames.append((what.tag, len(what.data)))

    world = a_world(a_delay(rules, 1.5, 1400), 0, lambda row: None, observer=sent)
    world.start()
    world.run(5 * MS)
    world.submit("c", bytes(1400))
    world.run(20 * MS)
    (request, decision) = frames
    assert request[0] == "REQ"
    assert 1400 < request[1] < 1530
    assert decision[0] == "DEC"
    assert decision[1] < 200  # It names the request, and does not carry it.


@pytest.mark.parametrize(("hop_ms", "wire_ms"), [(1.5, 0.1), (0.0, 0.1)])
def test_the_token_never_rests_and_a_hop_is_so_much_processor_and_a_little_wire(hop_ms, wire_ms):
    made: list[int] = []

    def append(row: Row) -> None:
        if row.kind == Kind.ORDER:
            assert row.m_src is None
            made.append(row.t_ns)

    world = a_world(a_delay("paper", hop_ms), 0, append)
    world.start()
    world.run(30 * MS)
    (gap,) = {after - before for before, after in pairwise(made[5:])}
    assert hop_ms * MS < gap < (hop_ms + wire_ms) * MS


def test_a_decision_orders_one_request():
    ordered: list[tuple[int | None, int]] = []

    def append(row: Row) -> None:
        if row.kind == Kind.ORDER and row.m_src is not None:
            ordered.append((row.k2, row.count))

    world = a_world(a_delay("safe", 0.0), 0, append)
    world.start()
    for _ in range(6):
        world.submit("a", b"x")
    world.run(5 * MS)
    numbers = [number for number, _ in ordered]
    assert len(set(numbers)) == 6
    assert {count for _, count in ordered} == {1}


# The measures


def row(kind: Kind, proc: int, t_ns: int, **fields: Any) -> Row:
    return Row(kind, proc, 0, 0, t_ns=t_ns, **fields)


def test_decisions_behind_one_are_those_that_the_member_has():
    decisions = Decisions(10)
    decisions.append(row(Kind.ORDER, 0, 5, k2=1))
    decisions.append(row(Kind.SEND, 0, 5, tag="DEC", pkt=7))
    decisions.append(row(Kind.ARRIVE, 1, 9, tag="DEC", pkt=7))
    decisions.append(row(Kind.ORDER, 1, 10, k2=2))
    decisions.append(row(Kind.CONFIRM, 1, 10, k2=1))  # With its own decision behind it.
    decisions.append(row(Kind.SEND, 1, 10, tag="DEC", pkt=8))
    decisions.append(row(Kind.ARRIVE, 2, 14, tag="DEC", pkt=8))
    decisions.append(row(Kind.CONFIRM, 2, 14, k2=2))  # With none.
    decisions.append(row(Kind.ORDER, 2, 30, k2=3))
    assert (decisions.confirmation, decisions.latest, decisions.hop_ns) == (0.5, 1, 20)


@pytest.mark.parametrize(
    ("rules", "k", "nodes", "most"),
    [
        ("paper", 1, 5, 1),
        ("link", 1, 5, 1),
        ("link", 2, 5, 2),
        ("safe", 2, 3, 1),
        ("safe", 2, 5, 2),
    ],
)
def test_confirmation_takes_as_many_decisions_as_the_rules_say(measured, rules, k, nodes, most):
    found = measured(a_delay(rules, 1.5, k=k, nodes=nodes))
    assert found["confirmation_most_hops"] == most
    if rules == "safe":  # Who made none of them is the last that a majority needs.
        lucky = nodes - nodes // 2
        assert found["confirmation_hops"] == pytest.approx(most - lucky / nodes, abs=0.05)
    else:
        assert found["confirmation_hops"] == most


def test_delay_grows_with_the_decisions_that_confirm(measured):
    paper, link = (measured(a_delay(rules, 1.5)) for rules in ("paper", "link"))
    hops = (link["delay_ms"] - paper["delay_ms"]) * 1000 / paper["hop_us"]
    assert hops == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("rules", RULES)
def test_one_timer_and_a_stagger_for_each_that_is_gone(measured, rules):
    one, two = (measured(a_recovery(rules, 0.0, failed)) for failed in (1, 2))
    assert one["silence_ms"] == pytest.approx(WAIT_MS + STAGGER_MS, abs=0.1)
    assert two["silence_ms"] == pytest.approx(WAIT_MS + 2 * STAGGER_MS, abs=0.1)
    for found in (one, two):
        assert found["order_ms"] < found["expiry_ms"] < found["crash_ms"]
        # The token goes on for some of a rotation after the crash.
        assert 0 <= found["crash_ms"] - found["silence_ms"] - found["expiry_ms"] + 0.3 < 0.6


def test_only_the_safe_rules_ask_before_they_go_on(measured):
    assert measured(a_recovery("paper", 0.0, 1))["order_ms"] == 0
    assert measured(a_recovery("link", 0.0, 1))["order_ms"] == 0
    assert measured(a_recovery("safe", 0.0, 1))["order_ms"] == pytest.approx(STAGGER_MS, abs=0.2)


def test_totem_needs_a_new_view(measured):
    found = measured(a_recovery("totem", 1.5, 1))
    assert found["silence_ms"] <= WAIT_MS
    assert 120 < found["order_ms"] < 170


def test_the_same_seed_gives_the_same_figures():
    for cell in (short(a_delay("safe", 1.5)), short(a_recovery("link", 1.5, 2))):
        assert run(cell, 1) == run(pickle.loads(pickle.dumps(cell)), 1) != run(cell, 2)


@pytest.mark.parametrize(
    ("cell", "fields", "sentence"),
    [
        (a_delay("paper", 1.5), {"hop_ms": 0.7}, "hop_ms is 1.5 or 0, not 0.7"),
        (a_delay("paper", 1.5), {"k": 3}, "k is 0 to 2 with 5 nodes"),
        (a_delay("safe", 1.5), {"nodes": 8}, "nodes are 3 to 7"),
        (a_delay("safe", 1.5), {"seconds": 0.0}, "delay needs seconds"),
        (a_delay("safe", 1.5), {"failed": 1}, "nobody fails"),
        (a_delay("safe", 1.5), {"size_bytes": 0}, "a byte at least"),
        (an_agreement("paper", 5, 1, "A1"), {"k": 0}, "with k of 1 or 2"),
        (a_recovery("safe", 1.5, 1), {"failed": 3}, "failed is 1 or 2"),
        (a_recovery("safe", 1.5, 2), {"nodes": 3}, "a majority stays"),
        (a_recovery("safe", 1.5, 1), {"crashes": 0}, "recovery needs crashes"),
    ],
)
def test_a_cell_that_makes_no_sense_is_refused(cell, fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        replace(cell, **fields)


def test_agreement_is_counted_over_all_runs():
    assert run(an_agreement("paper", 5, 1, "A1"), 0) == {"runs": 63, "divergent": 0}
    found = run(an_agreement("paper", 5, 2, "A1"), 0)
    assert found["runs"] == 1008
    assert found["divergent"] > 0


# Claims

DELAY_MS: dict[Rules, float] = {"paper": 5.3, "link": 7.0, "safe": 6.1, "totem": 5.9}
ORDER_MS: dict[Rules, float] = {"paper": 0.0, "link": 0.0, "safe": 13.0, "totem": 148.0}


def planted(cell: Cell, seed: int) -> dict[str, float]:
    """What a run would give if everything were as expected."""
    if cell.workload == "agreement":
        broken = cell.rules == "paper" and cell.k == 2
        return {"runs": 1000.0, "divergent": 40.0 if broken else 0.0}
    if cell.workload == "delay":
        most = {"paper": 1, "link": cell.k, "safe": cell.nodes // 2, "totem": 0}[cell.rules]
        wire_ms = cell.size_bytes / 6500
        hops_ms = DELAY_MS[cell.rules] if cell.hop_ms else DELAY_MS[cell.rules] / 40
        return {
            "delay_ms": hops_ms + wire_ms + seed / 1000,
            "hop_us": 1570.0 if cell.hop_ms else 46.0,
            "confirmation_hops": most - 0.6 if cell.rules == "safe" else float(most),
            "confirmation_most_hops": float(most),
        }
    order_ms = ORDER_MS[cell.rules] if cell.hop_ms else ORDER_MS[cell.rules] * 10 / 13
    silence_ms = WAIT_MS + cell.failed * STAGGER_MS
    return {
        "silence_ms": silence_ms,
        "order_ms": order_ms,
        "expiry_ms": order_ms + 3 + seed / 10,
        "crash_ms": silence_ms + order_ms + 4,
    }


def results(changed: Cell | None = None, **changes: float) -> list[Result]:
    """As planted, but for some measures of one cell, whatever its length."""
    return [
        Result(cell, seed, planted(cell, seed) | (changes if _like(cell, changed) else {}))
        for cell, seed in read("papers/fc", quick=True).runs()
    ]


def _like(cell: Cell, other: Cell | None) -> bool:
    if other is None or cell.workload != other.workload:
        return False
    return replace(cell, seconds=other.seconds, crashes=other.crashes) == other


def failures(found: list[Result]) -> list[Claim]:
    claims = fc.findings_of(found).claims
    return [claim for claim in claims if claim.verdict is Outcome.DOES_NOT]


def test_what_is_as_expected_comes_out_but_for_the_times_of_the_paper():
    claims = fc.findings_of(results()).claims
    failed = failures(results())
    assert {claim.claim for claim in failed} == {
        *(f"{NAMES[rules]}, delay at 1400 B / at 100 B" for rules in RULES),
        *(f"FC paper, recovery from the {since}" for since in ("crash", "expiry")),
        *(f"Totem, recovery from the {since}" for since in ("crash", "expiry")),
        "FC paper, runs in which members disagree",
    }
    flat = [claim for claim in claims if "1400 B / at 100 B" in claim.claim]
    assert [claim.verdict for claim in flat] == [Outcome.COMES_OUT] * 3 + [Outcome.DOES_NOT] * 3
    assert all("free processors" in claim.parameters for claim in flat[3:])
    underived = {c.paper for c in claims if c.verdict is Outcome.UNDERIVABLE}
    assert underived == {"about 12 ms", "61.278 ms", "0.455 ms"}


def test_recovery_is_told_from_the_crash_and_from_the_expiry():
    by_name = {(c.claim, c.parameters): c.ours for c in fc.findings_of(results()).claims}
    place = "timer 100 ms, 2 failed, hop 1.5 ms"
    assert by_name["FC paper, recovery from the crash", place] == pytest.approx(124)
    assert by_name["FC paper, recovery from the expiry", place] == pytest.approx(3.1)


@pytest.mark.parametrize(
    ("cell", "change", "names"),
    [
        (a_delay("link", 1.5, 1400), {"delay_ms": 9.0}, {"FC link, delay at 1400"}),
        (a_delay("totem", 1.5), {"delay_ms": 9.0}, {"Totem / FC paper, delay"}),
        (
            a_delay("safe", 1.5, nodes=7),
            {"confirmation_most_hops": 4.0},
            {"FC safe, decisions until"},
        ),
        (a_delay("paper", 1.5, k=1), {"confirmation_most_hops": 2.0}, {"FC paper, decisions"}),
        (a_recovery("link", 1.5, 2), {"silence_ms": 220.0}, {"FC link, second failure"}),
        (a_recovery("safe", 0.0, 2), {"silence_ms": 110.0}, {"FC safe, second failure"}),
        (a_recovery("safe", 1.5, 1), {"order_ms": 30.0}, {"FC safe, from the expiry until"}),
        (an_agreement("paper", 5, 1, "A2"), {"divergent": 1.0}, {"FC paper, runs in which"}),
        (an_agreement("safe", 6, 2, "A1"), {"divergent": 1.0}, {"FC safe, runs in which"}),
        (a_recovery("paper", 1.5, 1), {"crash_ms": 300.0}, {"FC paper / Totem, recovery from"}),
    ],
)
def test_what_is_otherwise_does_not(cell, change, names):
    expected = {(c.claim, c.parameters) for c in failures(results())}
    failed = [
        c.claim
        for c in failures(results(cell, **change))
        if (c.claim, c.parameters) not in expected
    ]
    assert len(failed) == len(names)
    assert all(any(claim.startswith(name) for name in names) for claim in failed), failed


def test_eleven_milliseconds_would_come_out():
    found = results(a_recovery("paper", 1.5, 1), expiry_ms=11.0)
    lost = [c for c in failures(found) if c.claim == "FC paper, recovery from the expiry"]
    assert len(lost) == 3


def test_a_claim_names_its_figure():
    findings = fc.findings_of(results())
    drawn = {figure.name for figure in findings.figures}
    assert {claim.figure for claim in findings.claims} == {*drawn, ""}


def test_runs_that_are_missing_are_named():
    found = results()
    gone, totem = a_recovery("safe", 1.5, 2), a_recovery("totem", 0.0, 1)
    with pytest.raises(ValueError, match=r"no run of FC safe with 5 nodes, 2 failed, hop 1.5 ms"):
        fc.findings_of([r for r in found if not _like(r.cell, gone)])
    with pytest.raises(ValueError, match=r"Totem with 5 nodes, 1 failed, .* not run with seed 2"):
        fc.findings_of([r for r in found if r.seed < 2 or not _like(r.cell, totem)])
    with pytest.raises(ValueError, match="two at least, with all rules and free processors"):
        fc.findings_of([r for r in found if r.cell.size_bytes < 1400])


def test_the_plan_has_every_cell_that_the_claims_need():
    for quick, seeds in ((True, 3), (False, 10)):
        plan = read("papers/fc", quick=quick)
        assert len(plan.seeds) == seeds
        fc.findings_of([Result(cell, seed, planted(cell, seed)) for cell, seed in plan.runs()])


def test_the_command_writes_tables_and_plots(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(runs, "run", planted)
    monkeypatch.setattr(figures, "draw", lambda figure, path: path.touch())
    assert main(["claims", "fc", "--jobs", "1", "--json", "-o", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["protocol"], document["seeds"]) == ("fc", 3)
    names = ["fc-delay", "fc-crash", "fc-expiry"]
    expected = [*(f"{name}.{kind}" for name in names for kind in ("csv", "svg")), "fc-claims.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(expected)
    with (tmp_path / "fc-delay.csv").open() as file:
        assert {row["subject"] for row in csv.DictReader(file)} == {*NAMES.values()}
