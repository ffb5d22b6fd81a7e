"""`roundelay key reload`: a running node reads its key file again."""

import argparse
import json

from roundelay.cli import connection


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")
    connection.configure(parser)


def run(args: argparse.Namespace) -> int:
    with connection.connected(args) as client:
        seal = client.ask(do="reload_key")
        if args.json:
            print(json.dumps(seal))
        else:
            changed = "the key was changed" if seal["changed"] else "the key file has not changed"
            accepted = " and ".join(seal["accepts"])
            print(f"{changed}; sends with {seal['sends_with']}, accepts {accepted}")
    return 0
