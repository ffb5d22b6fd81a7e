"""Sweeps and traces to report on, made in a moment."""

from functools import cache
from importlib.resources import files
from pathlib import Path

from roundelay.experiments.papers.atop import runs as atop_runs
from roundelay.experiments.papers.dtp import runs as dtp_runs
from roundelay.experiments.plan import PlannedRun, read
from roundelay.pipeline.sweep.store import open_store
from roundelay.pipeline.sweep.work import Row
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row as TraceRow
from roundelay.trace.writer import Writer

SHARES = {
    **{"missed_share": 0.02, "goback_share": 0.4, "linked_share": 0.1, "recovery_share": 0.3},
    **{"single_share": 0.1, "clean_share": 0.5},
}

WORKLOADS = {
    "saturated": {"rate_per_s": 900.0},
    "poisson": {"latency_ms": 9.0, "wait_ms": 7.0, "rotation_ms": 14.0},
    "token loss": {"loss_ms": 15.0},
    "new ring": {"total_ms": 140.0, "forming_ms": 46.0, "hops": 25.0},
    "switched saturated": {"rate_per_s": 90_000.0},
    "switched poisson": {"latency_ms": 0.25, "rotation_ms": 0.32},
    "delay": {
        **{"delay_ms": 5.0, "hop_us": 1500.0},
        **{"confirmation_hops": 1.4, "confirmation_most_hops": 2.0},
    },
    "recovery": {"silence_ms": 100.0, "order_ms": 1.0, "expiry_ms": 3.0, "crash_ms": 115.0},
    "agreement": {"runs": 100.0, "divergent": 4.0},
    "losses": SHARES,
    "engine": {
        **SHARES,
        **{
            "needed_share": 0.02,
            "again_share": 0.02,
            "again_copies_share": 0.03,
            "recoveries_per_round": 2.0,
        },
    },
}
"""Figures near those that come out, by workload."""

PROTOCOLS = ("dtp", "cm", "pinwheel", "totem")


def made_sweep(directory: Path, name: str, leave_out: str = "") -> None:
    """The sweep of a paper, quick, with figures that nobody measured."""
    with open_store(directory, read(name, quick=True)) as held:
        rows = [
            Row(job.name, _measures(planned), "", 1.0)
            for planned, job in held.pairs()
            if getattr(planned.cell, "workload", None) != leave_out or not leave_out
        ]
        held.add_wave(0, rows)
        if not leave_out:
            held.write_results()


def _measures(planned: PlannedRun) -> dict[str, float]:
    cell = planned.cell
    if hasattr(cell, "workload"):
        factor = 1 + 0.01 * planned.seed
        return {name: value * factor for name, value in WORKLOADS[cell.workload].items()}
    if hasattr(cell, "period_s"):
        base = cell.cost + cell.period_s + planned.seed / 100
        return {name: base + number for number, name in enumerate(_atop_measures())}
    base = 1.0 + PROTOCOLS.index(cell.protocol) + cell.nodes / 10 + planned.seed / 100
    return {name: base + number for number, name in enumerate(_dtp_measures())}


@cache
def _dtp_measures() -> list[str]:
    """What a run gives, by name."""
    return list(dtp_runs.run(dtp_runs.Cell("dtp", 3, 100.0, 20), 0))


@cache
def _atop_measures() -> list[str]:
    return list(atop_runs.run(atop_runs.Cell("causal", 1.0, seconds=1.0), 0))


def made_trace(directory: Path, scenario: str) -> tuple[list[TraceRow], Manifest]:
    """The trace of a scenario of the package."""
    text = (files("roundelay.sim") / "scenarios" / f"{scenario}.txt").read_text()
    story = ScenarioRunner()
    for block in parse(text):
        story.play(block)
    with Writer(directory, story.manifest(text), format="parquet") as writer:
        for row in story.rows:
            writer.append(row)
    return story.rows, writer.manifest
