"""`roundelay kv set`: sets a key."""

import argparse
import json
import sys

from roundelay.cli.kv import common


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="its name")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="without it, all of stdin")
    parser.add_argument(
        "--ttl",
        dest="ttl_s",
        type=float,
        metavar="SECONDS",
        help="how long it is there; good for caches, not for locks",
    )
    condition = parser.add_mutually_exclusive_group()
    condition.add_argument("--if-absent", action="store_true", help="only if there is no such key")
    condition.add_argument(
        "--if-version", type=int, metavar="N", help="only if nobody has set it since `get --json`"
    )
    common.configure(parser)
    parser.add_argument("--json", action="store_true", help="the new version, as JSON")


def run(args: argparse.Namespace) -> int:
    try:
        return _run(args)
    except common.Stopped as e:
        return e.code


def _run(args: argparse.Namespace) -> int:
    condition = "absent" if args.if_absent else args.if_version
    value = sys.stdin.read() if args.value is None else args.value
    with common.asking(args, "kv set") as client:
        found = client.ask(
            patient=True,
            do="kv",
            op="set",
            key=args.key,
            value=value,
            ttl_s=args.ttl_s,
            timeout_s=args.timeout_s,
            **({} if condition is None else {"if": condition}),
        )
        version = found["version"]
    if args.json:
        print(json.dumps({"version": version}))
    return common.NO if version is None else 0
