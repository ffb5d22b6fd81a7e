"""`roundelay check PATH`: a trace against the promises of its protocol."""

import argparse
import json
from collections.abc import Sequence

from roundelay.check import (
    PROPERTIES,
    Profile,
    Report,
    Standing,
    Validity,
    check,
    profile,
    profile_of,
)
from roundelay.check.profiles import protocol_names
from roundelay.check.text import table, witness_lines
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.core.effects import Kind
from roundelay.trace import reader
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.schema import WORLD, Row

WITNESSES = 3
"""Violations whose witness is printed; the table has them all."""

NAMES_SHOWN = 12
"""Undecided properties that the last line names."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help="a trace: its directory or a file")
    parser.add_argument(
        "--trace", metavar="TEXT", help='a trace in the mini-language instead: "p!a q?a p.a q.a"'
    )
    parser.add_argument(
        "--profile",
        metavar="PROTOCOL",
        help=f"whose promises count (default: as the trace says): {', '.join(protocol_names())}",
    )
    parser.add_argument("--properties", metavar="NAMES", help="these alone, as D7,O5")
    parser.add_argument(
        "--master", metavar="URL", help="check on Spark, there: local[*], spark://HOST:7077 ..."
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")
    parser.add_argument("--all", action="store_true", help="a line for every property")
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 also if something stays undecided"
    )


def run(args: argparse.Namespace) -> int:
    if args.master is not None:
        from roundelay.cli import spark_check

        return spark_check.run(args)
    trace = _read(args)
    progress = Progress("checking")
    try:
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


def undecided(report: Report) -> list[str]:
    """Promises that neither hold nor are broken, as far as the trace tells."""
    open_ = (Validity.INCONCLUSIVE, Validity.OUTSIDE)
    return [
        verdict.property
        for verdict, entry in zip(report.verdicts, report.profile.entries, strict=True)
        if verdict.validity in open_ and entry.standing is not Standing.OPTIONAL
    ]


def exit_code(reports: Sequence[Report], args: argparse.Namespace) -> int:
    """1 if a promise is broken, or with --strict if anything is undecided; the last line of what
    is printed tells people of the latter."""
    violated = any(report.worst is Validity.VIOLATED for report in reports)
    names = list(dict.fromkeys(name for report in reports for name in undecided(report)))
    if names and not violated and not args.json:
        shown = " ".join(names[:NAMES_SHOWN]) + " ..." * (len(names) > NAMES_SHOWN)
        how = "exit code 1, as --strict asks" if args.strict else "--strict makes this exit code 1"
        print(f"\nnothing is violated, but {len(names)} undecided: {shown} ({how})")
    return 1 if violated or (names and args.strict) else 0


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
    """What the trace is held to, as the arguments or else the manifest say."""
    held = profile_for(args, trace.manifest)
    if held is not None:
        return held
    views = any(row.kind == Kind.INSTALL for row in trace.rows)
    nodes = len({row.proc for row in trace.rows} - {WORLD})
    return profile(args.profile, mode="views" if views else "static", nodes=nodes)


def profile_for(
    args: argparse.Namespace, manifest: Manifest | None
) -> Profile | Sequence[str] | None:
    """What a run is held to; None if that depends on its rows, for want of a manifest."""
    if args.profile is not None and args.properties is not None:
        raise UserError("give --profile or --properties, one of the two")
    if args.properties is not None:
        names = [name.strip() for name in args.properties.split(",") if name.strip()]
        if not names:
            raise UserError("--properties names none; write them as --properties D7,O5")
        return names
    if args.profile is None:
        try:
            return profile_of(manifest)
        except ValueError as e:
            raise UserError(f"{e} with --profile: {', '.join(protocol_names())}") from None
    if manifest is None:
        return None
    mode, nodes = manifest.mode, len(manifest.nodes)
    return profile(args.profile, manifest.rules, manifest.resilience, mode, nodes)


def _print(report: Report, trace: reader.Trace, args: argparse.Namespace) -> None:
    for problem in trace.problems:
        print(f"problem: {problem}")
    if trace.problems:
        print()
    print(table(report, trace.manifest, everything=args.all), end="")
    for verdict in report.violated[:WITNESSES]:
        if verdict.witness:
            print(f"\nwitness of {verdict.property}: {verdict.reason}")
            for line in witness_lines(verdict, trace.manifest):
                print(f"  {line}")
    if report.violated and args.path is not None:
        by_name = "" if args.properties is None else f" --property {report.violated[0].property}"
        print(f"\nsee it: roundelay draw {args.path} --witness{by_name} -o witness.svg")


def _document(report: Report, trace: reader.Trace) -> dict[str, object]:
    run_ = "" if trace.manifest is None else trace.manifest.run
    return document(run_, report, trace.problems)


def document(run_: str, report: Report, problems: Sequence[str]) -> dict[str, object]:
    """A report as JSON has it."""
    return {
        "run": run_,
        "profile": report.profile.name,
        "ok": report.ok,
        "undecided": undecided(report),
        "problems": list(problems),
        "verdicts": [
            {
                "property": verdict.property,
                "title": PROPERTIES[verdict.property].title,
                "verdict": verdict.validity,
                "instances": verdict.instances,
                "reason": verdict.reason,
                "standing": entry.standing,
                "witness": [_fields(row) for row in verdict.witness],
            }
            for verdict, entry in zip(report.verdicts, report.profile.entries, strict=True)
        ],
    }


def _fields(row: Row) -> dict[str, object]:
    return {name: value for name, value in row._asdict().items() if value is not None}
