"""`roundelay collect DIR -o DIR`: the traces of real nodes, put together for `check` and `draw`."""

import argparse
import sys
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.runtime.collect import collect, quiet_end
from roundelay.trace.manifest import TraceError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", type=Path, metavar="DIR", help="where the nodes wrote to")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", required=True)
    parser.add_argument(
        "--quiet-end",
        action="store_true",
        help="all was quiet when the nodes were stopped: whoever was stopped in good order was "
        "alive, and everything that was due had happened",
    )


def run(args: argparse.Namespace) -> int:
    progress = Progress("collecting")

    def warn(sentence: str) -> None:
        progress.close()
        print(f"warning: {sentence}", file=sys.stderr)

    try:
        world = quiet_end(args.traces) if args.quiet_end else []
        manifest = collect(args.traces, args.output, world, warn=warn, progress=progress.update)
    except TraceError as e:
        raise UserError(str(e)) from None
    finally:
        progress.close()
    rows = sum((manifest.rows or {}).values())
    lives = len(manifest.rows or {}) - bool(world)
    print(f"{rows:,} rows of {lives} lives: {args.output} (roundelay check {args.output})")
    print(f"picture: roundelay draw {args.output} --around view -o run.svg")
    if manifest.ended:
        print("what is missing leaves verdicts undecided: the check will say which, and why")
    return 0
