"""`roundelay bench fuzz`: forged frames against an engine."""

import argparse
import dataclasses
import json
import math
from typing import TYPE_CHECKING

from roundelay.cli.engines import engine
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.group.engines import describe, engine_names
from roundelay.trace.extras import needs

if TYPE_CHECKING:
    from roundelay.bench.fuzz.run import Tally

GUIDED_S = 300.0
"""How many seconds a guided run takes by default."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine", type=engine, default="totem", metavar="NAME", help=", ".join(engine_names())
    )
    parser.add_argument("--frames", type=int, default=100_000, help="forged frames in all")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same frames")
    parser.add_argument("--static", action="store_true", help="a static group, without views")
    parser.add_argument(
        "--first", type=int, default=0, metavar="N", help="leave out the first N groups of the seed"
    )
    parser.add_argument(
        "--guided", action="store_true", help="try inputs further that reach new code; with atheris"
    )
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="end a guided run after this time (default: 300)"
    )
    parser.add_argument(
        "--input", metavar="HEX", help="one input of a guided run again, and nothing else"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    if args.frames < 1 or args.first < 0:
        raise UserError("--frames is 1 at least, and --first is not negative")
    static = args.static or describe(args.engine).static_only
    if args.input is not None:
        tally = _replay(args, static)
    elif args.guided:
        tally = _guided(args, static)
    else:
        tally = _seeded(args, static)
    if args.json:
        print(json.dumps(dataclasses.asdict(tally), indent=2))
    else:
        _print(tally)
    return 0 if tally.sound else 1


def _seeded(args: argparse.Namespace, static: bool) -> "Tally":
    from roundelay.bench.fuzz.run import fuzz

    if args.seconds is not None:
        raise UserError("--seconds bounds a guided run; add --guided, or give --frames instead")
    progress = Progress("forging frames")
    tally = fuzz(
        args.engine,
        args.frames,
        args.seed,
        static=static,
        first=args.first,
        report=progress.update,
    )
    progress.close()
    return tally


def _guided(args: argparse.Namespace, static: bool) -> "Tally":
    from roundelay.bench.fuzz import guided

    seconds = GUIDED_S if args.seconds is None else args.seconds
    if not 0 < seconds < math.inf:
        raise UserError(f"--seconds {seconds} is no time; give more than 0")
    if args.first:
        raise UserError("--first counts groups of a seed; a guided run has none to leave out")
    if not guided.available():
        raise UserError(needs("atheris"))
    progress = Progress("forging frames, guided")
    try:
        return guided.fuzz_guided(
            args.engine,
            args.frames,
            args.seed,
            seconds=seconds,
            static=static,
            report=progress.update,
        )
    except guided.GuideError as e:
        raise UserError(str(e)) from None
    finally:
        progress.close()


def _replay(args: argparse.Namespace, static: bool) -> "Tally":
    from roundelay.bench.fuzz.run import replay

    try:
        data = bytes.fromhex(args.input)
    except ValueError:
        raise UserError("--input is the hexadecimal that a guided run printed") from None
    return replay(args.engine, data, static=static)


def _print(tally: "Tally") -> None:
    kind = "static groups" if tally.static else "groups"
    edges = "" if tally.edges is None else f"  branches       {tally.edges:,} reached\n"
    print(
        f"{tally.engine}: {tally.frames:,} forged frames against {tally.groups} {kind},"
        f" seed {tally.seed}\n"
        f"  exceptions     {tally.exceptions}\n"
        f"  stuck groups   {tally.stuck} of {tally.judged} that had to recover\n"
        f"  slowest input  {tally.slowest_ms:.1f} ms of CPU time\n"
        f"  memory         {tally.peak_mb:.0f} MB at most, {tally.early_mb:.0f} MB after the first"
        " groups\n"
        f"{edges}"
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
