"""`roundelay journal verify PATH [--repair-tail]`: every checksum."""

import argparse
import json

from roundelay.cli.connection import printable
from roundelay.cli.journal.common import add_path, one_journal, sentences
from roundelay.cli.progress import Progress
from roundelay.journal.inspect import is_running, repair_tail, verify


def configure(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    parser.add_argument(
        "--repair-tail",
        action="store_true",
        help="cut off what a crash left of the last write; nothing else is changed",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    progress = Progress("verifying")
    try:
        with sentences():
            path = one_journal(args.path)
            cut = repair_tail(path) if args.repair_tail else None
            verdict = verify(path, progress.update)
            running = is_running(path)
    finally:
        progress.close()
    damage = verdict.damage
    if running and damage is not None and damage.torn:
        damage = None  # Its node is writing there just now.
    whole = damage is None and not verdict.bad_snapshots
    if args.json:
        document = {
            "whole": whole,
            "records": verdict.frames,
            "bytes": verdict.bytes,
            "snapshots": verdict.snapshots,
            "cut": None if cut is None else str(cut),
            "bad": None
            if damage is None
            else {
                "file": str(damage.path),
                "offset": damage.offset,
                "why": damage.why,
                "torn": damage.torn,
            },
            "bad_snapshots": list(verdict.bad_snapshots),
        }
        print(json.dumps(document))
        return 0 if whole else 1
    if cut is not None:
        print(printable(f"cut off: {cut}"))
    if damage is not None:
        print(printable(str(damage)))
        if damage.torn:
            print("the next start cuts that off, and so does --repair-tail; nothing is lost")
    for sentence in verdict.bad_snapshots:
        print(printable(sentence))
    if whole:
        print(f"{verdict.frames} records and {verdict.snapshots} snapshots are whole")
    return 0 if whole else 1
