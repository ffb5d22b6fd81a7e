"""`roundelay tail`: what a running node's group delivers, as it comes."""

import argparse
import base64
import json
from pathlib import Path
from typing import Any

from roundelay.cli.errors import UserError
from roundelay.runtime.client import Client, ClientError, find_control


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, metavar="N", help="stop after so many messages")
    parser.add_argument("--control", type=Path, metavar="PATH", help="the node's control socket")
    parser.add_argument("--json", action="store_true", help="one JSON document per line")


def run(args: argparse.Namespace) -> int:
    left = args.count
    try:
        with Client(args.control or find_control()) as client:
            for document in client.tail():
                print(json.dumps(document) if args.json else _line(document), flush=True)
                if left is not None and "payload" in document:
                    left -= 1
                    if left <= 0:
                        return 0
    except ClientError as e:
        raise UserError(str(e)) from None
    return 0


def _line(document: dict[str, Any]) -> str:
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
