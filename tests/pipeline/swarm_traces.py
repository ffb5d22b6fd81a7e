"""Traces of the swarm, made and judged in processes of their own."""

from dataclasses import replace
from pathlib import Path

from tests.pipeline.conftest import write

from roundelay.check import Report, Validity, check
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.sim.seeds import scenario

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
    return _play(run, scenario(seed, engine, static=static), home)


def simulate_log(seed: int, home: str) -> tuple[str, Verdicts]:
    """The same, of a group that keeps a replicated log."""
    return _play(f"log-{seed}", scenario(seed, "totem", log=True), home)


CLEAN = """engine {engine}
network lan latency=100us
nodes a b c d
run 60ms
load messages=60 rate=500/s size=10 safe=30%
run 300ms
{change}
load messages=60 rate=500/s size=10 safe=30%
end after=8s
----
"""
"""A run on which nothing is lost, and in views one node that crashes and comes back."""


def clean(engine: str, static: bool, home: str) -> tuple[str, Verdicts]:
    """Run without losses, keep the trace, judge it."""
    run = f"clean-{engine}-{'static' if static else 'views'}"
    change = "run 1ms" if static else "crash d\nrun 500ms\nrestart d\nrun 500ms"
    name = f"{engine} static" if static else engine
    return _play(run, CLEAN.format(engine=name, change=change), home)


def _play(run: str, text: str, home: str) -> tuple[str, Verdicts]:
    story = ScenarioRunner()
    for block in parse(text):
        story.play(block)
    manifest = replace(story.manifest(text), run=run)
    written = write(Path(home) / run, manifest, story.rows)
    return run, verdicts(check(story.rows, written))
