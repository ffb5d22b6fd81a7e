"""Stories for tests of goals, and what their runs show."""

from roundelay.sim.coverage import Evidence
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse


def played(scenario: str) -> Evidence:
    """What a run of this scenario shows."""
    evidence = Evidence()
    story = ScenarioRunner(watch=evidence)
    for block in parse(scenario):
        story.play(block)
    evidence.close(story.rows)
    return evidence


def of_commands(commands: str) -> str:
    """A scenario that expects nothing. Empty lines are left out."""
    return "\n".join(line for line in commands.splitlines() if line) + "\n----\n"
