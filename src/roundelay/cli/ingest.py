"""`roundelay ingest TRACES... -o DIR`: traces of many runs into one table; with `--follow`, as they
are written."""

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
    parser.add_argument(
        "--follow",
        action="store_true",
        help="go on adding what nodes write (with trace_roll_s, or lines), until interrupted",
    )
    parser.add_argument(
        "--every", metavar="SECONDS", type=float, help="with --follow: how often (default 10)"
    )
    parser.add_argument(
        "--once", action="store_true", help="with --follow: end when what is there now is added"
    )
    parser.add_argument(
        "--explain",
        metavar="FILE",
        type=Path,
        help="write there what Spark does for each query",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.pipeline.errors import PipelineError

    if not args.follow and (args.once or args.every is not None):
        raise UserError("--every and --once say how to follow; add --follow")
    if args.every is not None and args.every <= 0:
        raise UserError(f"--every {args.every:g} is no time; give seconds, such as 10")
    try:
        return _follow(args) if args.follow else _ingest(args)
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
    from roundelay.pipeline.plans import explained
    from roundelay.pipeline.session import open_session

    progress = Progress("ingesting")
    session = open_session(args.master, short=True)
    try:
        with session as spark, explained(spark, args.explain):
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


def _follow(args: argparse.Namespace) -> int:
    from roundelay.pipeline.live.follow import EVERY_S, Added, follow
    from roundelay.pipeline.live.trails import trails
    from roundelay.pipeline.session import open_session

    def told(added: Added) -> None:
        if args.json:
            document = {
                "rows": added.rows,
                "files": added.files,
                "behind_s": round(added.behind_s, 3),
                "runs": len(added.ingested.table.runs),
            }
            print(json.dumps(document), flush=True)
        else:
            print(
                f"{added.rows:,} rows of {added.files} files added, {added.behind_s:.1f} s behind",
                flush=True,
            )

    trails(args.traces)  # Fails early if there is no such directory: Spark takes seconds to start.
    every_s = EVERY_S if args.every is None else args.every
    with open_session(args.master) as spark:
        follow(spark, args.traces, args.output, every_s=every_s, once=args.once, told=told)
    if not args.json:
        print(f"next: roundelay check {args.output} --master {args.master}")
    return 0
