"""`roundelay demo`: a group in a lossy simulation, its trial, and a picture of what went wrong."""

import argparse
from importlib.resources import files
from pathlib import Path

from roundelay.check import check
from roundelay.check.text import table
from roundelay.check.verdict import Validity
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.draw import Window, svg
from roundelay.sim.scenario import parse
from roundelay.sim.story import Story
from roundelay.trace.manifest import TraceError
from roundelay.trace.writer import Writer

DRAWN = "O5"
"""The violation that makes the best picture: two nodes, two messages, two orders."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, default=Path("out/demo"))


def run(args: argparse.Namespace) -> int:
    scenario = (files("roundelay.sim") / "scenarios" / "demo.txt").read_text()
    progress = Progress("simulating")
    story = Story(progress=progress.update)
    for block in parse(scenario):
        story.play(block)
    progress.close()
    try:
        with Writer(args.output / "trace", story.manifest(scenario)) as writer:
            for row in story.rows:
                writer.append(row)
    except TraceError as e:
        raise UserError(f"{e}; choose another place with -o DIR") from None
    manifest = writer.manifest
    report = check(story.rows, manifest)
    world = story.world
    delivered = sum(row.kind == "deliver" for row in story.rows)
    print(
        f"A group of {len(world.nodes)} nodes ran the template engine, which orders nothing, over a"
        f"\nlossy network: {world.frames} frames, {delivered} deliveries, seed {story.seed}.\n"
    )
    print(table(report, manifest))
    convicted = [v for v in report.verdicts if v.validity is Validity.VIOLATED]
    if not convicted:
        raise UserError("the checker convicted nobody, which it must here; please report this")
    drawn = next((v for v in convicted if v.property == DRAWN), convicted[0])
    picture = args.output / "witness.svg"
    window = Window(around=25)
    reason = f"{drawn.property}: {drawn.reason}"
    picture.write_text(
        svg(story.rows, manifest, witness=drawn.witness, reason=reason, window=window)
    )
    print(f"witness of {drawn.property}: {picture} (open it in a browser)")
    print(f"trace: {writer.path}")
    print(f"again: roundelay check {args.output / 'trace'}")
    return 0

