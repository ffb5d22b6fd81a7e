"""How `send`, `tail` and `status` connect to a running node."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.runtime.client import Client, ClientError, find_control


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that name the node."""
    parser.add_argument("--group", metavar="NAME", help="of the node, if several run here")
    parser.add_argument("--node", metavar="NAME", help="its name, if several run here")
    parser.add_argument("--control", type=Path, metavar="PATH", help="its control socket instead")


@contextmanager
def connected(args: argparse.Namespace) -> Iterator[Client]:
    """A connection to the node that the arguments name. An answer that makes no sense becomes a
    UserError."""
    if args.control is not None and (args.group or args.node) is not None:
        raise UserError("give --control, or --group and --node")
    try:
        with Client(args.control or find_control(args.group, args.node)) as client:
            try:
                yield client
            except (LookupError, TypeError, ValueError, AttributeError):
                raise client.foreign() from None
    except ClientError as e:
        raise UserError(printable(str(e))) from None


def printable(text: str) -> str:
    """A text from elsewhere, made safe for a terminal: control characters become escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
