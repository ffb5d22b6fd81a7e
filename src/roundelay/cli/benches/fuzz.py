"""`roundelay bench fuzz`: forged frames against an engine."""

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.group.engines import MODULES, STATIC_ONLY

if TYPE_CHECKING:
    from roundelay.bench.fuzz.run import Tally


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=sorted(MODULES), default="totem")
    parser.add_argument("--frames", type=int, default=100_000, help="forged frames in all")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same frames")
    parser.add_argument("--static", action="store_true", help="a static group, without views")
    parser.add_argument(
        "--first", type=int, default=0, metavar="N", help="leave out the first N groups of the seed"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.bench.fuzz.run import fuzz

    if args.frames < 1 or args.first < 0:
        raise UserError("--frames is 1 at least, and --first is not negative")
    progress = Progress("forging frames")
    static = args.static or args.engine in STATIC_ONLY
    tally = fuzz(
        args.engine,
        args.frames,
        args.seed,
        static=static,
        first=args.first,
        report=progress.update,
    )
    progress.close()
    if args.json:
        print(json.dumps(dataclasses.asdict(tally), indent=2))
    else:
        _print(tally)
    return 0 if tally.sound else 1


def _print(tally: "Tally") -> None:
    kind = "static groups" if tally.static else "groups"
    print(
        f"{tally.engine}: {tally.frames:,} forged frames against {tally.groups} {kind},"
        f" seed {tally.seed}\n"
        f"  exceptions     {tally.exceptions}\n"
        f"  stuck groups   {tally.stuck} of {tally.judged} that had to recover\n"
        f"  slowest input  {tally.slowest_ms:.1f} ms of CPU time\n"
        f"  memory         {tally.peak_mb:.0f} MB at most, {tally.early_mb:.0f} MB after the first"
        " groups\n"
        f"  dropped        {_pairs(tally.drops)}\n"
        f"  received in    {_pairs(tally.phases)}"
    )
    for failure in tally.failures:
        print(
            f"frame {failure.frame}: {failure.what}\n"
            f"  {failure.where}\n"
            f"  the last forged frame, and who got it: {failure.input}\n"
            f"  again: {failure.again}"
        )


def _pairs(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "nothing"
