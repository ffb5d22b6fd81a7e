"""Runs two groups in the simulator through faults, checks their traces and draws them."""

from importlib.resources import files
from pathlib import Path

from roundelay.check import Report, Validity, check
from roundelay.check.text import table
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.core.effects import Kind
from roundelay.draw import Window, svg
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.schema import LOWER_LAYER
from roundelay.trace.writer import Writer

DRAWN = "O5"
"""The property whose violation is drawn: two nodes deliver two messages in two orders."""

SHOWN = (Kind.INSTALL, Kind.CRASH, Kind.RECOVER, Kind.FAULT, Kind.SUSPECT, Kind.END)
"""The kinds of events in the diagram of the long run: thousands of messages would hide the
views."""


def show(output: Path) -> None:
    """Show that the checker finds violations of the template engine, and none of Totem."""
    print("1. An engine that orders nothing: the template, on a lossy network.\n")
    runner, report, manifest = _run_and_check("template", output)
    violated = [v for v in report.verdicts if v.validity is Validity.VIOLATED]
    if not violated:
        raise UserError("the checker convicted nobody, which it must here; please report this")
    drawn = next((v for v in violated if v.property == DRAWN), violated[0])
    _draw(
        output / "template.svg",
        svg(
            runner.rows,
            manifest,
            witness=drawn.witness,
            reason=f"{drawn.property}: {drawn.reason}",
            title="What the template does wrong",
            window=Window(around=25),
        ),
        f"what {drawn.property} looks like",
    )
    print("\n2. Totem: a crash, a partition, a merge and a restart, and nothing stops.\n")
    runner, report, manifest = _run_and_check("totem", output)
    _draw(
        output / "totem.svg",
        svg(
            runner.rows,
            manifest,
            title="Totem through a crash, a partition, a merge and a restart",
            window=Window(hide=tuple(kind for kind in Kind if kind not in SHOWN)),
        ),
        "its views and faults",
    )
    if not report.ok:
        raise UserError("Totem broke a promise, which it must not; please report this")


def _run_and_check(name: str, output: Path) -> tuple[ScenarioRunner, Report, Manifest]:
    """Run a scenario of the package, write its trace, check it and print the verdicts."""
    scenario = (files("roundelay.sim") / "scenarios" / f"{name}.txt").read_text()
    progress = Progress("simulating")
    runner = ScenarioRunner(progress=progress.update)
    for block in parse(scenario):
        runner.play(block)
    progress.close()
    directory = output / name
    try:
        with Writer(directory, runner.manifest(scenario)) as writer:
            for row in runner.rows:
                writer.append(row)
    except TraceError as e:
        raise UserError(f"{e}; choose another place with -o DIR") from None
    report = check(runner.rows, writer.manifest)
    delivered = sum(row.kind == "deliver" and row.layer != LOWER_LAYER for row in runner.rows)
    views = len({(row.c_seq, row.c_rep) for row in runner.rows if row.kind == "install"})
    told = f", {views} views" if views else ""
    print(
        f"{len(runner.world.nodes)} nodes, {runner.world.frames} frames, {delivered} deliveries"
        f"{told}, seed {runner.seed}\n"
    )
    print(table(report, writer.manifest))
    print(f"trace:   {directory} (roundelay check {directory})")
    return runner, report, writer.manifest


def _draw(path: Path, picture: str, what: str) -> None:
    path.write_text(picture)
    print(f"picture: {path}, {what} (open it in a browser)")
