"""The files that the `roundelay sim` commands read and write."""

import sys
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.shipped import NoScenarioError, find
from roundelay.trace.manifest import TraceError
from roundelay.trace.writer import Writer


def read(path: Path) -> str:
    """The text of a file; UserError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not text"
        raise UserError(f"cannot read {path}: {reason}") from None


def scenario_path(name: str) -> Path:
    """The path of a scenario: a file, or one that comes with Roundelay."""
    path = Path(name)
    if path.exists() or not name:
        return path
    try:
        return find(name)
    except NoScenarioError as e:
        if path.is_absolute() or path.suffix:
            return path  # The user means a file, which does not exist.
        raise UserError(str(e)) from None


def write_trace(runner: ScenarioRunner, scenario: str, directory: Path) -> None:
    """Write the trace of a run, and print where it is."""
    try:
        with Writer(directory, runner.manifest(scenario)) as writer:
            for row in runner.rows:
                writer.append(row)
    except TraceError as e:
        raise UserError(str(e)) from None
    print(f"trace: {writer.path} (roundelay draw {directory} -o run.svg)", file=sys.stderr)
