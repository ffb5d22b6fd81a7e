"""`roundelay kv watch`: prints changes as they come."""

import argparse
import json
from typing import Any

from roundelay.cli import connection
from roundelay.cli.kv import common


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "prefix", nargs="?", default="", metavar="PREFIX", help="of keys (default: all)"
    )
    parser.add_argument("--present", action="store_true", help="begin with the keys that are there")
    connection.configure(parser)
    parser.add_argument("--json", action="store_true", help="a JSON object per line")


def run(args: argparse.Namespace) -> int:
    try:
        return _run(args)
    except common.Stopped as e:
        return e.code


def _run(args: argparse.Namespace) -> int:
    with common.asking(args, "kv watch") as client:
        found = client.ask(
            patient=True, do="kv", op="watch", prefix=args.prefix, present=args.present
        )
        while True:
            print(json.dumps(found) if args.json else _line(found), flush=True)
            found = client.answer(patient=True)


def _line(change: dict[str, Any]) -> str:
    """Key and value, or the key alone if it is gone."""
    if change["value"] is None:
        return connection.printable(change["key"])
    return connection.printable(change["key"]) + "\t" + connection.printable(change["value"])
