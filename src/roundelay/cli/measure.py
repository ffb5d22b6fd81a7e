"""`roundelay measure DIR`: latencies, load and recovery of the runs in a table."""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs

if TYPE_CHECKING:
    from roundelay.pipeline.measure.measure import Line

RUNS_SHOWN = 5
"""The number of runs whose measures are printed; the files have all of them."""
WIDTH = 100
"""Characters of a line that explains a measure."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="DIR", type=Path, help="a table, as `ingest` makes it")
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, help="where to write (default: into the table)"
    )
    parser.add_argument("--master", metavar="URL", default="local[*]", help="where Spark runs")
    parser.add_argument(
        "--explain",
        metavar="FILE",
        type=Path,
        help="write there what Spark does for each query",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.pipeline.errors import PipelineError

    try:
        return _measure(args)
    except ImportError as e:
        raise UserError(needs(str(e.name), "spark")) from None
    except PipelineError as e:
        raise UserError(str(e)) from None


def _measure(args: argparse.Namespace) -> int:
    from roundelay.pipeline.ingest.table import Table
    from roundelay.pipeline.measure.measure import measure
    from roundelay.pipeline.plans import explained
    from roundelay.pipeline.session import open_session

    table = Table.open(args.table)
    output = args.output or args.table
    progress = Progress("measuring")
    session = open_session(args.master, short=True)
    with session as spark, explained(spark, args.explain):
        lines = measure(spark, table, output, progress.step)
    progress.close()
    if args.json:
        print(json.dumps([dataclasses.asdict(line) for line in lines], indent=2))
        return 0
    for text in described(lines):
        print(text)
    print(f"\nall of it: {output / 'measures.csv'}, {output / 'occupancy.csv'}, and as Parquet")
    print(f"report: roundelay report {args.table} -o report.html")
    return 0


def described(lines: "Sequence[Line]") -> list[str]:
    """The measures of the first runs as lines of text, and what each of them is."""
    from roundelay.pipeline.measure.words import words_of

    runs = list(dict.fromkeys(line.run for line in lines))
    said: list[str] = []
    told = dict.fromkeys(line.measure for line in lines if line.run in runs[:RUNS_SHOWN])
    for run_ in runs[:RUNS_SHOWN]:
        said.append(f"{run_}")
        said.append(
            f"  {'measure':<22}{'unit':<13}{'count':>9}{'mean':>12}{'p50':>12}{'p90':>12}"
            f"{'p99':>12}{'max':>12}"
        )
        said += [_line(line) for line in lines if line.run == run_]
    if len(runs) > RUNS_SHOWN:
        said.append(f"and {len(runs) - RUNS_SHOWN} more runs")
    said.append("")
    for measure in told:
        said += wrap(
            words_of(measure).meaning,
            WIDTH,
            initial_indent=f"  {measure:<22}",
            subsequent_indent=" " * 24,
        )
    return said


def _line(line: "Line") -> str:
    values = (line.mean, line.p50, line.p90, line.p99, line.max)
    told = "".join(f"{'' if value is None else format(value, ',.3f'):>12}" for value in values)
    return f"  {line.measure:<22}{line.unit:<13}{line.count:>9,}{told}"
