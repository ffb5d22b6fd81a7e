"""What a run is held to, and how a report becomes JSON and an exit code, on Spark or not."""

import argparse
from collections.abc import Sequence

from roundelay.check import PROPERTIES, Profile, Report, Standing, Validity, profile, profile_of
from roundelay.check.profiles import protocol_names
from roundelay.cli.errors import UserError
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

WITNESSES_SHOWN = 3
"""The number of violations whose witness is printed. The table of verdicts lists every violation,
so a larger number only makes the output longer."""

NAMES_SHOWN = 12
"""The number of undecided properties that the last line names."""


def profile_for(
    args: argparse.Namespace, manifest: Manifest | None
) -> Profile | Sequence[str] | None:
    """The promises that a run is checked against; None if they depend on its rows, because it has
    no manifest."""
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
    log = bool(manifest.fsync)
    return profile(args.profile, manifest.rules, manifest.resilience, mode, nodes, log=log)


def undecided(report: Report) -> list[str]:
    """The promises of which the trace does not show whether they hold."""
    open_ = (Validity.INCONCLUSIVE, Validity.OUTSIDE)
    return [
        verdict.property
        for verdict, entry in zip(report.verdicts, report.profile.entries, strict=True)
        if verdict.validity in open_ and entry.standing is not Standing.OPTIONAL
    ]


def exit_code(reports: Sequence[Report], args: argparse.Namespace) -> int:
    """1 if a promise is broken or, with --strict, if one is undecided; else 0. Undecided promises
    are printed as the last line."""
    violated = any(report.worst is Validity.VIOLATED for report in reports)
    names = list(dict.fromkeys(name for report in reports for name in undecided(report)))
    if names and not violated and not args.json:
        shown = " ".join(names[:NAMES_SHOWN]) + " ..." * (len(names) > NAMES_SHOWN)
        how = "exit code 1, as --strict asks" if args.strict else "--strict makes this exit code 1"
        print(f"\nnothing is violated, but {len(names)} undecided: {shown} ({how})")
    return 1 if violated or (names and args.strict) else 0


def document(run_: str, report: Report, problems: Sequence[str]) -> dict[str, object]:
    """A report as a JSON document."""
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
