"""`roundelay audit fc`: every run of a small group under an assumption, on the engine itself."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from roundelay.cli.audit.look import look
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.experiments.audit.cases import ASSUMPTIONS
from roundelay.experiments.audit.story import story
from roundelay.experiments.audit.survey import Count, survey
from roundelay.group.engines import describe, engine_config

ENGINE = "fc"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, required=True, metavar="N", help="members of the group")
    parser.add_argument(
        "-k", type=int, required=True, metavar="K", help="members that may fail together"
    )
    parser.add_argument(
        "--assume",
        nargs="+",
        default=["A1", "A2"],
        metavar="A",
        help="; ".join(f"{name}: {text}" for name, text in ASSUMPTIONS.items()),
    )
    parser.add_argument("--rules", default="paper", metavar="R", help="paper, link or safe")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="J",
        help="runs at a time (default: one a core)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="write the first counterexamples there"
    )


def run(args: argparse.Namespace) -> int:
    _check(args)
    progress = Progress("auditing")
    assumptions = list(dict.fromkeys(args.assume))
    counts = survey(assumptions, args.n, args.k, args.rules, jobs=args.jobs, report=progress.update)
    progress.close()
    if not any(count.runs for count in counts):
        raise UserError(
            f"there is no case to run with {args.n} members, k={args.k} and "
            f"{', '.join(assumptions)}; give -k 1 or more, and members enough that a majority "
            f"does not fail"
        )
    written = [] if args.output is None else _write(args.output, counts)
    if args.json:
        document = {
            "engine": ENGINE,
            "runs": sum(count.runs for count in counts),
            "divergent": sum(count.divergent for count in counts),
            "stuck": sum(count.stuck for count in counts),
            "cases": [count.document() for count in counts],
            "scenarios": [str(path) for path in written],
        }
        print(json.dumps(document, indent=2))
    else:
        _print(counts)
        for path in written:
            print(f"scenario: {path}", file=sys.stderr)
        print(look(sum(count.divergent for count in counts), written), end="")
    return 0


def _check(args: argparse.Namespace) -> None:
    if unknown := [name for name in args.assume if name not in ASSUMPTIONS]:
        raise UserError(
            f"there is no assumption {unknown[0]!r}; choose of {', '.join(ASSUMPTIONS)}"
        )
    if args.jobs < 1:
        raise UserError(f"--jobs {args.jobs} does nothing; give at least 1")
    if args.n < 1:
        raise UserError(f"-n {args.n} is no group; give the number of its members")
    check = describe(ENGINE).check_options
    try:
        config = engine_config(ENGINE, {"rules": args.rules, "k": str(args.k)})
        if check is not None:
            check(config, tuple(str(place) for place in range(args.n)))
    except ValueError as e:
        raise UserError(str(e)) from None


def _print(counts: Sequence[Count]) -> None:
    rows = [("assumption", "runs", "divergent", "stuck", "")]
    rows += [
        (c.assumption, str(c.runs), str(c.divergent), str(c.stuck), ASSUMPTIONS[c.assumption])
        for c in counts
    ]
    for name, *numbers, what in rows:
        print(f"{name:<11}" + "".join(f"{number:>10}" for number in numbers) + f"  {what}".rstrip())


def _write(directory: Path, counts: Sequence[Count]) -> list[Path]:
    written: list[Path] = []
    for count in counts:
        for number, case in enumerate(count.examples, 1):
            name = f"{count.rules}-{count.assumption}-n{count.size}-k{count.k}-{number}.txt"
            path = directory / name
            try:
                directory.mkdir(parents=True, exist_ok=True)
                path.write_text(story(case, count.assumption, count.rules, count.k))
            except OSError as e:
                raise UserError(f"cannot write {path}: {e.strerror}") from None
            written.append(path)
    return written
