"""`roundelay sim replay RECORDING`: run a recording again, choice by choice."""

import argparse
import json
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.cli.sim.files import read, write_trace
from roundelay.sim.recording import Recording, RecordingError
from roundelay.sim.scenario import ScenarioError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="RECORDING", type=Path)
    parser.add_argument("--trace", metavar="DIR", type=Path, help="write the trace there")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    try:
        return _replay(args)
    except RecordingError as e:
        raise UserError(str(e)) from None
    except ScenarioError as e:
        raise UserError(f"{args.recording}: the scenario in it is wrong: {e}") from None


def _replay(args: argparse.Namespace) -> int:
    recording = Recording.from_json(read(args.recording))
    progress = Progress("replaying")
    runner = recording.replay(progress=progress.update)
    progress.close()
    same = runner.sha256() == recording.sha256
    if args.trace is not None:
        write_trace(runner, recording.scenario, args.trace)
    if args.json:
        print(json.dumps({"same": same, "trace_sha256": runner.sha256()}, indent=2))
    elif same:
        print(f"the same run again: {len(runner.rows)} events, trace {runner.sha256()[:16]}")
    else:
        print(
            f"a different run: recorded by {recording.revision} with trace "
            f"{recording.sha256[:16]}, now {runner.sha256()[:16]}"
        )
    return 0 if same else 1
