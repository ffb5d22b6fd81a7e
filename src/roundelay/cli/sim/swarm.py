"""`roundelay sim swarm`: many seeds, each a cluster of its own."""

import argparse
import json
import os
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from roundelay.check.profiles import RULES
from roundelay.cli.engines import check_rules, engine
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.cli.sim.pictures import draw_again
from roundelay.group.engines import describe, engine_names, log_refusal
from roundelay.sim.seeds import scenario
from roundelay.sim.swarm import Campaign
from roundelay.trace.extras import needs


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--protocol", required=True, type=engine, metavar="P", help=", ".join(engine_names())
    )
    parser.add_argument("--seeds", type=int, default=100, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="K")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="J")
    parser.add_argument(
        "--rules", choices=RULES, default="safe", help="of engines that have others than safe ones"
    )
    parser.add_argument("--static", action="store_true", help="the engine alone, without views")
    parser.add_argument(
        "--intruder", action="store_true", help="sealed traffic, and somebody who attacks it"
    )
    parser.add_argument("--log", action="store_true", help="groups that keep a replicated log")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("out/swarm"),
        metavar="DIR",
        help="where the picture of the first failure goes (default: %(default)s)",
    )
    parser.add_argument("--show", action="store_true", help="print the first seed's scenario only")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    static = args.static or describe(args.protocol).static_only
    check_rules(args.protocol, args.rules, static=static)
    if args.intruder:
        check_intruder(args.rules)
    if args.log:
        check_log(args.protocol, args.rules, static=static)
    for name in ("seeds", "jobs"):
        if getattr(args, name) < 1:
            raise UserError(f"--{name} must be 1 or more, not {getattr(args, name)}")
    story = partial(
        scenario,
        protocol=args.protocol,
        static=static,
        rules=args.rules,
        intruder=args.intruder,
        log=args.log,
    )
    if args.show:
        print(story(args.first), end="")
        return 0
    progress = Progress("swarming")
    campaign = Campaign(
        args.protocol, static=static, rules=args.rules, intruder=args.intruder, log=args.log
    )
    for result in campaign.run(args.first, args.seeds, args.jobs):
        progress.update(campaign.seeds, args.seeds)
        for failure in result.failures:
            progress.close()
            print(f"seed {result.seed}: {failure}", file=sys.stderr)
    progress.close()
    how = f"--protocol {args.protocol}{' --static' * static}"
    how += f" --rules {args.rules}" * (args.rules != "safe") + " --intruder" * args.intruder
    how += " --log" * args.log
    again = [f"roundelay sim swarm {how} --first {seed} --seeds 1" for seed in campaign.failed]
    if args.json:
        print(json.dumps({**campaign.document(), "replay": again}, indent=2))
    else:
        print(campaign.summary())
        for command in again:
            print(f"again: {command}")
        for seed in campaign.failed[:1]:
            print(f"made small: roundelay sim shrink {how} --seed {seed} -o story.txt")
            picture = args.output / f"{args.protocol}-{seed}.svg"
            print(draw_again(story(seed), picture, f"seed {seed} of {args.protocol}"))
        if campaign.ok:
            print(f"look at one: roundelay sim swarm {how} --first {args.first} --show > seed.txt")
            print("             roundelay sim run seed.txt --trace seed; roundelay draw seed")
    return 0 if campaign.ok else 1


def check_log(protocol: str, rules: str = "safe", *, static: bool = False) -> None:
    """UserError if there can be no log."""
    if static:
        raise UserError("--log goes with views: a fixed group keeps no log; leave out --static")
    if why := log_refusal(protocol, {} if rules == "safe" else {"rules": rules}):
        raise UserError(why.replace("leave out journal", "leave out --log"))


def check_intruder(rules: str) -> None:
    """UserError if there can be no intruder."""
    if rules != "safe":
        raise UserError("--intruder goes with the safe rules: others assume that no frame is lost")
    if find_spec("cryptography") is None:
        raise UserError(f"--intruder: {needs('cryptography')}")
