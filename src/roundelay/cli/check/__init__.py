"""`roundelay check PATH`: a trace against the promises of its protocol.

`local` checks one trace in this process, `spark` every run of a table; `outcome` has what both
share.
"""

import argparse
from pathlib import Path

from roundelay.check.profiles import protocol_names
from roundelay.cli.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help="a trace: its directory or a file")
    parser.add_argument(
        "--trace", metavar="TEXT", help='a trace in the mini-language instead: "p!a q?a p.a q.a"'
    )
    parser.add_argument(
        "--profile",
        metavar="PROTOCOL",
        help=f"whose promises count (default: as the trace says): {', '.join(protocol_names())}",
    )
    parser.add_argument("--properties", metavar="NAMES", help="these alone, as D7,O5")
    parser.add_argument(
        "--master", metavar="URL", help="check on Spark, there: local[*], spark://HOST:7077 ..."
    )
    parser.add_argument(
        "--explain",
        metavar="FILE",
        type=Path,
        help="with --master: write there what Spark does for each query",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")
    parser.add_argument("--all", action="store_true", help="a line for every property")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 also if something stays undecided"
    )


def run(args: argparse.Namespace) -> int:
    if args.master is None:
        if args.explain is not None:
            raise UserError("--explain tells what Spark does; add --master, such as 'local[*]'")
        from roundelay.cli.check import local

        return local.run(args)
    from roundelay.cli.check import spark

    return spark.run(args)
