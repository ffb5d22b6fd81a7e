"""`roundelay chaos`: a relay that injects faults between real nodes.

It prints, as one JSON document, the peers with which each node is to be started. Then it carries
out the commands on standard input, one per line, and answers each with a line. It ends at the end
of its input, or on Ctrl-C.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import threading
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.node import pairs
from roundelay.runtime.chaos import CommandError, Relay
from roundelay.runtime.client import ClientError
from roundelay.runtime.errors import RoundelayError
from roundelay.runtime.relay_control import RelayControl, usual_path
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
    parser.add_argument(
        "--control",
        type=Path,
        metavar="PATH",
        help="a socket for `roundelay dashboard --allow-faults --relay PATH` (default: one that it "
        "finds)",
    )


def run(args: argparse.Namespace) -> int:
    nodes = pairs(args.peer, "--peer")
    if len(nodes) < 2:
        raise UserError("a relay needs two nodes at least; name them with --peer a=127.0.0.1:5401")
    try:
        control = args.control or _usual_control()
        asyncio.run(_serve(Relay(nodes, seed=args.seed), args.do, control))
    except (AddressError, CommandError, RoundelayError) as e:
        raise UserError(str(e)) from None
    return 0


def _usual_control() -> Path | None:
    try:
        return usual_path()
    except ClientError as e:
        print(f"no control socket, so no dashboard finds this relay: {e}", file=sys.stderr)
        return None


async def _serve(relay: Relay, first: list[str], path: Path | None) -> None:
    relay.open()
    control = None if path is None else RelayControl(path, relay)
    try:
        if control is not None:
            await control.start()
        for line in first:
            relay.command(line)
        print(json.dumps({node: relay.peers(node) for node in relay.nodes}), flush=True)
        lines = _lines()
        while (told := await lines.get()) is not None:
            try:
                print(relay.command(told), flush=True)
            except CommandError as e:
                print(f"error: {e}", flush=True)
    finally:
        if control is not None:
            await control.close()
        relay.close()


def _lines() -> asyncio.Queue[str | None]:
    """The lines of standard input as they arrive; None at the end.

    A daemon thread reads them, so that the interpreter does not wait for it when Ctrl-C ends the
    command. It reads with `os.read`: the interpreter would wait for the lock of a buffered reader.
    """
    queue: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def tell(line: str | None) -> None:
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            loop.call_soon_threadsafe(queue.put_nowait, line)

    def read() -> None:
        rest = b""
        with contextlib.suppress(OSError):
            while data := os.read(0, 65536):
                *whole, rest = (rest + data).split(b"\n")
                for line in whole:
                    tell(line.decode(errors="replace"))
        if rest:
            tell(rest.decode(errors="replace"))
        tell(None)

    threading.Thread(target=read, daemon=True).start()
    return queue
