"""`roundelay replay RECORD`: runs a node's recorded inputs through a new core.

The files of a directory are replayed one by one; one that cannot be read does not stop the others.
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.runtime.input_log import InputLogError, records
from roundelay.runtime.replay import Replay, replay


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "record", type=Path, metavar="RECORD", help="a file or directory of node --record"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON document a record, nothing else"
    )


def run(args: argparse.Namespace) -> int:
    try:
        paths = records(args.record)
    except InputLogError as e:
        raise UserError(str(e)) from None
    codes = []
    for path in paths:
        try:
            found = _replay(path)
        except InputLogError as e:
            if len(paths) == 1:
                raise UserError(str(e)) from None
            print(f"roundelay replay: {e}", file=sys.stderr)
            codes.append(2)
        else:
            _print(found, path, args)
            codes.append(0 if found.differs_at is None else 1)
    return 1 if 1 in codes else max(codes)


def _replay(path: Path) -> Replay:
    progress = Progress("replaying")
    try:
        return replay(path, progress.update)
    finally:
        progress.close()


def _print(found: Replay, path: Path, args: argparse.Namespace) -> None:
    same = found.differs_at is None
    if args.json:
        document = {**dataclasses.asdict(found), "identical": same, "record": str(path)}
        print(json.dumps(document))
    elif same:
        print(
            f"{found.node} ({found.engine}): {found.inputs} inputs, {found.effects} effects, "
            "all identical"
        )
    else:
        print(
            f"{found.node} ({found.engine}): input {found.differs_at} ({found.differs_in}) has "
            "other effects than the node had; is the record damaged, or of another version?"
        )
