"""`roundelay chaos`: a relay that injects faults between real nodes.

Prints, for every node, the peers to start it with, as one JSON document. Then it obeys the lines of
standard input, one command each, and answers each with a line; it ends with its input, or with
Ctrl-C.
"""

import argparse
import asyncio
import json
import sys

from roundelay.cli.errors import UserError
from roundelay.cli.node import pairs
from roundelay.runtime.chaos import CommandError, Relay
from roundelay.transport.address import AddressError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME=HOST:PORT",
        help="a node and where it really listens; once for each",
    )
    parser.add_argument(
        "--do",
        action="append",
        default=[],
        metavar="COMMAND",
        help="from the start: loss 5%%, duplicate 5%%, reorder 5%%, delay 2ms, cut a>b, "
        "partition a,b c, heal",
    )
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    nodes = pairs(args.peer, "--peer")
    if len(nodes) < 2:
        raise UserError("a relay needs two nodes at least; name them with --peer a=127.0.0.1:5401")
    try:
        asyncio.run(_serve(Relay(nodes, seed=args.seed), args.do))
    except (AddressError, CommandError) as e:
        raise UserError(str(e)) from None
    return 0


async def _serve(relay: Relay, first: list[str]) -> None:
    relay.open()
    try:
        for line in first:
            relay.command(line)
        print(json.dumps({node: relay.peers(node) for node in relay.nodes}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                print(relay.command(line), flush=True)
            except CommandError as e:
                print(f"error: {e}", flush=True)
    finally:
        relay.close()
