"""What `roundelay claims dtp` measures, on runs too short to be figures.

The tests of the runs are about the measuring: that the model is what its page says and that each
measure is what it is called. Those of the claims plant figures and look at the verdicts.
"""

import csv
import json
import pickle
from dataclasses import replace

import pytest

from roundelay.cli import main
from roundelay.experiments import figures
from roundelay.experiments.claims import Claim, Outcome
from roundelay.experiments.papers.dtp import runs
from roundelay.experiments.papers.dtp.claims import EVEN, STATIONS, UNEVEN
from roundelay.experiments.papers.dtp.runs import PROTOCOLS, Cell, run, variation
from roundelay.experiments.plan import read
from roundelay.experiments.registry import load_paper
from roundelay.experiments.results import Result

dtp = load_paper("dtp")

WIRE_MS = 0.4528
"""500 bytes and 66 more, at 10 Mbit/s."""
SHORT_MS = 0.0672
"""84 bytes, the shortest frame."""
WAY_MS = 0.005

# The model


def test_a_message_and_its_acknowledgment_take_their_time_on_the_wire():
    """In a group so quiet that nothing waits for anything. A sender that has the token itself sends
    both at once, which saves one way."""
    delivery_ms = run(Cell("dtp", 5, 5000.0, 20), 0)["delivery_ms"]
    assert WIRE_MS + SHORT_MS + WAY_MS <= delivery_ms <= WIRE_MS + SHORT_MS + 2 * WAY_MS


def test_the_token_of_an_idle_totem_spins_at_the_speed_of_the_wire():
    rotation_ms = run(Cell("totem", 5, 200.0, 4), 0)["rotation_ms"]
    assert rotation_ms == pytest.approx(5 * (SHORT_MS + WAY_MS), rel=0.03)


def test_pinwheel_orders_all_that_waits_unless_told_otherwise():
    busy = Cell("pinwheel", 10, 5.0, 200)
    assert run(busy, 0)["overhead"] < 0.8
    assert run(replace(busy, batch=1), 0)["overhead"] == pytest.approx(1, abs=0.05)


# The measures


def test_the_same_seed_gives_the_same_figures():
    cell = Cell("dtp", 5, 100.0, 50)
    assert run(cell, 1) == run(pickle.loads(pickle.dumps(cell)), 1) != run(cell, 2)


def test_messages_come_at_the_same_times_whatever_the_protocol():
    rates = {run(Cell(protocol, 5, 50.0, 30), 3)["rate_per_s"] for protocol in PROTOCOLS}
    assert len(rates) == 1
    assert run(Cell("dtp", 5, 50.0, 30), 4)["rate_per_s"] not in rates


def test_the_last_messages_do_not_wait_for_silence():
    """Others follow them: so a silence period of an hour makes no difference."""
    short, hour = (Cell("dtp", 5, 20.0, 100, silence_ms=ms) for ms in (100.0, 3_600_000.0))
    assert run(hour, 0)["stability_ms"] == pytest.approx(run(short, 0)["stability_ms"], rel=0.05)


def test_the_buffer_obeys_littles_law():
    """A message and its acknowledgment are held about as long as it takes to be stable."""
    figures = run(Cell("cm", 10, 100.0, 300), 0)
    expected = 2 * figures["rate_per_s"] * figures["stability_ms"] / 1000
    assert figures["buffer"] == pytest.approx(expected, rel=0.1)


def test_totem_buffers_messages_alone_until_they_are_safe():
    figures = run(Cell("totem", 10, 50.0, 100), 0)
    expected = figures["rate_per_s"] * figures["stability_ms"] / 1000
    assert 0.3 * expected < figures["buffer"] < expected
    assert figures["buffer_acks_max"] == 0


def test_a_lossless_group_holds_no_more_than_the_paper_says():
    """§4.2: 2n-1 messages and n-1 acknowledgments; that many of these there are."""
    figures = run(Cell("dtp", 5, 5.0, 500), 0)
    assert figures["buffer_msgs_max"] <= 9
    assert figures["buffer_acks_max"] == 4


def test_silence_costs_acknowledgments_that_order_nothing():
    quiet = run(Cell("dtp", 3, 3000.0, 30), 0)["overhead"]
    assert 8 < quiet < 13  # One in a second is needed; ten periods of 100 ms go by.
    assert run(Cell("dtp", 3, 30.0, 100), 0)["overhead"] == pytest.approx(1, abs=0.05)


