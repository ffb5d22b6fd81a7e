"""The commands of scenarios, one module per kind. `docs/scenarios.md` lists them for users.

A command is a function of the runner and of the words behind the verb. It raises ValueError, with
a sentence that says what to write instead, if the words make no sense.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from roundelay.sim.commands import (
    application,
    faults,
    inspection,
    intrusion,
    journals,
    setup,
    timing,
)

if TYPE_CHECKING:
    from roundelay.sim.runner import ScenarioRunner

Command = Callable[["ScenarioRunner", list[str]], None]

COMMANDS: dict[str, Command] = {
    **setup.COMMANDS,
    **application.COMMANDS,
    **timing.COMMANDS,
    **faults.COMMANDS,
    **intrusion.COMMANDS,
    **journals.COMMANDS,
    **inspection.COMMANDS,
}
"""By verb. The runner itself handles `at`, which puts off another command."""
