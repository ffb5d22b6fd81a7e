"""A run on file: its scenario, its seed and every choice made, enough to run it again exactly."""

import dataclasses
import json
from dataclasses import dataclass

from roundelay import __version__
from roundelay.sim.scenario import parse
from roundelay.sim.story import Story

FORMAT = 1


class RecordingError(Exception):
    """A recording that cannot be replayed; one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What `roundelay sim replay` reads."""

    scenario: str
    seed: int
    choices: dict[str, str]
    """By name: what was chosen other than the plain way."""
    sha256: str
    """Of the trace."""
    revision: str = __version__
    format: int = FORMAT

    @classmethod
    def of(cls, scenario: str, story: Story) -> "Recording":
        choices = story.choices.made if story.choices is not None else {}
        return cls(scenario, story.seed, dict(choices), story.sha256())

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

    def replay(self) -> Story:
        """Run it again, from the recorded choices alone."""
        story = Story(seed=self.seed, choices=self.choices)
        for block in parse(self.scenario):
            story.play(block)
        return story
