"""`roundelay send`: sends messages to the group of a running node."""

import argparse
import base64
import json
import sys
from collections.abc import Iterable

from roundelay.cli import connection
from roundelay.cli.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help="a message each; without any, the lines of stdin"
    )
    parser.add_argument(
        "--to",
        action="append",
        metavar="NODE",
        help="for these nodes alone (b or b,c); not every engine can do that",
    )
    parser.add_argument("--safe", action="store_true", help="delivered only once everybody has it")
    connection.configure(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    sent = []
    to = None if args.to is None else [name for names in args.to for name in names.split(",")]
    payloads = _payloads(args.text)
    with connection.connected(args) as client:
        for payload in payloads:
            encoded = base64.b64encode(payload).decode("ascii")
            asked = client.ask(do="send", payload=encoded, safe=args.safe, to=to)
            number = asked["number"]
            position = client.answer()["position"]
            sent.append({"number": number, "position": position})
            if not args.json:
                print(connection.printable(str(position)), flush=True)
    if args.json:
        print(json.dumps({"sent": sent}))
    return 0


def _payloads(texts: list[str]) -> Iterable[bytes]:
    if not texts:
        return (line.rstrip(b"\n") for line in sys.stdin.buffer)
    try:
        return [text.encode() for text in texts]
    except UnicodeEncodeError:
        raise UserError("a TEXT is not UTF-8; send other bytes as lines of the input") from None
