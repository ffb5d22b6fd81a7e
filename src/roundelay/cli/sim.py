"""`roundelay sim run FILE`, `sim replay RECORDING`, `sim swarm --protocol P --seeds N`."""

import argparse
import difflib
import json
import os
import sys
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.group.engines import MODULES
from roundelay.sim.recording import Recording, RecordingError
from roundelay.sim.scenario import Block, ScenarioError, parse, rewrite
from roundelay.sim.story import Story
from roundelay.sim.swarm import Campaign, scenario
from roundelay.trace.manifest import TraceError
from roundelay.trace.writer import Writer


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    run_ = actions.add_parser("run", help="run a scenario file and compare what happens")
    run_.add_argument("scenario", metavar="FILE", type=Path)
    run_.add_argument("--seed", type=int, help="another seed than the file's; nothing is compared")
    run_.add_argument("--rewrite", action="store_true", help="put what happens into the file")
    run_.add_argument("--record", metavar="OUT", type=Path, help="keep every choice of the run")
    replay = actions.add_parser("replay", help="run a recording again, choice by choice")
    replay.add_argument("recording", metavar="RECORDING", type=Path)
    swarm = actions.add_parser("swarm", help="run many seeds, each a cluster of its own")
    swarm.add_argument("--protocol", required=True, choices=sorted(MODULES))
    swarm.add_argument("--seeds", type=int, default=100, metavar="N")
    swarm.add_argument("--first", type=int, default=0, metavar="K")
    swarm.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="J")
    swarm.add_argument("--static", action="store_true", help="the engine alone, without views")
    swarm.add_argument("--show", action="store_true", help="print the first seed's scenario only")
    swarm.add_argument("--json", action="store_true", help="one JSON document, nothing else")
    for sub in (run_, replay):
        sub.add_argument("--trace", metavar="DIR", type=Path, help="write the trace there")
        sub.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    try:
        return {"run": _run, "replay": _replay, "swarm": _swarm}[args.action](args)
    except ScenarioError as e:
        raise UserError(f"{args.scenario}: {e}") from None
    except (RecordingError, TraceError) as e:
        raise UserError(str(e)) from None


def _run(args: argparse.Namespace) -> int:
    text = _read(args.scenario)
    progress = Progress("simulating")
    story = Story(seed=args.seed, progress=progress.update)
    outputs: dict[int, str] = {}
    replay = f"roundelay sim run {args.scenario} --seed {story.seed}"

    def play(block: Block) -> str:
        if block.line not in outputs:
            try:
                outputs[block.line] = story.play(block)
            except AssertionError as e:
                where = f"{args.scenario}: line {block.line}"
                raise UserError(f"{where}: an invariant broke: {e}\nreplay: {replay}") from e
        return outputs[block.line]

    blocks = parse(text)
    actual = rewrite(text, play)
    progress.close()
    replay = f"roundelay sim run {args.scenario} --seed {story.seed}"
    expected = rewrite(text, lambda block: block.expected)
    compared = args.seed is None and any(block.expected for block in blocks)
    same = not compared or actual == expected
    if args.trace is not None:
        _write_trace(story, text, args.trace)
    if args.record is not None:
        args.record.write_text(Recording.of(text, story).to_json())
    if args.rewrite:
        args.scenario.write_text(actual)
        same = True
    if args.json:
        document = {
            "scenario": str(args.scenario),
            "seed": story.seed,
            "same": same,
            "rows": len(story.rows),
            "trace_sha256": story.sha256(),
            "blocks": [
                {"line": block.line, "output": outputs[block.line].splitlines()} for block in blocks
            ],
            "replay": replay,
        }
        print(json.dumps(document, indent=2))
    elif same:
        print(actual, end="")
        print(f"\n{len(story.rows)} events, trace {story.sha256()[:16]}; again: {replay}")
    else:
        names = (f"{args.scenario} (expected)", "what happened")
        diff = difflib.unified_diff(
            expected.splitlines(), actual.splitlines(), *names, lineterm="", n=4
        )
        print("\n".join(diff))
        print(
            f"\nnot as expected; if it should be so: roundelay sim run {args.scenario} --rewrite",
            file=sys.stderr,
        )
    return 0 if same else 1


def _replay(args: argparse.Namespace) -> int:
    recording = Recording.from_json(_read(args.recording))
    story = recording.replay()
    same = story.sha256() == recording.sha256
    if args.trace is not None:
        _write_trace(story, recording.scenario, args.trace)
    if args.json:
        print(json.dumps({"same": same, "trace_sha256": story.sha256()}, indent=2))
    elif same:
        print(f"the same run again: {len(story.rows)} events, trace {story.sha256()[:16]}")
    else:
        print(
            f"a different run: recorded by {recording.revision} with trace "
            f"{recording.sha256[:16]}, now {story.sha256()[:16]}"
        )
    return 0 if same else 1


def _swarm(args: argparse.Namespace) -> int:
    if args.show:
        print(scenario(args.first, args.protocol, static=args.static), end="")
        return 0
    progress = Progress("swarming")
    campaign = Campaign(args.protocol, static=args.static)
    for judgement in campaign.run(args.first, args.seeds, args.jobs):
        progress.update(campaign.seeds, args.seeds)
        for failure in judgement.failures:
            progress.close()
            print(f"seed {judgement.seed}: {failure}", file=sys.stderr)
    progress.close()
    static = " --static" if args.static else ""
    again = [
        f"roundelay sim swarm --protocol {args.protocol}{static} --first {seed} --seeds 1"
        for seed in campaign.failed
    ]
    if args.json:
        print(json.dumps({**campaign.document(), "replay": again}, indent=2))
    else:
        print(campaign.summary())
        for command in again:
            print(f"again: {command}")
    return 1 if campaign.failed else 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not text"
        raise UserError(f"cannot read {path}: {reason}") from None


def _write_trace(story: Story, scenario: str, directory: Path) -> None:
    with Writer(directory, story.manifest(scenario)) as writer:
        for row in story.rows:
            writer.append(row)
    print(f"trace: {writer.path}", file=sys.stderr)
