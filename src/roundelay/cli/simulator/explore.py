"""`roundelay sim explore`: every placement of a few deviations in a small group."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.sim.explore import PROTOCOLS, SITUATIONS, Exploration, Violation
from roundelay.sim.explore.situations import NODES_MAX, NODES_MIN


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--protocol", default="totem", choices=PROTOCOLS)
    parser.add_argument(
        "--nodes", type=int, default=3, choices=range(NODES_MIN, NODES_MAX + 1), metavar="N"
    )
    parser.add_argument(
        "--deviations",
        type=int,
        default=2,
        metavar="D",
        help="most departures of a run from the plain one; each more multiplies the work by "
        "about a hundred (default: 2)",
    )
    parser.add_argument(
        "--situation",
        nargs="+",
        choices=tuple(SITUATIONS),
        default=tuple(SITUATIONS),
        metavar="NAME",
        help=f"where runs begin: {', '.join(SITUATIONS)} (default: all)",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="J")
    parser.add_argument(
        "--limit", type=int, default=10, metavar="N", help="end with so many violations"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("out/explore"),
        metavar="DIR",
        help="where the scenario of each violation goes (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    if args.deviations < 0 or args.limit < 1 or args.jobs < 1:
        raise UserError("--deviations is 0 or more, --limit and --jobs are 1 or more")
    situations = tuple(name for name in SITUATIONS if name in args.situation)
    exploration = Exploration(
        args.protocol,
        nodes=args.nodes,
        deviations=args.deviations,
        situations=situations,
        limit=args.limit,
    )
    began = time.monotonic()
    progress = Progress("exploring")
    for done, parts in exploration.run(args.jobs):
        progress.update(done, parts)
    progress.close()
    seconds = time.monotonic() - began
    files = [
        _write(args.output, f"{args.protocol}-{violation.situation}-{number}", violation)
        for number, violation in enumerate(exploration.violations, 1)
    ]
    if args.json:
        document = {**exploration.document(), "seconds": round(seconds, 1)}
        document["replay"] = [f"roundelay sim run {path}" for path in files]
        print(json.dumps(document, indent=2))
    else:
        for violation, path in zip(exploration.violations, files, strict=True):
            _print(violation, path)
        print(exploration.summary())
        print(f"{seconds:.0f} s")
    return 1 if exploration.violations else 0


def _write(directory: Path, name: str, violation: Violation) -> Path:
    path = directory / f"{name}.txt"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(violation.scenario)
    except OSError as e:
        raise UserError(f"cannot write {path}: {e.strerror}; choose another with -o") from None
    return path


def _print(violation: Violation, path: Path) -> None:
    print(f"{violation.situation}: {SITUATIONS[violation.situation].story}")
    for deviation in violation.deviations or ("no deviation",):
        print(f"    {deviation}")
    for failure in violation.failures:
        print(f"  {failure}")
    print(f"  again: roundelay sim run {path}\n")
    sys.stdout.flush()
