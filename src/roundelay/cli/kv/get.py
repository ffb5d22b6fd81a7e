"""`roundelay kv get`: prints the value of a key."""

import argparse
import json

from roundelay.cli.kv import common


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="its name")
    common.configure(parser, stale=True)
    parser.add_argument("--json", action="store_true", help="value and version, as JSON")


def run(args: argparse.Namespace) -> int:
    try:
        return _run(args)
    except common.Stopped as e:
        return e.code


def _run(args: argparse.Namespace) -> int:
    with common.asking(args, "kv get") as client:
        found = client.ask(
            patient=True,
            do="kv",
            op="get",
            key=args.key,
            stale=args.stale,
            timeout_s=args.timeout_s,
        )
        value, version = found["value"], found["version"]
        common.warn_if_old(found)
    if args.json:
        print(json.dumps({"value": value, "version": version}))
    elif value is not None:
        print(value)
    return common.NO if value is None else 0
