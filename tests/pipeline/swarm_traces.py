"""Traces of the swarm, made and judged in processes of their own."""

from dataclasses import replace
from pathlib import Path

from tests.pipeline.conftest import write

from roundelay.check import Report, Validity, check
from roundelay.sim.scenario import parse
from roundelay.sim.seeds import scenario
from roundelay.sim.story import Story

Verdicts = dict[str, tuple[str, int]]
"""By property: validity, and instances where it is ok."""


def verdicts(report: Report) -> Verdicts:
    return {
        v.property: (str(v.validity), v.instances if v.validity is Validity.OK else 0)
        for v in report.verdicts
    }


def simulate(engine: str, static: bool, seed: int, home: str) -> tuple[str, Verdicts]:
    """Run a seed, keep its trace, judge it; runs in a process of its own."""
    run = f"{engine}-{'static' if static else 'views'}-{seed}"
    text = scenario(seed, engine, static=static)
    story = Story()
    for block in parse(text):
        story.play(block)
    manifest = replace(story.manifest(text), run=run)
    written = write(Path(home) / run, manifest, story.rows)
    return run, verdicts(check(story.rows, written))