def test_idle_members_order_more():
    """§6; in a ring all order alike."""
    uneven = replace(UNEVEN, messages=300)
    ours, theirs = run(uneven, 0), run(replace(uneven, protocol="cm"), 0)
    assert ours["idlest_share"] > 2 * ours["busiest_share"]
    assert theirs["idlest_share"] == pytest.approx(theirs["busiest_share"], rel=0.1)
    assert ours["work_variation"] < theirs["work_variation"]


def test_equal_members_order_alike():
    assert run(replace(EVEN, messages=500), 0)["ordering_variation"] < 0.1


def test_the_wire_limits_members_that_are_always_ready():
    """1066 bytes and an acknowledgment of 84: 1087 a second."""
    assert run(replace(STATIONS, messages=600), 0)["rate_per_s"] == pytest.approx(1087, rel=0.02)


def test_variation_is_relative():
    assert variation([5, 5, 5]) == 0
    assert variation([1, 3]) == 0.5


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"protocol": "isis"}, "protocol is one of dtp, cm, pinwheel, totem, not 'isis'"),
        ({"nodes": 1}, "2 nodes"),
        ({"gap_ms": -1.0}, "gap_ms is 0 or more"),
        ({"activity": (1.0, 2.0)}, "2 activities for 5 nodes"),
        ({"batch": 3}, "pinwheel alone"),
    ],
)
def test_a_cell_that_makes_no_sense_is_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        replace(Cell("dtp", 5, 100.0, 10), **fields)


# Claims


def planted(cell: Cell, seed: int) -> dict[str, float]:
    """What a run would give if everything were as the paper says."""
    share = {"dtp": 2 / 3, "cm": 0.99, "pinwheel": 0.96, "totem": 0.1}[cell.protocol]
    if (cell.nodes, cell.gap_ms, cell.batch) == (40, 50.0, 0) and cell.protocol == "pinwheel":
        share = 1.02
    totem = cell.protocol == "totem"
    return {
        "stability_ms": share * cell.gap_ms + seed / 100,
        "delivery_ms": cell.nodes / 20 if totem else 0.55 + 0.01 * bool(cell.batch),
        "buffer": share * cell.nodes,
        "buffer_msgs_max": float(cell.nodes),
        "buffer_acks_max": float(cell.nodes - 1),
        "overhead": 1000 / cell.nodes if totem else 1.0,
        "rate_per_s": 1050.0,
        "rotation_ms": 5.0,
        "ordering_variation": 0.03,
        "work_variation": 0.4 if cell.protocol == "dtp" else 0.6,
        "busiest_share": 0.05,
        "idlest_share": 0.15,
    }


def results(**changes: dict[str, float]) -> list[Result]:
    """As planted, but for some measures of some protocols."""
    return [
        Result(cell, seed, planted(cell, seed) | changes.get(cell.protocol, {}))
        for cell, seed in read("papers/dtp", quick=True).runs()
    ]


def failures(**changes: dict[str, float]) -> list[Claim]:
    claims = dtp.findings_of(results(**changes)).claims
    return [claim for claim in claims if claim.verdict is Outcome.DOES_NOT]


def test_what_is_as_the_paper_says_comes_out():
    findings = dtp.findings_of(results())
    assert not failures()
    assert sum(claim.verdict is Outcome.UNDERIVABLE for claim in findings.claims) == 3
    (first, *_) = findings.claims
    assert first.claim == "DTP, stability time / (1/lambda)"
    assert first.ours == pytest.approx(2 / 3, abs=0.001)
    assert first.spread == pytest.approx((2 / 3, 2 / 3 + 0.02 / 50))


@pytest.mark.parametrize(
    ("protocol", "change", "names"),
    [
        ("dtp", {"stability_ms": 500.0}, {"DTP, stability", "DTP / CM, s", "DTP / Pinwheel, s"}),
        ("cm", {"stability_ms": 10.0}, {"CM, stability", "DTP / CM, s", "Pinwheel / CM, s"}),
        ("totem", {"stability_ms": 120.0}, {"Totem / DTP, s", "Totem, stability"}),
        ("totem", {"stability_ms": 30.0}, {"Totem, stability"}),
        ("pinwheel", {"delivery_ms": 1.0}, {"DTP / Pinwheel, d", "Pinwheel / itself"}),
        ("dtp", {"buffer": 50.0}, {"DTP / CM, b", "DTP / Pinwheel, b"}),
        ("cm", {"buffer": 45.0}, {"CM - DTP, buffer"}),
        ("totem", {"buffer": 20.0}, {"Totem / DTP, b"}),
        ("dtp", {"buffer_msgs_max": 10.0}, {"DTP, most messages"}),
        ("dtp", {"buffer_acks_max": 5.0}, {"DTP, most ACKs"}),
        ("totem", {"delivery_ms": 2.0}, {"Totem, delivery time, by"}),
        ("cm", {"overhead": 1.4}, {"CM, overhead"}),
        ("totem", {"overhead": 0.9}, {"Totem / DTP, o", "Totem, overhead"}),
        ("dtp", {"ordering_variation": 0.2}, {"DTP, variation"}),
        ("dtp", {"idlest_share": 0.04}, {"DTP, ACKs of"}),
        ("cm", {"work_variation": 0.3}, {"DTP / CM, v"}),
        ("dtp", {"rate_per_s": 600.0}, {"DTP, ordered"}),
    ],
)
def test_what_is_otherwise_does_not(protocol, change, names):
    failed = {claim.claim for claim in failures(**{protocol: change})}
    assert all(any(claim.startswith(name) for name in names) for claim in failed), failed
    assert all(any(claim.startswith(name) for claim in failed) for name in names), failed


