"""`roundelay report DIR`: claims, figures, verdicts and diagrams as one HTML file."""

import argparse
import json
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory", metavar="DIR", type=Path, help="of a sweep, a table, traces, or all of them"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("report.html"), help="HTML"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    try:
        from roundelay.pipeline.errors import PipelineError
        from roundelay.report import write_report
    except ImportError as e:
        raise UserError(needs(str(e.name), "report")) from None
    if args.output.is_dir() or not args.output.name:
        raise UserError(f"{args.output} is a directory; name a file with -o")
    progress = Progress("reporting")
    try:
        written = write_report(args.directory, args.output, progress.update)
    except PipelineError as e:
        raise UserError(str(e)) from None
    finally:
        progress.close()
    if args.json:
        document = {
            "report": str(written.path),
            "files": written.files,
            "claims": {str(outcome): count for outcome, count in written.claims.items()},
            "verdicts": {str(verdict): count for verdict, count in written.verdicts.items()},
            "skipped": written.skipped,
        }
        print(json.dumps(document, indent=2))
        return 0
    for what, counts in (("claims", written.claims), ("verdicts", written.verdicts)):
        if counts:
            told = ", ".join(f"{count} {name}" for name, count in counts.items())
            print(f"{what}: {told}")
    for reason in written.skipped:
        print(f"left out: {reason}")
    if written.files:
        print(f"files:  {len(written.files)} in {written.path.with_name(written.path.stem)}-files")
    print(f"report: {written.path} (open it in a browser)")
    return 0
