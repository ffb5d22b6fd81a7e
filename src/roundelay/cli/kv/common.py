"""What the commands of `roundelay kv`, and `roundelay lock`, share."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from roundelay.cli import connection
from roundelay.cli.errors import UserError
from roundelay.runtime.client import Client, ClientError, find_control

NO = 1
"""Exit code: there is no such key, or a condition did not hold."""
NOT_DONE = 75
"""Exit code: nothing was done, since the time was over or no majority is here; try again later."""
UNCERTAIN = 76
"""Exit code: a write may or may not be done; or a lock was lost while the command ran."""
TIMEOUT_S = 10.0
"""Default of `--timeout` of `kv`, in seconds. Too small: calls fail while a view changes; too
large: timers pile up while there is no majority."""


class Stopped(Exception):  # noqa: N818  # No error of the program.
    """Ends the command with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def configure(parser: argparse.ArgumentParser, *, stale: bool = False) -> None:
    """Declare the arguments of all commands."""
    if stale:
        parser.add_argument(
            "--stale",
            action="store_true",
            help="what this node has now, which may be old; answers without a majority too",
        )
    parser.add_argument(
        "--timeout",
        dest="timeout_s",
        type=seconds,
        default=TIMEOUT_S,
        metavar="SECONDS",
        help=f"how long to wait for a majority (default: {TIMEOUT_S:g})",
    )
    connection.configure(parser)


def seconds(text: str) -> float:
    """A duration, for argparse."""
    found = float(text)
    if not 0 <= found < 1e9:
        raise ValueError("no duration")
    return found


@contextmanager
def asking(args: argparse.Namespace, command: str) -> Iterator[Client]:
    """A connection to the node; an error of the node says why, and becomes an exit code."""
    if args.control is not None and (args.group or args.node) is not None:
        raise UserError("give --control, or --group and --node")
    try:
        with Client(args.control or find_control(args.group, args.node)) as client:
            try:
                yield client
            except (LookupError, TypeError, ValueError, AttributeError):
                raise client.foreign() from None
    except ClientError as e:
        codes = {
            "NotPrimaryError": NOT_DONE,
            "TimeoutError": NOT_DONE,
            "VersionError": NOT_DONE,
            "QueueFullError": NOT_DONE,
            "UncertainError": UNCERTAIN,
        }
        if e.kind not in codes:
            raise UserError(connection.printable(str(e))) from None
        print(f"roundelay {command}: {connection.printable(str(e))}", file=sys.stderr)
        raise Stopped(codes[e.kind]) from None


def warn_if_old(answer: dict[str, object]) -> None:
    """Say so if others may have written since."""
    if not answer["primary"]:
        print(f"old: as of {answer['index']} entries; no majority is here", file=sys.stderr)
