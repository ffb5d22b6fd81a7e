"""`roundelay bench watch`: how many rows a second are judged live, and how far behind that is."""

import argparse
import dataclasses
import json

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=int, default=50_000, help="rows a second, of all nodes")
    parser.add_argument("--seconds", type=int, default=30, help="how long rows come in")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two batches")
    parser.add_argument("--master", metavar="URL", default="local[2]", help="where Spark runs")
    parser.add_argument(
        "--plant", type=int, metavar="S", help="deliver a message twice, S seconds after the first"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    """Exit code 1 if a row was not judged, or anything was found but what was planted."""
    from roundelay.pipeline.errors import PipelineError

    if args.rate < 100 or args.seconds < 1 or args.every <= 0:
        raise UserError("--rate is at least 100, --seconds at least 1, and --every more than 0")
    if args.plant is not None and not 0 <= args.plant < args.seconds:
        raise UserError("--plant is a second of the run: at least 0, and less than --seconds")
    try:
        from roundelay.bench import watch

        progress = Progress("watching")
        found = watch.measure(
            args.rate, args.seconds, args.master, args.every, progress.say, args.plant
        )
        progress.close()
    except ImportError as e:
        raise UserError(needs(str(e.name), "spark")) from None
    except PipelineError as e:
        raise UserError(str(e)) from None
    if args.json:
        print(json.dumps(dataclasses.asdict(found) | {"ok": found.ok}, indent=2))
        return 0 if found.ok else 1
    print(f"{found.judged:,} of {found.rows:,} rows judged in {found.seconds:.0f} s")
    print(f"  offered            {found.offered_rows_per_s:>10,.0f} rows/s")
    print(f"  in a batch         {found.batch_rows_per_s:>10,.0f} rows/s")
    print(
        f"  without Spark      {found.alone_rows_per_s:>10,.0f} rows per second of processor time"
    )
    print(
        f"  behind             {found.behind_median_s:>10.1f} s, at most {found.behind_max_s:.1f} s"
    )
    print(f"  rows that wait     {found.waiting_max:>10,} at most")
    print(
        f"  state, bytes       {found.state_bytes_first:>10,}, at last {found.state_bytes_last:,}, "
        f"at most {found.state_bytes_max:,}"
    )
    print(f"  left out           {found.left_out:>10,}")
    print(f"  violations         {found.violations:>10,}, {found.planted} planted")
    if found.told_s is not None:
        print(
            f"  told after         {found.told_s:>10.1f} s, in batch {found.told_batches} of them"
        )
    return 0 if found.ok else 1
