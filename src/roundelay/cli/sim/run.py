"""`roundelay sim run SCENARIO`: runs a scenario and compares its output with the file."""

import argparse
import difflib
import json
import sys
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.cli.sim.files import read, scenario_path, write_trace
from roundelay.sim.recording import Recording
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import Block, ScenarioError, parse, rewrite
from roundelay.sim.watch import Watch


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenario", metavar="SCENARIO", help="a file, or the name of one of `sim list`"
    )
    parser.add_argument(
        "--seed", type=int, help="another seed than the file has; nothing is compared"
    )
    parser.add_argument("--rewrite", action="store_true", help="put what happens into the file")
    parser.add_argument("--record", metavar="OUT", type=Path, help="keep every choice of the run")
    parser.add_argument("--trace", metavar="DIR", type=Path, help="write the trace there")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    try:
        return _run(args)
    except ScenarioError as e:
        raise UserError(f"{args.scenario}: {e}") from None


def _run(args: argparse.Namespace) -> int:
    path = scenario_path(args.scenario)
    if args.rewrite and not Path(args.scenario).exists():
        raise UserError(
            f"--rewrite changes a file of yours, not {args.scenario}; copy {path} first"
        )
    text = read(path)
    progress = Progress("simulating")
    runner = ScenarioRunner(seed=args.seed, progress=progress.update, watch=Watch())
    outputs: dict[int, str] = {}
    replay = f"roundelay sim run {args.scenario} --seed {runner.seed}"

    def play(block: Block) -> str:
        if block.line not in outputs:
            try:
                outputs[block.line] = runner.play(block)
            except ScenarioError:
                raise
            except Exception as e:  # Whatever a core raises, it is broken.
                where = f"{args.scenario}: line {block.line}"
                what = str(e) if isinstance(e, AssertionError) else f"{type(e).__name__}: {e}"
                raise UserError(f"{where}: an invariant broke: {what}\nreplay: {replay}") from e
        return outputs[block.line]

    blocks = parse(text)
    actual = rewrite(text, play)
    progress.close()
    replay = f"roundelay sim run {args.scenario} --seed {runner.seed}"
    expected = rewrite(text, lambda block: block.expected)
    compared = args.seed is None and any(block.expected for block in blocks)
    same = not compared or actual == expected
    if args.trace is not None:
        write_trace(runner, text, args.trace)
    if args.record is not None:
        args.record.write_text(Recording.of(text, runner).to_json())
    if args.rewrite:
        path.write_text(actual)
        same = True
    if args.json:
        document = {
            "scenario": str(args.scenario),
            "seed": runner.seed,
            "same": same,
            "rows": len(runner.rows),
            "trace_sha256": runner.sha256(),
            "blocks": [
                {"line": block.line, "output": outputs[block.line].splitlines()} for block in blocks
            ],
            "replay": replay,
        }
        print(json.dumps(document, indent=2))
    elif same:
        print(actual, end="")
        print(f"\n{len(runner.rows)} events, trace {runner.sha256()[:16]}; again: {replay}")
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
