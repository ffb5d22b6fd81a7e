"""`roundelay sim ACTION`: the actions are modules of `simulator`."""

import argparse
import importlib

ACTIONS = {
    "run": "run a scenario and compare what happens",
    "list": "list the scenarios that come with Roundelay",
    "replay": "run a recording again, choice by choice",
    "swarm": "run many seeds, each a cluster of its own",
    "explore": "try every placement of a few faults in a small group",
    "shrink": "cut a failing run down to a small scenario",
}


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in ACTIONS.items():
        module = importlib.import_module(f"roundelay.cli.simulator.{name}")
        action = actions.add_parser(name, help=summary, description=summary.capitalize() + ".")
        module.configure(action)
        action.set_defaults(act=module.run)


def run(args: argparse.Namespace) -> int:
    code: int = args.act(args)
    return code
