"""Recordings: the scenario of a run, its seed and every choice made, to run it again exactly."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass

from roundelay import __version__
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse

FORMAT = 1


class RecordingError(Exception):
    """A recording that cannot be replayed; one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What `roundelay sim replay` reads."""

    scenario: str
    seed: int
    choices: dict[str, str]
    """By name: every choice that departs from the plain run."""
    sha256: str
    """The hash of the trace."""
    revision: str = __version__
    format: int = FORMAT

    @classmethod
    def of(cls, scenario: str, runner: ScenarioRunner) -> "Recording":
        choices = runner.choices.made if runner.choices is not None else {}
        return cls(scenario, runner.seed, dict(choices), runner.sha256())

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Recording":
        try:
            fields = json.loads(text)
            if fields["format"] != FORMAT:
                raise RecordingError(
                    f"the recording has format {fields['format']}, this version reads {FORMAT}"
                )
            return cls(**fields)
        except (ValueError, KeyError, TypeError):
            raise RecordingError(
                "this is not a recording; make one with: roundelay sim run FILE --record OUT"
            ) from None

    def replay(self, progress: Callable[[int, int], None] | None = None) -> ScenarioRunner:
        """Run it again, from the recorded choices alone."""
        runner = ScenarioRunner(seed=self.seed, choices=self.choices, progress=progress)
        for block in parse(self.scenario):
            runner.play(block)
        return runner
