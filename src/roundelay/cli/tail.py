"""`roundelay tail`: shows what a running node delivers, or the entries of its log."""

import argparse
import base64
import json
from typing import Any

from roundelay.cli import connection
from roundelay.cli.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, metavar="N", help="stop after so many messages")
    parser.add_argument("--log", action="store_true", help="the entries of the replicated log")
    parser.add_argument(
        "--from",
        dest="from_index",
        metavar="N",
        help="with --log: from this index on, or from the first one that is held (default: those "
        "that are committed from now on)",
    )
    connection.configure(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document per line")


def run(args: argparse.Namespace) -> int:
    left = args.count
    if left is not None and left < 1:
        raise UserError(f"--count must be 1 or more, not {left}")
    start = _start(args)
    with connection.connected(args) as client:
        for document in client.log(start) if args.log else client.tail():
            shown = json.dumps(document) if args.json else connection.printable(_line(document))
            print(shown, flush=True)
            if left is not None and "payload" in document:
                left -= 1
                if left <= 0:
                    return 0
    return 0


def _start(args: argparse.Namespace) -> int | str | None:
    """Where to read the log from."""
    text = args.from_index
    if text is None:
        return None
    if not args.log:
        raise UserError("--from is an index of the log; add --log")
    if text == "first":
        return "first"
    if not text.isdecimal():
        raise UserError(f"--from {text} is no index; use a number, or first")
    return int(text)


def _line(document: dict[str, Any]) -> str:
    """An event as text. Its payload may hold anything, line breaks too."""
    if "view" in document:
        kind = "transitional view" if document["transitional"] else "view"
        primary = ", primary" if document["primary"] else ""
        return f"-- {kind} {document['view']}: {', '.join(document['members'])}{primary}"
    if "lossy_from" in document:
        return (
            f"-- generation {document['generation']}: entries that were confirmed before "
            f"{document['lossy_from']} may be gone"
        )
    payload = base64.b64decode(document["payload"])
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        text = repr(payload)
    place = document["index"] if "index" in document else document["position"]
    return f"{place} {document['sender']}: {text}"
