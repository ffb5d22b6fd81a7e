"""`roundelay replay RECORD`: a node's recorded inputs through a fresh core."""

import argparse
import dataclasses
import json
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.runtime.replay import replay
from roundelay.runtime.tape import TapeError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", type=Path, metavar="RECORD", help="written by node --record")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    progress = Progress("replaying")
    try:
        found = replay(args.record, progress.update)
    except TapeError as e:
        raise UserError(str(e)) from None
    finally:
        progress.close()
    same = found.differs_at is None
    if args.json:
        print(json.dumps({**dataclasses.asdict(found), "identical": same}))
    elif same:
        print(
            f"{found.node} ({found.engine}): {found.inputs} inputs, {found.effects} effects, "
            "all identical"
        )
    else:
        print(
            f"{found.node} ({found.engine}): input {found.differs_at} ({found.differs_in}) has "
            "other effects than the node had; was the record made by another version?"
        )
    return 0 if same else 1
