"""`roundelay check DIR --master URL`: checks every run of a table, on Spark."""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from roundelay import draw
from roundelay.check import Profile, Verdict, profile
from roundelay.check.text import table as text_table
from roundelay.check.text import witness_lines
from roundelay.cli.check.outcome import WITNESSES_SHOWN, document, exit_code, profile_for
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs
from roundelay.trace.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from roundelay.pipeline.ingest.table import Table
    from roundelay.pipeline.judge.run_check import RunReport

RUNS_SHOWN = 3
"""The number of runs with violations whose verdicts are printed in full."""

SHORT_BYTES = 200_000_000
"""Bytes from which a table is no short job. A short job above that is slow in the end, since Java
never makes its code fast; a long one below it spends its time on making code fast."""

DRAWN = 60
"""The number of events drawn before and after each row of a witness."""


def run(args: argparse.Namespace) -> int:
    """Check with the same arguments as the local check, except a trace as a text."""
    from roundelay.pipeline.errors import PipelineError

    if args.path is None:
        raise UserError("with --master, give the PATH of a table or of traces")
    try:
        with tempfile.TemporaryDirectory(prefix="roundelay-table-") as scratch:
            return _check(args, Path(scratch))
    except ImportError as e:
        raise UserError(needs(str(e.name), "spark")) from None
    except PipelineError as e:
        raise UserError(str(e)) from None


def _check(args: argparse.Namespace, scratch: Path) -> int:
    from roundelay.pipeline.ingest.into_table import ingest, refuse_empty
    from roundelay.pipeline.ingest.sources import find
    from roundelay.pipeline.ingest.table import Table
    from roundelay.pipeline.judge.check import check
    from roundelay.pipeline.judge.verdict_table import VERDICTS, write_verdicts
    from roundelay.pipeline.plans import explained
    from roundelay.pipeline.session import open_session

    def held(manifest: Manifest | None) -> Profile | Sequence[str] | None:
        found = profile_for(args, manifest)
        return profile(args.profile) if found is None else found

    table = Table.load(args.path if Path(args.path).is_dir() else scratch)
    size = sum(file.stat().st_size for file in table.files())
    if not table.parts:
        # Fails early if there is nothing: Spark takes seconds to start.
        size = sum(Path(source.path).stat().st_size for source in find([args.path]).sources)
    progress = Progress("checking")
    session = open_session(args.master, short=size < SHORT_BYTES)
    with session as spark, explained(spark, args.explain):
        if table.parts:
            home = Path(args.path)
        else:
            done = ingest(spark, [args.path], scratch)
            refuse_empty(done)
            table, home = done.table, Path.cwd()
        try:
            reports = check(spark, table, held=held, progress=progress.step)
        except ValueError as e:
            raise UserError(str(e)) from None
        progress.close()
        if home != Path.cwd():
            write_verdicts(reports, home / VERDICTS)
        picture = _draw(spark, table, reports, home)
    if args.json:
        documents = [document(one.run, one.report, one.problems) for one in reports]
        print(json.dumps({"ok": _fine(reports), "runs": documents}, indent=2))
    else:
        _print(reports, args, picture)
    return exit_code([one.report for one in reports], args)


def _fine(reports: "Sequence[RunReport]") -> bool:
    return all(one.report.ok for one in reports)


def _print(reports: "Sequence[RunReport]", args: argparse.Namespace, picture: Path | None) -> None:
    bad = [one for one in reports if not one.report.ok]
    if len(reports) > 1:
        counts = Counter(str(one.report.worst) for one in reports)
        told = ", ".join(f"{count} {worst}" for worst, count in counts.most_common())
        print(f"{len(reports)} runs, by their gravest verdict: {told}\n")
    for one in bad[:RUNS_SHOWN] if len(reports) > 1 else reports:
        for problem in one.problems:
            print(f"problem: {problem}")
        print(text_table(one.report, one.manifest, everything=args.all))
        for verdict in one.report.violated[:WITNESSES_SHOWN]:
            if verdict.witness:
                print(f"witness of {verdict.property}: {verdict.reason}")
                for line in witness_lines(verdict, one.manifest):
                    print(f"  {line}")
                print()
    if len(reports) > 1 and len(bad) > RUNS_SHOWN:
        print("not fine either: " + " ".join(one.run for one in bad[RUNS_SHOWN:]))
    if picture is not None:
        print(f"picture: {picture}")


def _draw(
    spark: "SparkSession", table: "Table", reports: "Sequence[RunReport]", home: Path
) -> Path | None:
    """Draw the first violation and the events around it; None if there is no violation."""
    from roundelay.pipeline.judge.witness import rows_near

    found = next(((one, v) for one in reports for v in one.report.violated if v.witness), None)
    if found is None:
        return None
    one, verdict = found
    rows = rows_near(table.events(spark), one.run, verdict.witness)
    picture = home / "witness.svg"
    picture.write_text(
        draw.svg(
            rows,
            one.manifest or Manifest(run=one.run, nodes=()),
            witness=verdict.witness,
            reason=f"{verdict.property}: {verdict.reason}",
            title=_title(one, verdict),
            window=draw.Window(around=DRAWN),
        ),
        encoding="utf-8",
    )
    return picture


def _title(one: "RunReport", verdict: Verdict) -> str:
    return f"{one.run}: {verdict.property}"
