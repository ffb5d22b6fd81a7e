"""`roundelay bench sweep`: a sweep on Spark next to a plain pool of processes."""

import argparse
import dataclasses
import json

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cells", type=int, default=200, help="of very different lengths")
    parser.add_argument("--cores", type=int, default=2, help="for both")
    parser.add_argument("--rounds", type=int, default=3, help="of each, alternating")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.pipeline.errors import PipelineError

    if min(args.cells, args.cores, args.rounds) < 1:
        raise UserError("--cells, --cores and --rounds must be at least 1")
    try:
        from roundelay.bench import sweep

        progress = Progress("sweeping")
        found = sweep.compare(args.cells, args.cores, args.rounds, progress.update)
        progress.close()
    except ImportError as e:
        raise UserError(needs(str(e.name), "spark")) from None
    except PipelineError as e:
        raise UserError(str(e)) from None
    if args.json:
        document = dataclasses.asdict(found) | {"ratio": found.ratio}
        print(json.dumps(document, indent=2))
        return 0
    print(
        f"{found.cells} uneven cells, {found.work_s:.0f} s of work on {found.cores} cores; "
        f"medians of {args.rounds} rounds"
    )
    for name, seconds in (("pool of processes", found.pool_s), ("sweep on Spark", found.sweep_s)):
        print(f"  {name:<20}{seconds:>8.1f} s{found.cells / seconds:>9.1f} cells/s")
    print(f"  the sweep has {found.ratio:.2f} of the pool's throughput", end="")
    print(f"; starting Spark took {found.start_s:.1f} s besides")
    print(f"  the results are {'the same' if found.same else 'NOT THE SAME'}")
    return 0 if found.same else 1
