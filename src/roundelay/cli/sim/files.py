"""Files that the simulator's commands read and write."""

import sys
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.shipped import NoScenarioError, find
from roundelay.trace.manifest import TraceError
from roundelay.trace.writer import Writer


def read(path: Path) -> str:
    """The text of a file, or a sentence."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not text"
        raise UserError(f"cannot read {path}: {reason}") from None


def scenario_path(name: str) -> Path:
    """The scenario that is meant: a file, or one that comes with Roundelay."""
    path = Path(name)
    if path.exists() or not name:
        return path
    try:
        return find(name)
    except NoScenarioError as e:
        if path.is_absolute() or path.suffix:
            return path  # Meant as a file, which there is not.
        raise UserError(str(e)) from None


def write_trace(runner: ScenarioRunner, scenario: str, directory: Path) -> None:
    """Write a run's trace, and say where it is."""
    try:
        with Writer(directory, runner.manifest(scenario)) as writer:
            for row in runner.rows:
                writer.append(row)
    except TraceError as e:
        raise UserError(str(e)) from None
    print(f"trace: {writer.path}", file=sys.stderr)
