"""`roundelay ingest TRACES... -o DIR`: traces of many runs into one table."""

import argparse
import json
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs

SHOWN = 10
"""The number of problems that are printed; the rest is only counted."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="directories or files of traces")
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, required=True, help="the table; may exist"
    )
    parser.add_argument("--master", metavar="URL", default="local[*]", help="where Spark runs")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.pipeline.errors import PipelineError

    try:
        return _ingest(args)
    except ImportError as e:
        raise UserError(needs(str(e.name), "spark")) from None
    except PipelineError as e:
        raise UserError(str(e)) from None


def _ingest(args: argparse.Namespace) -> int:
    from roundelay.pipeline.ingest.sources import find

    find(args.traces)  # Fails early if there is nothing: Spark takes seconds to start.
    if args.output.exists() and not args.output.is_dir():
        raise UserError(f"{args.output} is not a directory; name another place with -o")
    from roundelay.pipeline.ingest.into_table import ingest, refuse_empty
    from roundelay.pipeline.session import open_session

    progress = Progress("ingesting")
    try:
        with open_session(args.master, short=True) as spark:
            progress.say("Spark runs, traces are being read")
            done = ingest(spark, args.traces, args.output)
    finally:
        progress.close()
    refuse_empty(done)
    part = done.part
    rows = 0 if part is None else sum(part.rows.values())
    runs = 0 if part is None else len(part.rows)
    problems = [s for run in sorted(part.problems) for s in part.problems[run]] if part else []
    if args.json:
        document = {
            "rows": rows,
            "runs": runs,
            "quarantined": 0 if part is None else part.quarantined,
            "known": list(done.known),
            "problems": problems,
            "table": str(args.output),
        }
        print(json.dumps(document, indent=2))
        return 0
    for problem in problems[:SHOWN]:
        print(f"problem: {problem}")
    if len(problems) > SHOWN:
        print(f"problem: and {len(problems) - SHOWN} more, see the quarantine table")
    if done.known:
        print(f"{len(done.known)} files are in the table already, and were not read again")
    print(f"{rows:,} rows of {runs} runs added; {len(done.table.runs)} runs in {args.output}")
    print(f"next: roundelay check {args.output} --master {args.master}")
    return 0
