"""`roundelay claims P`: the claims of P's paper, next to what the simulator measures."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.experiments import claims, figures
from roundelay.experiments.cells import run_cells
from roundelay.experiments.plan import paper_plan
from roundelay.experiments.registry import load_paper, paper_names
from roundelay.trace.extras import install


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("protocol", help=f"whose paper: {', '.join(paper_names())}")
    parser.add_argument("--full", action="store_true", help="longer runs and more seeds")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of every run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="J")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="write tables (CSV) and plots (SVG) there"
    )


def run(args: argparse.Namespace) -> int:
    try:
        paper = load_paper(args.protocol)
    except ValueError as e:
        raise UserError(str(e)) from None
    if args.seeds is not None and args.seeds < 1:
        raise UserError(f"--seeds {args.seeds} measures nothing; give at least 1")
    if args.jobs < 1:
        raise UserError(f"--jobs {args.jobs} does nothing; give at least 1")
    plan = paper_plan(paper, full=args.full, seeds=args.seeds)
    seeds = len(plan.seeds)
    progress = Progress(f"measuring {args.protocol}")
    results = run_cells(paper.runs.run, plan.runs(), jobs=args.jobs, report=progress.update)
    found = paper.findings_of(results)
    progress.close()
    if args.json:
        document = {
            "protocol": args.protocol,
            "full": args.full,
            "seeds": seeds,
            "claims": claims.documents(found.claims),
        }
        print(json.dumps(document, indent=2))
    else:
        print(claims.table(found.claims))
        print(f"\n{seeds} seeds; all figures are the simulator's, under the costs it assumes")
        if args.output is None:
            print(f"tables and plots: roundelay claims {args.protocol} -o DIR")
    if args.output is not None:
        _write(args.output / f"{args.protocol}-claims.csv", claims.to_csv(found.claims))
        _write_figures(args.output, args.protocol, found.figures)
    return 0


def _write_figures(directory: Path, protocol: str, found: Sequence[figures.Figure]) -> None:
    for figure in found:
        _write(directory / f"{protocol}-{figure.name}.csv", figures.to_csv(figure))
    if found and not figures.can_draw():
        raise UserError(
            "the tables are there, but plots need matplotlib; for those install it with: "
            f"{install('plots')}, and run this again"
        )
    for figure in found:
        path = directory / f"{protocol}-{figure.name}.svg"
        try:
            figures.draw(figure, path)
        except OSError as e:
            raise UserError(f"cannot write {path}: {e.strerror}") from None
        print(f"plot: {path}", file=sys.stderr)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as e:
        raise UserError(f"cannot write {path}: {e.strerror}") from None
    print(f"table: {path}", file=sys.stderr)
