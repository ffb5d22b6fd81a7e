"""`roundelay sim explore`: every placement of a few deviations in a small group."""

import argparse
import json
import os
import time
from pathlib import Path

from roundelay.cli.engines import engine
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.cli.sim.pictures import draw_again
from roundelay.cli.sim.swarm import check_log
from roundelay.sim.explore import SITUATIONS, Exploration, Violation
from roundelay.sim.explore.situations import NODES_MAX, NODES_MIN
from roundelay.sim.simulation import explorable

_DEEP = " and ".join(name for name, s in SITUATIONS.items() if s.deviations > 1)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--protocol", type=engine, default="totem", metavar="P", help=", ".join(explorable())
    )
    parser.add_argument("--nodes", type=int, default=NODES_MIN, metavar="N")
    parser.add_argument(
        "--log",
        action="store_true",
        help="nodes keep a replicated log, and machines may lose power",
    )
    parser.add_argument(
        "--deviations",
        type=int,
        metavar="D",
        help="most departures of a run from the plain one; each more multiplies the work by "
        f"about fifty (default: 2 in {_DEEP}, 1 in other situations)",
    )
    parser.add_argument(
        "--situation",
        nargs="+",
        default=list(SITUATIONS),
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
        help="where the scenario and the picture of each violation go (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    _check(args)
    exploration = Exploration(
        args.protocol,
        nodes=args.nodes,
        deviations=args.deviations,
        situations=[name for name in SITUATIONS if name in args.situation],
        limit=args.limit,
        log=args.log,
    )
    began = time.monotonic()
    progress = Progress("exploring")
    for done, parts in exploration.run(args.jobs):
        progress.update(done, parts)
    progress.close()
    seconds = time.monotonic() - began
    files = [
        _write(
            args.output,
            f"{args.protocol}{'-log' * args.log}-{violation.situation}-{number}",
            violation,
        )
        for number, violation in enumerate(exploration.violations, 1)
    ]
    again = [f"roundelay sim run {path}" for path in files]
    if args.json:
        document = {**exploration.document(), "seconds": round(seconds, 1), "replay": again}
        print(json.dumps(document, indent=2))
    else:
        for violation, command, path in zip(exploration.violations, again, files, strict=True):
            picture = draw_again(violation.scenario, path.with_suffix(".svg"), path.stem)
            _print(violation, command, picture)
        print(exploration.summary())
        print(f"{seconds:.0f} s")
    return 1 if exploration.violations else 0


def _check(args: argparse.Namespace) -> None:
    """Raise UserError if the arguments make no sense."""
    if args.protocol not in explorable():
        known = ", ".join(explorable())
        raise UserError(f"{args.protocol!r} cannot be explored; choose a protocol of: {known}")
    if args.log:
        check_log(args.protocol)
    if unknown := [name for name in args.situation if name not in SITUATIONS]:
        known = ", ".join(SITUATIONS)
        raise UserError(f"there is no situation {unknown[0]!r}; choose of: {known}")
    if not NODES_MIN <= args.nodes <= NODES_MAX:
        raise UserError(f"--nodes must be {NODES_MIN} to {NODES_MAX}, not {args.nodes}")
    if args.deviations is not None and args.deviations < 0:
        raise UserError(f"--deviations must be 0 or more, not {args.deviations}")
    for name in ("limit", "jobs"):
        if getattr(args, name) < 1:
            raise UserError(f"--{name} must be 1 or more, not {getattr(args, name)}")


def _write(directory: Path, name: str, violation: Violation) -> Path:
    path = directory / f"{name}.txt"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(violation.scenario, encoding="utf-8")
    except OSError as e:
        raise UserError(f"cannot write {path}: {e.strerror}; choose another with -o") from None
    return path


def _print(violation: Violation, again: str, picture: str) -> None:
    print(f"{violation.situation}: {SITUATIONS[violation.situation].story}")
    for deviation in violation.deviations or ("no deviation",):
        print(f"    {deviation}")
    for failure in violation.failures:
        print(f"  {failure}")
    print(f"  again: {again}")
    print(f"  {picture}\n")
