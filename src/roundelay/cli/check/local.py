"""`roundelay check PATH`: one trace, checked in this process."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from roundelay import draw
from roundelay.check import Profile, Report, check, profile
from roundelay.check.text import table, witness_lines
from roundelay.cli.check.outcome import WITNESSES_SHOWN, document, exit_code, profile_for
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.core.effects import Kind
from roundelay.trace import reader
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.schema import WORLD

DRAWN = 60
"""The number of events drawn before and after each row of a witness."""


def run(args: argparse.Namespace) -> int:
    progress = Progress("checking")
    try:
        progress.say("reading the trace")
        trace = _read(args)
        report = check(
            trace.rows,
            trace.manifest,
            profile=_profile(args, trace),
            problems=trace.problems,
            progress=progress.update,
        )
    except ValueError as e:
        raise UserError(str(e)) from None
    finally:
        progress.close()
    if args.json:
        print(json.dumps(_document(report, trace), indent=2))
    else:
        _print(report, trace, args)
    return exit_code([report], args)


def _read(args: argparse.Namespace) -> reader.Trace:
    if (args.path is None) == (args.trace is None):
        raise UserError("give the PATH of a trace or a text with --trace, one of the two")
    try:
        if args.trace is None:
            return reader.read(args.path)
        trace = reader.read_text(args.trace)
    except TraceError as e:
        raise UserError(str(e)) from None
    if not trace.rows:
        raise UserError("the text holds no event; write one, such as p!a")
    return trace


def _profile(args: argparse.Namespace, trace: reader.Trace) -> Profile | Sequence[str]:
    """The promises that the trace is checked against, as the arguments or else the manifest say."""
    held = profile_for(args, trace.manifest)
    if held is not None:
        return held
    views = any(row.kind == Kind.INSTALL for row in trace.rows)
    nodes = len({row.proc for row in trace.rows} - {WORLD})
    return profile(args.profile, mode="views" if views else "static", nodes=nodes)


def _print(report: Report, trace: reader.Trace, args: argparse.Namespace) -> None:
    for problem in trace.problems:
        print(f"problem: {problem}")
    if trace.problems:
        print()
    print(table(report, trace.manifest, everything=args.all), end="")
    for verdict in report.violated[:WITNESSES_SHOWN]:
        if verdict.witness:
            print(f"\nwitness of {verdict.property}: {verdict.reason}")
            for line in witness_lines(verdict, trace.manifest):
                print(f"  {line}")
    if report.violated and args.path is not None:
        print(f"\n{_picture(report, trace, args)}")


def _picture(report: Report, trace: reader.Trace, args: argparse.Namespace) -> str:
    """Draw the first violation that has a witness, beside the trace; a line that says where. If
    there is none, or no room, the command that draws it."""
    verdict = next((verdict for verdict in report.violated if verdict.witness), None)
    by_name = "" if args.properties is None else f" --property {report.violated[0].property}"
    command = f"see it: roundelay draw {args.path} --witness{by_name} -o witness.svg"
    if verdict is None:
        return command
    path = Path(args.path)
    path = path.resolve() if path.name in ("", "..") else path
    picture = path.with_name(f"{path.stem if path.is_file() else path.name}-witness.svg")
    svg = draw.svg(
        trace.rows,
        trace.manifest or Manifest(run="", nodes=()),
        witness=verdict.witness,
        reason=f"{verdict.property}: {verdict.reason}",
        window=draw.Window(around=DRAWN),
    )
    try:
        picture.write_text(svg, encoding="utf-8")
    except OSError:
        return command
    return f"picture: {picture} (open it in a browser)"


def _document(report: Report, trace: reader.Trace) -> dict[str, object]:
    run_ = "" if trace.manifest is None else trace.manifest.run
    return document(run_, report, trace.problems)
