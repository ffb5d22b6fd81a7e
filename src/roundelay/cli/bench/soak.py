"""`roundelay bench soak`: a group under full load for minutes."""

import argparse
import dataclasses
import json

from roundelay.cli.bench.ring import guarded
from roundelay.cli.engines import totally_ordering
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        type=totally_ordering,
        default="totem",
        metavar="NAME",
        help="(default: totem)",
    )
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.bench.ring.runs import NAMES

    if not 2 <= args.nodes <= len(NAMES) or args.minutes <= 0:
        raise UserError(f"give 2 to {len(NAMES)} --nodes and more than 0 --minutes")
    return guarded(lambda: _soak(args))


def _soak(args: argparse.Namespace) -> int:
    from roundelay.bench.ring.jobs import Cell
    from roundelay.bench.ring.soak import soak

    progress = Progress("soaking")
    found = soak(Cell(args.engine, nodes=args.nodes), args.minutes * 60, progress.update)
    progress.close()
    if args.json:
        document = {"engine": args.engine, **dataclasses.asdict(found), "growth": found.growth}
        print(json.dumps(document, indent=2))
    else:
        print(
            f"{args.engine}: {found.nodes} nodes at full load for {found.seconds / 60:g} minutes:"
            f" {found.messages:,} messages, {found.msgs_per_s:,.0f} a second, all in one order\n"
            f"  false suspicions  {found.suspicions}\n"
            f"  recoveries        {found.recoveries}, and {found.lost} datagrams were lost\n"
            f"  memory            {found.peak_mb:.0f} MB at most in the largest node,"
            f" {found.growth:.2f}x of what it was after a third of the time"
        )
    return 0 if found.sound else 1
