"""`roundelay dashboard`: a page that shows running groups, in a browser on this machine."""

import argparse
import importlib
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from roundelay.cli.errors import UserError

if TYPE_CHECKING:
    from roundelay.web.dashboard import Dashboard

PORT = 8790
"""Where the page is served by default."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", metavar="NAME", help="show this group alone")
    parser.add_argument(
        "--control",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="the control socket of a node to show; once for each (default: all that run here)",
    )
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="a table with verdicts or measures, or what `roundelay watch` writes; may be repeated",
    )
    parser.add_argument(
        "--relay",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="the --control of a `roundelay chaos` behind which nodes are; once for each (default: "
        "all that listen in the usual place)",
    )
    parser.add_argument(
        "--allow-faults",
        action="store_true",
        help="let the page kill, pause and cut off the nodes of groups behind `roundelay chaos`",
    )
    configure_place(parser)


def configure_place(parser: argparse.ArgumentParser) -> None:
    """Declare where the page is served."""
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where the page is served (default: to this machine alone)",
    )
    parser.add_argument(
        "--port", type=int, default=PORT, help=f"of the page (default: {PORT}; 0 takes a free one)"
    )


def run(args: argparse.Namespace) -> int:
    from roundelay.web.dashboard import Dashboard

    for directory in args.table:
        if not directory.is_dir():
            raise UserError(f"{directory} is no directory; name what check, measure or watch wrote")
    if args.table:
        importlib.import_module("pyarrow")  # Say now that it is missing, not on the page.
    dashboard = Dashboard(
        paths=args.control,
        group=args.group,
        relays=args.relay,
        tables=args.table,
        allow_faults=args.allow_faults,
    )
    serve(
        args,
        dashboard,
        "It shows the groups that run on this machine. Ctrl-C ends it.",
    )
    return 0


def serve(args: argparse.Namespace, dashboard: "Dashboard", about: str) -> None:
    """Say where the page is, and serve it until Ctrl-C."""
    from roundelay.web.serving import Serving

    token = secrets.token_urlsafe(24)
    try:
        serving = Serving(args.host, args.port)
    except (OSError, OverflowError) as e:
        why = getattr(e, "strerror", None) or e
        raise UserError(
            f"cannot listen at {args.host} port {args.port} ({why}); choose another with --port"
        ) from None
    with serving:
        if not serving.is_local:
            print(
                "Browsers elsewhere need the address or name of this machine instead. Whoever sees "
                "the traffic to it can read the token: the page is not encrypted.",
                file=sys.stderr,
            )
        told = f"Open {serving.address(token)}\n{about}"
        dashboard.serve(serving, token, lambda: print(told, flush=True))
