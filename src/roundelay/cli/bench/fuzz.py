"""`roundelay bench fuzz`: forged frames against an engine."""

import argparse
import dataclasses
import json
import math
from typing import TYPE_CHECKING

from roundelay.cli.bench.ring import need_cryptography
from roundelay.cli.engines import engine
from roundelay.cli.errors import UserError
from roundelay.cli.node import pairs
from roundelay.cli.progress import Progress
from roundelay.group.engines import (
    describe,
    engine_config,
    engine_names,
    needs_channel,
    without_views,
)
from roundelay.trace.extras import needs

if TYPE_CHECKING:
    from roundelay.bench.fuzz.run import Tally

GUIDED_S = 300.0
"""How many seconds a guided run takes by default."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine", type=engine, default="totem", metavar="NAME", help=", ".join(engine_names())
    )
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="of the engine"
    )
    parser.add_argument("--frames", type=int, default=100_000, help="forged frames in all")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same frames")
    parser.add_argument("--static", action="store_true", help="a static group, without views")
    parser.add_argument(
        "--sealed", action="store_true", help="forge sealed datagrams too, and frames under a seal"
    )
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
    if args.sealed and (args.guided or args.input is not None):
        raise UserError("--sealed draws its choices from a seed; leave --guided and --input out")
    options = pairs(args.option, "--option")
    _check_options(args.engine, options)
    static = args.static or bool(without_views(args.engine, options))
    if args.input is not None:
        tally = _replay(args, options, static)
    elif args.guided:
        tally = _guided(args, options, static)
    else:
        tally = _seeded(args, options, static)
    if args.json:
        print(json.dumps(dataclasses.asdict(tally), indent=2))
    else:
        _print(tally)
    return 0 if tally.sound else 1


def _check_options(name: str, options: dict[str, str]) -> None:
    """Refuse options that the engine does not have, or not in the groups that there are here."""
    from roundelay.bench.fuzz.arena import NODES

    try:
        describe(name).check_options(engine_config(name, options), NODES)
    except ValueError as e:
        raise UserError(f"{name}: {e}") from None
    if why := needs_channel(name, options):
        raise UserError(f"{why}, and there is none here; leave this option out")


def _seeded(args: argparse.Namespace, options: dict[str, str], static: bool) -> "Tally":
    from roundelay.bench.fuzz.run import fuzz

    if args.sealed:
        need_cryptography()
    if args.seconds is not None:
        raise UserError("--seconds bounds a guided run; add --guided, or give --frames instead")
    progress = Progress("forging frames")
    tally = fuzz(
        args.engine,
        args.frames,
        args.seed,
        static=static,
        sealed=args.sealed,
        options=options,
        first=args.first,
        report=progress.update,
    )
    progress.close()
    return tally


def _guided(args: argparse.Namespace, options: dict[str, str], static: bool) -> "Tally":
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
            options=options,
            report=progress.update,
        )
    except guided.GuideError as e:
        raise UserError(str(e)) from None
    finally:
        progress.close()


def _replay(args: argparse.Namespace, options: dict[str, str], static: bool) -> "Tally":
    from roundelay.bench.fuzz.run import replay

    try:
        data = bytes.fromhex(args.input)
    except ValueError:
        raise UserError("--input is the hexadecimal that a guided run printed") from None
    return replay(args.engine, data, static=static, options=options)


def _print(tally: "Tally") -> None:
    kind = "sealed " * tally.sealed + ("static groups" if tally.static else "groups")
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
