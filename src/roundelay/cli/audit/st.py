"""`roundelay audit st`: random runs with losses, the same ones under both rules."""

import argparse
import json
import os
import sys
from pathlib import Path

from roundelay.cli.audit.look import look
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.experiments.audit_st.story import story
from roundelay.experiments.audit_st.survey import KINDS, Survey, survey

MEMBERS_MAX = 9


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=1000, metavar="N", help="default 1000")
    parser.add_argument("-n", type=int, default=4, metavar="N", help="members, default 4")
    parser.add_argument(
        "--loss",
        type=float,
        nargs="+",
        default=[5, 15, 30],
        metavar="P",
        help="percent of copies that are lost, each in turn; default 5 15 30",
    )
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
    """Exit code 1 if the safe rules broke a promise: that the paper's do is what is shown."""
    _check(args)
    progress = Progress("auditing")
    found = survey(args.runs, args.n, args.loss, jobs=args.jobs, report=progress.update)
    progress.close()
    written = [] if args.output is None else _write(args.output, found)
    if args.json:
        document = {
            "engine": "st",
            "n": args.n,
            "loss": args.loss,
            "runs": found.runs,
            "single": found.single,
            **{count.rules: count.document() for count in found.counts},
            "scenarios": [str(path) for path in written],
        }
        print(json.dumps(document, indent=2))
    else:
        _print(found)
        for path in written:
            print(f"scenario: {path}", file=sys.stderr)
        print(look(sum(count.violations for count in found.counts), written), end="")
    return int(any(count.violations for count in found.counts if count.rules == "safe"))


def _check(args: argparse.Namespace) -> None:
    for name in ("runs", "jobs"):
        if getattr(args, name) < 1:
            raise UserError(f"--{name} {getattr(args, name)} does nothing; give at least 1")
    if not 2 <= args.n <= MEMBERS_MAX:
        raise UserError(f"-n {args.n}: give a group of 2 to {MEMBERS_MAX} members")
    for loss in args.loss:
        if not 1 <= loss <= 99:
            raise UserError(f"--loss {loss:g}: give percent, from 1 to 99")


def _print(found: Survey) -> None:
    print(f"{found.runs} runs with a loss, {found.single} of them with a single one")
    heads = [f"{count.rules}{more}" for count in found.counts for more in ("", ", single")]
    print(f"{'':<12}" + "".join(f"{head:>15}" for head in heads))
    rows: list[tuple[str, list[int], str]] = [
        ("violations", [n for c in found.counts for n in (c.violations, c.single_violations)], "")
    ]
    rows += [
        (kind, [n for c in found.counts for n in (c.kinds[kind], c.single_kinds[kind])], what)
        for kind, what in KINDS.items()
    ]
    for name, numbers, what in rows:
        print(f"{name:<12}" + "".join(f"{number:>15}" for number in numbers) + f"  {what}".rstrip())


def _write(directory: Path, found: Survey) -> list[Path]:
    """Each counterexample under its rules, and under the others."""
    cases = {case.number: case for count in found.counts for case in count.examples}
    written: list[Path] = []
    for number, case in sorted(cases.items()):
        for count in found.counts:
            path = directory / f"{count.rules}-n{case.size}-{number}.txt"
            try:
                directory.mkdir(parents=True, exist_ok=True)
                path.write_text(story(case, count.rules), encoding="utf-8")
            except OSError as e:
                raise UserError(f"cannot write {path}: {e.strerror}") from None
            written.append(path)
    return written