def test_what_fails_at_one_size_says_where():
    found = results()
    for i, r in enumerate(found):
        if (r.cell.protocol, r.cell.nodes, r.cell.gap_ms) == ("dtp", 10, 200.0):
            found[i] = replace(r, measures=r.measures | {"stability_ms": 199.0})
    claims = dtp.findings_of(found).claims
    failed = [claim for claim in claims if claim.verdict is Outcome.DOES_NOT]
    assert [claim.claim for claim in failed] == [
        "DTP / CM, stability time",
        "DTP / Pinwheel, stability time",
    ]
    assert {claim.reason for claim in failed} == {"worst at n = 10, 200 ms"}


def test_a_claim_names_its_figure():
    findings = dtp.findings_of(results())
    drawn = {figure.name for figure in findings.figures}
    assert {claim.figure for claim in findings.claims} == {*drawn, ""}
    by_claim = {claim.claim: claim.figure for claim in findings.claims}
    assert by_claim["DTP / CM, buffer"] == "figure3"


def test_runs_that_are_missing_are_named():
    found = results()
    with pytest.raises(ValueError, match=r"no run of cm with 20 nodes, 1/lambda = 50 ms"):
        dtp.findings_of(
            [r for r in found if r.cell != Cell("cm", 20, 50.0, 1000)],
        )
    with pytest.raises(ValueError, match=r"dtp with 3 nodes, always ready.* with seed 2"):
        dtp.findings_of([r for r in found if r.seed < 2 or r.cell.gap_ms])
    with pytest.raises(ValueError, match="two sizes"):
        dtp.findings_of([r for r in found if r.cell.nodes in (3, 40)])


# Figures and the command


def test_the_figures_have_a_point_for_each_size_and_curve():
    by_name = {figure.name: figure for figure in dtp.findings_of(results()).figures}
    assert list(by_name) == ["figure2", "figure3", "figure4", "figure5"]
    assert len(by_name["figure2"].series) == 12
    assert [len(by_name[f"figure{i}"].series) for i in (3, 4, 5)] == [4, 4, 4]
    for figure in by_name.values():
        for series in figure.series:
            assert [p.x for p in series.points] == [5, 10, 20, 40]
    (cm,) = (s for s in by_name["figure3"].series if s.subject == "CM")
    assert cm.points[-1].mean == pytest.approx(0.99 * 40)


def test_the_command_writes_tables_and_plots(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(runs, "run", planted)
    out = tmp_path / "out"
    assert main(["claims", "dtp", "--jobs", "1", "-o", str(out)]) == 0
    assert "DTP, stability time / (1/lambda)" in capsys.readouterr().out
    names = [f"dtp-figure{i}" for i in range(2, 6)]
    expected = [*(f"{name}.{kind}" for name in names for kind in ("csv", "svg")), "dtp-claims.csv"]
    assert sorted(path.name for path in out.iterdir()) == sorted(expected)
    with (out / "dtp-figure5.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16
    assert {row["subject"] for row in rows} == {"DTP", "CM", "Pinwheel", "Totem"}


def test_without_the_library_tables_are_written_and_a_sentence_says_what_to_do(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(runs, "run", planted)
    monkeypatch.setattr(figures, "can_draw", lambda: False)
    assert main(["claims", "dtp", "--jobs", "1", "--json", "-o", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["claims"]) > 30
    assert "[plots]'" in captured.err
    assert len(list(tmp_path.iterdir())) == 5


def test_no_jobs_is_a_sentence(capsys):
    assert main(["claims", "dtp", "--jobs", "0"]) == 2
    assert "--jobs 0 does nothing; give at least 1" in capsys.readouterr().err
