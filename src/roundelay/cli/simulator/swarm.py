"""`roundelay sim swarm`: many seeds, each a cluster of its own."""

import argparse
import json
import os
import sys

from roundelay.cli.progress import Progress
from roundelay.group.engines import MODULES
from roundelay.sim.swarm import Campaign, scenario


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--protocol", required=True, choices=sorted(MODULES))
    parser.add_argument("--seeds", type=int, default=100, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="K")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="J")
    parser.add_argument("--static", action="store_true", help="the engine alone, without views")
    parser.add_argument("--show", action="store_true", help="print the first seed's scenario only")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    if args.show:
        print(scenario(args.first, args.protocol, static=args.static), end="")
        return 0
    progress = Progress("swarming")
    campaign = Campaign(args.protocol, static=args.static)
    for judgement in campaign.run(args.first, args.seeds, args.jobs):
        progress.update(campaign.seeds, args.seeds)
        for failure in judgement.failures:
            progress.close()
            print(f"seed {judgement.seed}: {failure}", file=sys.stderr)
    progress.close()
    static = " --static" if args.static else ""
    again = [
        f"roundelay sim swarm --protocol {args.protocol}{static} --first {seed} --seeds 1"
        for seed in campaign.failed
    ]
    if args.json:
        print(json.dumps({**campaign.document(), "replay": again}, indent=2))
    else:
        print(campaign.summary())
        for command in again:
            print(f"again: {command}")
    return 1 if campaign.failed else 0
