"""Diagrams of simulated runs that fail."""

from collections.abc import Sequence
from pathlib import Path

from roundelay import draw
from roundelay.cli.progress import Progress
from roundelay.sim.command_text import names
from roundelay.sim.failure import Failure, Judge
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.trace.schema import Row

AROUND = 60
"""The number of events drawn before and after each row of a witness, if there are too many to draw
all of them."""


def drawing(runner: ScenarioRunner, failure: Failure, witness: Sequence[Row], title: str) -> str:
    """What happens in a run that fails."""
    crowded = len(runner.rows) > draw.EVENTS_MAX and witness
    return draw.svg(
        runner.rows,
        runner.manifest(),
        witness=witness,
        reason=str(failure),
        title=title,
        window=draw.Window(around=AROUND) if crowded else None,
    )


def draw_again(scenario: str, path: Path, title: str) -> str:
    """Run a scenario that failed once more, and draw it; a line that says where the picture is, or
    why there is none."""
    progress = Progress("drawing")
    progress.say(title)
    commands = tuple(command for block in parse(scenario) for _, command in block.commands)
    attempt = Judge(nodes=names(commands)).run(commands)
    try:
        if attempt.failure is None:
            return f"no picture of {title}: run once more, it breaks no promise"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = drawing(attempt.runner, attempt.failure, attempt.witness, title)
        path.write_text(picture, encoding="utf-8")
    except OSError as e:
        return f"no picture of {title}: cannot write {path} ({e.strerror}); choose a place with -o"
    finally:
        progress.close()
    return f"picture: {path} (open it in a browser)"
