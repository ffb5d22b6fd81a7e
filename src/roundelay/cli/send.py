"""`roundelay send`: messages to the group of a running node."""

import argparse
import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.runtime.client import Client, ClientError, find_control


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help="a message each; without any, the lines of stdin"
    )
    parser.add_argument(
        "--to",
        action="append",
        metavar="NODE",
        help="for this node alone, or once for each of several; not every engine can do that",
    )
    parser.add_argument("--safe", action="store_true", help="delivered only once everybody has it")
    parser.add_argument("--control", type=Path, metavar="PATH", help="the node's control socket")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    sent = []
    try:
        with Client(args.control or find_control()) as client:
            for payload in _payloads(args.text):
                encoded = base64.b64encode(payload).decode("ascii")
                asked = client.ask(do="send", payload=encoded, safe=args.safe, to=args.to)
                number = asked["number"]
                position = client.answer()["position"]
                sent.append({"number": number, "position": position})
                if not args.json:
                    print(position, flush=True)
    except ClientError as e:
        raise UserError(str(e)) from None
    if args.json:
        print(json.dumps({"sent": sent}))
    return 0


def _payloads(texts: list[str]) -> Iterator[bytes]:
    if texts:
        yield from (text.encode() for text in texts)
    else:
        yield from (line.rstrip(b"\n") for line in sys.stdin.buffer)
