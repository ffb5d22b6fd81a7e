"""`roundelay watch DIRS|TABLE -o OUT`: verdicts on groups while they run."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundelay.check import Verdict
from roundelay.check.text import witness_lines
from roundelay.cli.errors import UserError
from roundelay.trace.extras import needs
from roundelay.trace.manifest import Manifest

if TYPE_CHECKING:
    from roundelay.pipeline.live.judge import RunJudge
    from roundelay.pipeline.live.watch import Batch


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="DIR",
        help="where nodes write traces, with trace_roll_s; or a table that is followed",
    )
    parser.add_argument(
        "-o", "--output", metavar="OUT", type=Path, required=True, help="verdicts, measures, state"
    )
    parser.add_argument("--master", metavar="URL", default="local[*]", help="where Spark runs")
    parser.add_argument(
        "--every", metavar="SECONDS", type=float, help="how often (default 2 seconds)"
    )
    parser.add_argument("--once", action="store_true", help="end when what is there now is judged")
    parser.add_argument("--first", action="store_true", help="end at the first violation")
    parser.add_argument("--json", action="store_true", help="a JSON document in each line")


def run(args: argparse.Namespace) -> int:
    """Exit code 1 if a property was violated, however the command ends."""
    from roundelay.pipeline.errors import PipelineError

    if args.every is not None and args.every <= 0:
        raise UserError(f"--every {args.every:g} is no time; give seconds, such as 2")
    try:
        return _watch(args)
    except ImportError as e:
        raise UserError(needs(str(e.name), "spark")) from None
    except PipelineError as e:
        raise UserError(str(e)) from None


def _watch(args: argparse.Namespace) -> int:
    from roundelay.pipeline.live.trails import trails
    from roundelay.pipeline.live.watch import EVERY_S, watch
    from roundelay.pipeline.session import open_session

    trails(args.paths)  # Fails early if there is no such directory: Spark takes seconds to start.
    watcher = _Printer(json=args.json, last=f"roundelay check {' '.join(args.paths)}")
    every_s = EVERY_S if args.every is None else args.every
    options: dict[str, Any] = {"every_s": every_s, "once": args.once, "first": args.first}
    try:
        with open_session(args.master) as spark:
            violated = watch(spark, args.paths, args.output, watcher, **options)
    except KeyboardInterrupt:
        if not watcher.found:
            raise
        violated = True
    watcher.end()
    return 1 if violated else 0


class _Printer:
    """Prints what a `Watcher` is told."""

    def __init__(self, *, json: bool, last: str) -> None:
        self.found: set[tuple[str, str]] = set()
        """Runs and properties that are violated, also those that an earlier process found."""
        self._json = json
        self._last = last

    def begins(self, judge: "RunJudge") -> None:
        run, before = judge.manifest.run, judge.violations
        self.found |= {(run, verdict.property) for verdict in before}
        if self._json:
            names = [verdict.property for verdict in before]
            self._print(run=run, live=judge.covered, left=judge.left, violated_before=names)
            return
        print(f"run {run}, {judge.profile.name}")
        print(f"  judged live: {' '.join(judge.covered)}")
        print(f"  left to `{self._last}`: {' '.join(judge.left)}")
        for verdict in before:
            print(f"  VIOLATED before: {verdict.property}: {verdict.reason}")
        print(end="", flush=True)

    def violated(self, manifest: Manifest, verdict: Verdict) -> None:
        self.found.add((manifest.run, verdict.property))
        rows = [f"{row.proc}.{row.inc}.{row.lseq}" for row in verdict.witness]
        if self._json:
            self._print(
                run=manifest.run, violated=verdict.property, reason=verdict.reason, witness=rows
            )
            return
        print(f"VIOLATED in run {manifest.run}: {verdict.property}: {verdict.reason}")
        for line in witness_lines(verdict, manifest):
            print(f"  {line}")
        print(end="", flush=True)

    def batch(self, batch: "Batch") -> None:
        if self._json:
            self._print(
                batch=batch.number,
                rows=batch.rows,
                judged=batch.judged,
                waiting=batch.waiting,
                left_out=batch.left_out,
                seconds=round(batch.seconds, 3),
                behind_s=round(batch.behind_s, 3),
            )
            return
        more = f", {batch.left_out:,} left out as making no sense" if batch.left_out else ""
        print(
            f"batch {batch.number}: {batch.rows:,} rows, {batch.judged:,} judged, "
            f"{batch.waiting:,} wait, in {batch.seconds:.1f} s; "
            f"{batch.behind_s:.1f} s behind{more}",
            flush=True,
        )

    def note(self, sentence: str) -> None:
        if self._json:
            self._print(note=sentence)
        else:
            print(f"note: {sentence}", flush=True)

    def end(self) -> None:
        if not self._json:
            count = len(self.found)
            told = f"{count or 'no'} violation{'s' * (count > 1)}"
            print(f"{told} of what is judged live; the rest: {self._last}")

    def _print(self, **document: object) -> None:
        print(json.dumps(document), flush=True)
