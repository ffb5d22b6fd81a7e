"""`roundelay sim shrink`: makes a small scenario of a run that fails."""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from roundelay.check.profiles import RULES
from roundelay.cli.engines import check_rules, engine
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.cli.sim.files import read
from roundelay.cli.sim.pictures import drawing
from roundelay.cli.sim.swarm import check_intruder, check_log
from roundelay.group.engines import describe
from roundelay.sim.recording import Recording, RecordingError
from roundelay.sim.scenario import ScenarioError
from roundelay.sim.seeds import scenario
from roundelay.sim.shrink import BUDGET, NoFailureError, shrink


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", type=Path, help="a scenario, or a recording of one"
    )
    parser.add_argument(
        "--protocol", type=engine, metavar="P", help="shrink a seed of the swarm instead of a file"
    )
    parser.add_argument("--seed", type=int, metavar="K", help="of the swarm, or for the scenario")
    parser.add_argument("--static", action="store_true", help="the engine alone, without views")
    parser.add_argument("--intruder", action="store_true", help="as the swarm was told")
    parser.add_argument("--log", action="store_true", help="as the swarm was told")
    parser.add_argument("--rules", choices=RULES, default="safe", help="as the swarm was told")
    parser.add_argument(
        "-o", "--output", metavar="STORY", type=Path, required=True, help="the small scenario"
    )
    parser.add_argument("--draw", metavar="SVG", type=Path, help="and what happens in it")
    parser.add_argument(
        "--budget", type=int, default=BUDGET, metavar="N", help=f"runs to try (default {BUDGET})"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


@dataclass(frozen=True, slots=True)
class _Given:
    """The run to be shrunk."""

    scenario: str
    seed: int | None
    choices: dict[str, str] | None
    again: str
    """The command that runs it."""


def run(args: argparse.Namespace) -> int:
    if args.budget < 1:
        raise UserError(f"--budget must be 1 or more, not {args.budget}")
    for path in (args.output, args.draw):
        if path is not None and not path.parent.is_dir():
            raise UserError(f"cannot write {path}: there is no directory {path.parent}")
    given = _given(args)
    progress = Progress("shrinking")
    try:
        shrunk = shrink(
            given.scenario,
            given.seed,
            choices=given.choices,
            budget=args.budget,
            progress=progress.update,
            found=given.again,
        )
    except NoFailureError as e:
        raise UserError(f"{e}; it was: {given.again}") from None
    except ScenarioError as e:
        raise UserError(f"{args.file}: {e}") from None
    finally:
        progress.close()
    _write(args.output, shrunk.scenario)
    if args.draw is not None:
        _write(args.draw, drawing(shrunk.runner, shrunk.failure, shrunk.witness, args.output.stem))
    again = f"roundelay sim run {args.output}"
    if args.json:
        document = {
            "property": shrunk.failure.property or None,
            "failure": str(shrunk.failure),
            "commands": len(shrunk.commands),
            "runs": shrunk.runs,
            "scenario": str(args.output),
            "drawing": None if args.draw is None else str(args.draw),
            "found": given.again,
            "replay": again,
        }
        print(json.dumps(document, indent=2))
        return 0
    print(shrunk.failure)
    print(f"{args.output}: {len(shrunk.commands)} commands, after {shrunk.runs} runs; try: {again}")
    if args.draw is not None:
        print(f"{args.draw}: open it in a browser: {args.draw.resolve().as_uri()}")
    return 0


def _given(args: argparse.Namespace) -> _Given:
    if (args.file is None) == (args.protocol is None):
        raise UserError("name a FILE, or a seed of the swarm: --protocol totem --seed 7")
    if args.protocol is not None:
        if args.seed is None:
            raise UserError("say which seed of the swarm failed, with --seed")
        static = args.static or describe(args.protocol).static_only
        check_rules(args.protocol, args.rules, static=static)
        how = f"--protocol {args.protocol}{' --static' * static}"
        how += f" --rules {args.rules}" * (args.rules != "safe") + " --intruder" * args.intruder
        if args.intruder:
            check_intruder(args.rules)
        how += " --log" * args.log
        if args.log:
            check_log(args.protocol, args.rules, static=static)
        text = scenario(
            args.seed,
            args.protocol,
            static=static,
            rules=args.rules,
            intruder=args.intruder,
            log=args.log,
        )
        again = f"roundelay sim swarm {how} --first {args.seed} --seeds 1"
        return _Given(text, None, None, again)
    text = read(args.file)
    if not text.lstrip().startswith("{"):
        seed = "" if args.seed is None else f" --seed {args.seed}"
        return _Given(text, args.seed, None, f"roundelay sim run {args.file}{seed}")
    if args.seed is not None:
        raise UserError("a recording has its seed; leave out --seed")
    try:
        recording = Recording.from_json(text)
    except RecordingError as e:
        raise UserError(f"{args.file}: {e}") from None
    again = f"roundelay sim replay {args.file}"
    return _Given(recording.scenario, recording.seed, recording.choices, again)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise UserError(f"cannot write {path}: {e.strerror}; choose another file") from None
