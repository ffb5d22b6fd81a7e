"""`roundelay kv list`: prints keys and their values."""

import argparse
import json

from roundelay.cli.connection import printable
from roundelay.cli.kv import common


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "prefix", nargs="?", default="", metavar="PREFIX", help="of keys (default: all)"
    )
    common.configure(parser, stale=True)
    parser.add_argument("--json", action="store_true", help="one JSON object of all")


def run(args: argparse.Namespace) -> int:
    try:
        return _run(args)
    except common.Stopped as e:
        return e.code


def _run(args: argparse.Namespace) -> int:
    items: dict[str, str] = {}
    with common.asking(args, "kv list") as client:
        found = client.ask(
            patient=True,
            do="kv",
            op="list",
            prefix=args.prefix,
            stale=args.stale,
            timeout_s=args.timeout_s,
        )
        while "end" not in found:
            items[found["key"]] = found["value"]
            found = client.answer()
        common.warn_if_old(found)
    if args.json:
        print(json.dumps(items))
    else:
        for key, value in items.items():
            print(f"{printable(key)}\t{printable(value)}")
    return 0
