"""`roundelay sweep PLAN`: runs many simulations on Spark and writes a table of their results."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs

if TYPE_CHECKING:
    from roundelay.experiments.plan import SweepPlan
    from roundelay.pipeline.sweep.drive import Report, Summary
    from roundelay.pipeline.sweep.store import Store

ERRORS_SHOWN = 3
"""The number of errors that are printed; the table has all of them."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", help="a TOML file, or papers/dtp or papers/totem")
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="default: a directory below out/sweep"
    )
    parser.add_argument("--quick", action="store_true", help="what the plan says is quick")
    parser.add_argument("--master", metavar="URL", default="local[*]", help="where Spark runs")
    parser.add_argument("--yes", action="store_true", help="run as many cells as there are")
    parser.add_argument("--retry", action="store_true", help="run cells that ended in an error too")
    parser.add_argument("--again", action="store_true", help="forget what an earlier sweep did")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.experiments.plan import PlanError
    from roundelay.pipeline.errors import PipelineError

    try:
        return _sweep(args)
    except ImportError as e:
        raise UserError(needs(str(e.name), "spark")) from None
    except (PipelineError, PlanError) as e:
        raise UserError(str(e)) from None


def _sweep(args: argparse.Namespace) -> int:
    from roundelay.experiments.plan import read
    from roundelay.pipeline.session import open_session
    from roundelay.pipeline.sweep.drive import drive
    from roundelay.pipeline.sweep.store import open_store

    plan = read(args.plan, quick=args.quick)
    plan.refuse_too_many(sure=args.yes or _confirmed(plan))
    directory = args.output or _place(plan)
    with open_store(directory, plan, again=args.again) as store:
        pending = store.pending(retry=args.retry)
        summary = None
        try:
            if pending:
                with open_session(args.master, short=True) as spark:
                    summary = drive(spark, store, pending, _reporter())
        except KeyboardInterrupt:
            print(
                f"\nwhat is done is kept ({len(store.rows)} cells); run the same command to go on",
                file=sys.stderr,
            )
            raise
        store.finish()
        _tell(args, plan, store, summary)
        return 1 if store.errors() else 0


def _reporter() -> "Report":
    """Show progress from now on, when Spark has started: its start does not count."""
    progress = Progress("sweeping")

    def report(done: float, total: float, cells: int) -> None:
        progress.update(round(1000 * done / total), 1000, f"{cells} cells done")
        if done >= total:
            progress.close()

    return report


def _confirmed(plan: "SweepPlan") -> bool:
    """Ask the user, if standard input is a terminal."""
    from roundelay.experiments.plan import CELLS_ASK

    if plan.size <= CELLS_ASK or not sys.stdin.isatty():
        return False
    print(f"The plan has {plan.size:,} cells. Run all of them? [y/N] ", end="", file=sys.stderr)
    return input().strip().lower() in ("y", "yes")


def _place(plan: "SweepPlan") -> Path:
    name = Path(plan.name).stem + ("-quick" if plan.quick else "")
    return Path("out") / "sweep" / name


def _tell(
    args: argparse.Namespace, plan: "SweepPlan", store: "Store", summary: "Summary | None"
) -> None:
    errors = store.errors()
    where = args.output or _place(plan)
    cells = len(store.rows)
    known = cells - (0 if summary is None else summary.cells)
    if args.json:
        document = {
            "plan": plan.name,
            "directory": str(where),
            "cells": cells,
            "known": known,
            "errors": len(errors),
            "run": None if summary is None else asdict(summary),
        }
        print(json.dumps(document, indent=2))
        return
    before = f", {known} of them before" if known else ""
    print(f"{plan.name}: {cells} cells done{before}; {len(errors)} ended in an error")
    if summary is not None:
        print(
            f"{summary.cells} cells in {summary.seconds:.0f} s, {summary.busy_s:.0f} s of work on "
            f"{summary.cores} cores, in {summary.waves} waves"
        )
    for planned, error in errors[:ERRORS_SHOWN]:
        print(f"error: {planned.cell} seed {planned.seed}: {error}")
    if len(errors) > ERRORS_SHOWN:
        print(f"error: {len(errors) - ERRORS_SHOWN} more; see the column error of the table")
    print(f"table:  {where / 'results'} (Parquet), {where / 'results.csv'}")
    if plan.traces:
        print(f"traces: {where / 'traces'} (roundelay ingest {where / 'traces'} -o TABLE)")
    print(f"report: roundelay report {where} -o report.html")
