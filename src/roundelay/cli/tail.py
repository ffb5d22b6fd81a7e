"""`roundelay tail`: shows what a running node delivers, as it is delivered."""

import argparse
import base64
import json
from typing import Any

from roundelay.cli import connection
from roundelay.cli.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, metavar="N", help="stop after so many messages")
    connection.configure(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document per line")


def run(args: argparse.Namespace) -> int:
    left = args.count
    if left is not None and left < 1:
        raise UserError(f"--count must be 1 or more, not {left}")
    with connection.connected(args) as client:
        for document in client.tail():
            shown = json.dumps(document) if args.json else connection.printable(_line(document))
            print(shown, flush=True)
            if left is not None and "payload" in document:
                left -= 1
                if left <= 0:
                    return 0
    return 0


def _line(document: dict[str, Any]) -> str:
    """An event as text. Its payload may hold anything, line breaks too."""
    if "view" in document:
        kind = "transitional view" if document["transitional"] else "view"
        primary = ", primary" if document["primary"] else ""
        return f"-- {kind} {document['view']}: {', '.join(document['members'])}{primary}"
    payload = base64.b64decode(document["payload"])
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        text = repr(payload)
    return f"{document['position']} {document['sender']}: {text}"
