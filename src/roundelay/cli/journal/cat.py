"""`roundelay journal cat PATH`: committed entries, one per line."""

import argparse
import json

from roundelay.cli.connection import printable
from roundelay.cli.journal.common import (
    add_path,
    add_range,
    documents,
    items,
    one_journal,
    sentences,
)
from roundelay.journal.reader import Item, Lossy, Reader


def configure(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    add_range(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document per line")


def run(args: argparse.Namespace) -> int:
    with sentences():
        reader = Reader(one_journal(args.path))
        for item in items(args, reader):
            if args.json:
                for document in documents(item):
                    print(json.dumps(document))
            else:
                for line in _lines(item):
                    print(printable(line))
    return 0


def _lines(item: Item) -> list[str]:
    if isinstance(item, Lossy):
        return [
            f"-- generation {item.generation}: entries that were confirmed from {item.from_index} "
            "on may be gone"
        ]
    return [
        f"{item.index + n} {item.sender}: {_text(payload)}"
        for n, payload in enumerate(item.payloads)
    ]


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return repr(payload)
