"""The experiment for plans of one's own."""

from collections import Counter
from dataclasses import replace

import pytest

from roundelay.check import check
from roundelay.experiments.load import Cell, manifest, run
from roundelay.experiments.results import cost
from roundelay.trace.schema import Row


def test_the_same_cell_and_seed_give_the_same_measures():
    cell = Cell("totem", messages=60, loss_share=0.05)
    assert run(cell, 3) == run(cell, 3) != run(cell, 4)


def test_loss_costs_frames_and_time_and_nothing_else():
    clean, lossy = (run(Cell("fifo", messages=200, loss_share=share), 1) for share in (0.0, 0.1))
    assert clean["delivered_share"] == lossy["delivered_share"] == 1
    assert lossy["frames_per_message"] > clean["frames_per_message"]
    assert lossy["latency_p99_ms"] > clean["latency_p99_ms"]
    assert clean["latency_p50_ms"] == pytest.approx(0.1)


def test_an_engine_that_repairs_nothing_loses_messages():
    assert run(Cell("template", messages=200, loss_share=0.1), 1)["delivered_share"] < 1


@pytest.mark.parametrize("protocol", ["totem", "atop"])
@pytest.mark.parametrize("mode", ["static", "views"])
def test_a_trace_is_whole_and_changes_nothing(protocol, mode):
    """The trace of atop tells of each message in two layers."""
    cell = Cell(protocol, messages=30, mode=mode)
    rows: list[Row] = []
    assert run(cell, 1, rows.append) == run(cell, 1)
    counted = Counter(f"{row.proc}.{row.inc}" for row in rows)
    report = check(rows, replace(manifest(cell, 1), rows=counted))
    assert report.ok
    assert {v.property: v.instances for v in report.verdicts}["O5"] > 0


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"protocol": "corosync"}, "no engine is called"),
        ({"protocol": "totem", "nodes": 1}, "at least 2"),
        ({"protocol": "totem", "messages": 1}, "at least 2"),
        ({"protocol": "totem", "rate_per_s": 0.0}, "more than 0"),
        ({"protocol": "template", "mode": "views"}, "static groups only"),
    ],
)
def test_a_cell_that_makes_no_sense_is_refused(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        Cell(**fields)


def test_dear_cells_cost_more():
    assert cost(Cell("totem", messages=200)) > cost(Cell("totem", messages=20))
    assert cost(object()) == 1.0
