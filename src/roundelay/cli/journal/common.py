"""What the commands share: finding the journal, and errors as sentences."""

import argparse
import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from roundelay.cli.errors import UserError
from roundelay.journal.errors import BaseJournalError, TruncatedError
from roundelay.journal.inspect import journals
from roundelay.journal.reader import Batch, Item, Lossy, Reader


def add_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path",
        metavar="PATH",
        type=Path,
        help="what the node has as journal=PATH, or a group in it",
    )


def add_range(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        *("--from",),
        dest="start",
        metavar="N",
        type=int,
        help="the first index (default: the first there is)",
    )
    parser.add_argument(
        "--to", metavar="N", type=int, help="the last index (default: the last committed one)"
    )


@contextmanager
def sentences() -> Iterator[None]:
    """What can go wrong with a journal is a sentence for the user."""
    try:
        yield
    except BaseJournalError as e:
        raise UserError(str(e)) from None
    except OSError as e:
        where = f" {e.filename}" if e.filename else ""
        raise UserError(f"cannot read or write{where} ({e.strerror}); check the disk") from None


def one_journal(path: Path) -> Path:
    """The directory of the only group in `path`; UserError if there are several."""
    found = journals(path)
    if len(found) > 1:
        names = ", ".join(str(p) for p in found)
        raise UserError(f"{path} holds the journals of several groups; name one of {names}")
    return found[0]


def items(args: argparse.Namespace, reader: Reader) -> Iterator[Item]:
    """What `--from` and `--to` ask for."""
    reader.refresh()
    start = reader.first if args.start is None else args.start
    if start < 0 or (args.to is not None and args.to < start):
        raise UserError(f"there are no entries from {start} to {args.to}")
    if start < reader.first:
        raise TruncatedError(start, reader.first)
    return reader.read(start, None if args.to is None else args.to + 1)


def documents(item: Item) -> Iterator[dict[str, Any]]:
    """An item as JSON documents, one per entry."""
    if isinstance(item, Lossy):
        yield {"lossy_from": item.from_index, "generation": item.generation}
        return
    for n, payload in enumerate(item.payloads):
        yield {
            "index": item.index + n,
            "term": str(item.term),
            "sender": item.sender,
            "incarnation": item.incarnation,
            "session": f"{item.session:016x}",
            "number": item.number + n,
            "stamp_us": item.stamp_us,
            "payload": base64.b64encode(payload).decode(),
        }


def last_index(item: Item) -> int:
    """The index of the last entry of an item, or where it is."""
    return item.index + len(item.payloads) - 1 if isinstance(item, Batch) else item.from_index
