"""`roundelay kv delete`: deletes a key."""

import argparse
import json

from roundelay.cli.kv import common


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="its name")
    common.configure(parser)
    parser.add_argument("--json", action="store_true", help="whether it was there, as JSON")


def run(args: argparse.Namespace) -> int:
    try:
        return _run(args)
    except common.Stopped as e:
        return e.code


def _run(args: argparse.Namespace) -> int:
    with common.asking(args, "kv delete") as client:
        found = client.ask(
            patient=True, do="kv", op="delete", key=args.key, timeout_s=args.timeout_s
        )
        deleted = bool(found["deleted"])
    if args.json:
        print(json.dumps({"deleted": deleted}))
    return 0 if deleted else common.NO
