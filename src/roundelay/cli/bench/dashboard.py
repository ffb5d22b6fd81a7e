"""`roundelay bench dashboard`: what it costs a node to be watched."""

import argparse
import dataclasses
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from roundelay.bench.dashboard import Found, measure
from roundelay.cli.demo import NODES
from roundelay.cli.demo.processes import LOADS, Nodes
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=4, help="pairs of turns for each load")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each turn")
    parser.add_argument(
        "--load", nargs="+", choices=tuple(LOADS), default=["gentle", "heavy"], help="what is sent"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    if args.rounds < 1 or args.seconds < 1:
        raise UserError("--rounds and --seconds are at least 1")
    found: dict[str, Found] = {}
    progress = Progress("watching")
    with TemporaryDirectory() as directory:
        for load in args.load:
            with Nodes(Path(directory) / load, NODES, "totem", traced=False) as nodes:
                nodes.start(*NODES)
                nodes.wait_for_view(*NODES)
                nodes.send_from(*NODES, pause_s=0.0)
                for sender in nodes.loads.values():
                    sender.pause_s = LOADS[load]

                def say(what: str, load: str = load) -> None:
                    progress.say(f"{load}, {what}")

                try:
                    found[load] = measure(
                        {name: nodes.control(name) for name in NODES},
                        nodes.pids,
                        rounds=args.rounds,
                        seconds=args.seconds,
                        say=say,
                    )
                except TimeoutError as e:
                    raise UserError(str(e)) from None
    progress.close()
    if args.json:
        told = {load: dataclasses.asdict(one) | {"more": one.more} for load, one in found.items()}
        print(json.dumps(told, indent=2))
        return 0
    for load, one in found.items():
        print(f"load {load}: medians of {args.rounds} pairs of turns, {args.seconds:g} s each")
        for name, turns in (("not watched", one.alone), ("watched", one.watched)):
            cpu = sorted(turn.cpu_s for turn in turns)[len(turns) // 2]
            rate = sorted(turn.messages_per_s for turn in turns)[len(turns) // 2]
            cost = sorted(turn.us_per_message for turn in turns)[len(turns) // 2]
            print(
                f"  {name:<12} {cpu:7.2%} of a core at each node, {rate:8,.0f} messages/s, "
                f"{cost:6.0f} us for each"
            )
        print(f"  {'more':<12} {one.more:7.2%} of a core; {one.rows_per_s:,.0f} rows/s are kept")
    return 0
