"""`roundelay draw`: a trace, or a violation in it, as a space-time diagram."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from roundelay import draw
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.core.effects import Kind
from roundelay.trace import mini, reader
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.schema import Row

AROUND = 60
"""The default number of events drawn before and after each row of a witness."""
NEAR = 20
"""The same for a moment: much of what followed it is drawn besides."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help="a trace, as `check` reads it")
    parser.add_argument(
        "--trace", metavar="TEXT", help='a trace in the mini-language: "p!a q?a p.a=1 q.a=1"'
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the picture (default: beside PATH, as .svg)"
    )
    parser.add_argument("--title", default="", help="written above the picture")
    parser.add_argument(
        "--witness", action="store_true", help="check the trace and show the first violation"
    )
    parser.add_argument(
        "--property", metavar="NAME", help="show the violation of this property, as O5"
    )
    parser.add_argument(
        "--around-witness", metavar="N", type=int, help=f"events around it (default {AROUND})"
    )
    parser.add_argument(
        "--around",
        metavar="MOMENT",
        help="draw a fault and what followed (fault:2; fault for all of them), a view (view:3), "
        "a time (4.5s) or a row (row:b.17)",
    )
    parser.add_argument(
        "--near", metavar="N", type=int, help=f"events on either side of it (default {NEAR})"
    )
    parser.add_argument("--from", dest="start", metavar="T", help="leave out what was before 12ms")
    parser.add_argument("--to", dest="end", metavar="T", help="leave out what was after 1.5s")
    parser.add_argument("--nodes", metavar="A,B", help="draw these nodes alone")
    parser.add_argument("--hide", metavar="KINDS", help="leave out kinds of events, as expire,send")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=int,
        default=draw.EVENTS_MAX,
        help=f"draw at most N events (default {draw.EVENTS_MAX})",
    )


def run(args: argparse.Namespace) -> int:
    progress = Progress("drawing")
    try:
        return _draw(args, progress)
    finally:
        progress.close()


def _draw(args: argparse.Namespace, progress: Progress) -> int:
    progress.say("reading the trace")
    found, rows, problems = _trace(args)
    progress.say(f"{len(rows):,} events")
    manifest = found or Manifest(run="", nodes=())
    window = _window(args, manifest)
    witness: tuple[Row, ...] = ()
    reason = ""
    if args.witness or args.property:
        witness, reason = _witness(rows, found, problems, args.property)
    output = _output(args)
    title = args.title or (Path(args.path).resolve().name if args.path else "")
    try:
        scene = draw.layout(
            rows, manifest, witness=witness, reason=reason, title=title, window=window
        )
    except ValueError as e:
        raise UserError(f"--around {args.around}: {e}") from None
    try:
        output.write_text(draw.render(scene), encoding="utf-8")
    except OSError as e:
        raise UserError(
            f"cannot write {output}: {e.strerror}; choose another file with -o"
        ) from None
    progress.close()
    note = scene.note or "all events drawn."
    if f"the first {args.limit}" in scene.note:
        note += f" To see what happened later, use {_later(rows)}."
    print(f"{output}: {note}")
    if reason:
        print(reason)
    for problem in problems:
        print(f"The trace has a problem: {problem}")
    print(f"Open it in a browser: {output.resolve().as_uri()}")
    return 0


def _later(rows: Sequence[Row]) -> str:
    """The flags that show more of a run than its beginning."""
    kinds = {row.kind for row in rows if (row.kind, row.tag) != (Kind.FAULT, "start")}
    if kinds & {Kind.FAULT, Kind.CRASH}:
        return "--around fault"
    return "--around view" if Kind.INSTALL in kinds else "--from and --to"


def _trace(args: argparse.Namespace) -> tuple[Manifest | None, list[Row], list[str]]:
    if (args.path is None) == (args.trace is None):
        raise UserError("give the PATH of a trace or a text with --trace, one of the two")
    try:
        if args.trace is not None:
            manifest, rows = mini.parse(args.trace)
            return manifest, rows, []
        trace = reader.read(args.path)
    except TraceError as e:
        raise UserError(str(e)) from None
    return trace.manifest, trace.rows, trace.problems


def _window(args: argparse.Namespace, manifest: Manifest) -> draw.Window:
    counts = {
        "--limit": args.limit,
        "--around-witness": args.around_witness,
        "--near": args.near,
    }
    for name, number in counts.items():
        if number is not None and number < 1:
            raise UserError(f"{name} must be 1 or more, not {number}")
    times: list[int | None] = []
    for name, text in (("--from", args.start), ("--to", args.end)):
        try:
            times.append(None if text is None else draw.parse_time(text))
        except ValueError as e:
            raise UserError(f"{name}: {e}") from None
    nodes = _names(args.nodes)
    for name in nodes or ():
        if manifest.nodes and name not in manifest.nodes:
            raise UserError(
                f"the trace has no node {name!r}; its nodes are {', '.join(manifest.nodes)}"
            )
    at = _place(args)
    around = args.around_witness if at is None else args.near or NEAR
    if around is None and (args.witness or args.property):
        around = AROUND
    return draw.Window(
        start_ns=times[0],
        end_ns=times[1],
        nodes=nodes,
        at=at,
        around=around,
        limit=args.limit,
        hide=_names(args.hide) or (),
    )


def _place(args: argparse.Namespace) -> draw.Place | None:
    if args.around is None:
        if args.near is not None:
            raise UserError("--near says how many events around a moment; name it with --around")
        return None
    if args.witness or args.property:
        raise UserError("a picture is about a violation or a moment; leave out one of the two")
    try:
        return draw.Place(args.around)
    except ValueError as e:
        raise UserError(f"--around {e}") from None


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _witness(
    rows: Sequence[Row], manifest: Manifest | None, problems: Sequence[str], wanted: str | None
) -> tuple[tuple[Row, ...], str]:
    """The rows and the sentence of the first violation that has a witness, or of the wanted
    property."""
    from roundelay.check import check
    from roundelay.check.verdict import Validity

    if not wanted and not (manifest and manifest.protocol):
        raise UserError(
            "the trace does not say which protocol wrote it; name one property with --property"
        )
    try:
        report = check(rows, manifest, profile=[wanted] if wanted else None, problems=problems)
    except ValueError as e:
        raise UserError(str(e)) from None
    for verdict in report.verdicts:
        if verdict.validity is Validity.VIOLATED and verdict.witness:
            return verdict.witness, f"{verdict.property} violated: {verdict.reason}"
    if wanted:
        verdict = report.verdicts[0]
        because = f" ({verdict.reason})" if verdict.reason else ""
        found = f"{wanted} is {verdict.validity.value} here{because}, so there is no witness"
    else:
        found = "the trace shows no violation"
    raise UserError(f"{found}; draw it without --witness and --property")


def _output(args: argparse.Namespace) -> Path:
    if args.output is not None:
        return Path(args.output)
    if args.path is None:
        return Path("trace.svg")
    path = Path(args.path)
    if path.name in ("", ".."):
        path = path.resolve()
    name = path.name if path.is_dir() else path.stem
    return path.parent / f"{name or 'trace'}.svg"
