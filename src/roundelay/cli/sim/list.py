"""`roundelay sim list`: the scenarios that come with Roundelay, and what happens in each."""

import argparse
import json
import shutil
import textwrap

from roundelay.cli.errors import UserError
from roundelay.sim.shipped import shipped, summary


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prefix", nargs="?", default="", metavar="PREFIX", help="as totem/g")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    found = {name: path for name, path in shipped().items() if name.startswith(args.prefix)}
    if not found:
        raise UserError(f"no scenario begins with {args.prefix!r}; without it all are listed")
    summaries = {name: summary(path) for name, path in found.items()}
    if args.json:
        print(json.dumps(summaries, indent=2))
        return 0
    width = max(40, shutil.get_terminal_size().columns - 4)
    for name, text in summaries.items():
        print(name)
        print(f"    {textwrap.shorten(text, width, placeholder=' ...')}")
    print(f"\nrun one: roundelay sim run {next(iter(found))}")
    return 0
