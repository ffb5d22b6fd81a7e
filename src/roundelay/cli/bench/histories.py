"""`roundelay bench histories`: what clients of replicated machines see through kills, pauses and
partitions, judged."""

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress

if TYPE_CHECKING:
    from roundelay.bench.histories.run import Run
    from roundelay.check.histories import Judgement

KINDS = ("map", "counter", "lock", "queue", "own")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=200, help="(default: 200)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of trouble in each run")
    parser.add_argument("--kind", choices=KINDS, action="append", help="(default: all in turn)")
    parser.add_argument("--seed", type=int, default=1, help="of the first runs")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="keep what was seen in this new directory"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.bench.histories.run import perform, plan

    if args.runs < 1 or not 0 < args.seconds <= 600:
        raise UserError("give at least 1 --runs, and --seconds between 0 and 600")
    directory = args.output or Path(tempfile.mkdtemp(prefix="roundelay-histories-"))
    if args.output is not None and directory.exists():
        raise UserError(f"{directory} exists; give a new directory")
    counts: dict[str, int] = {}
    bad: list[tuple[Run, Judgement]] = []
    operations = 0
    progress = Progress("histories")
    for n, each in enumerate(plan(args.runs, args.seconds, args.seed, args.kind or KINDS)):
        progress.update(n, args.runs, f"{len(bad)} not ok")
        where = directory / f"{each.kind}-{each.seed}"
        try:
            verdict = perform(each, where).judgement
        except RuntimeError as e:
            raise UserError(
                f"{each.kind}, seed {each.seed}: {e}; is the machine too busy?"
            ) from None
        counts[verdict.validity] = counts.get(verdict.validity, 0) + 1
        operations += verdict.instances
        if verdict.validity != "ok":
            bad.append((each, verdict))
        elif args.output is None:
            shutil.rmtree(where)
    progress.close()
    if args.json:
        told = [
            {"kind": e.kind, "seed": e.seed, "verdict": v.validity, "reason": v.reason}
            for e, v in bad
        ]
        print(json.dumps({"runs": args.runs, "operations": operations, **counts, "bad": told}))
    else:
        for each, verdict in bad:
            print(f"{each.kind}, seed {each.seed}: {verdict.property} {verdict.validity}")
            print(f"  {verdict.reason}")
            for operation in verdict.witness:
                print(f"  {operation}")
        words = ", ".join(f"{count} {validity}" for validity, count in sorted(counts.items()))
        print(f"{args.runs} runs with {operations} operations: {words}")
    if bad and not args.json:
        print(f"what was seen is in {directory}")
    if not bad and args.output is None:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if any(verdict.validity == "violated" for _, verdict in bad) else 0
