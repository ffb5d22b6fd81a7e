"""The scenarios that come with Roundelay, as the page lists them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from roundelay.sim.scenario import DASHES
from roundelay.sim.shipped import shipped
from roundelay.web.lab.errors import LaboratoryError

FIRST: Sequence[tuple[str, str]] = (
    ("totem/g03_loss", "A packet is lost and sent again. How Totem works at all."),
    ("totem/g05_partition_and_merge", "A network parts and meets again, and so do the views."),
    ("dtp_two_holders", "A rule of a paper that gives two nodes the token."),
    ("fc/x1_two_fail", "Two crashes that a paper allows: two messages get one number."),
    ("st/st_x2_cycle_paper", "Three messages in a circle, though every two nodes agree."),
    ("causal/waits_for_a_cause", "An answer comes before the question, and has to wait."),
)
"""Where to begin, and what is to be seen there."""

_VARIANTS = ("_safe", "_paper", "_link")
"""The same story under other rules has another of these at the end of its name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A scenario in the list."""

    name: str
    engine: str
    rules: str
    story: tuple[str, ...]
    """The paragraphs of its opening comment."""
    breaks: tuple[str, ...]
    """The properties that it expects to be violated."""
    others: tuple[str, ...]
    """Scenarios that tell the same story under other rules."""

    @property
    def group(self) -> str:
        """Under which heading it is listed: its folder, or else its engine."""
        return self.name.split("/")[0] if "/" in self.name else self.engine


@cache
def catalogue() -> Mapping[str, Entry]:
    """Every scenario by its name."""
    paths = shipped()
    return {name: _entry(name, path, paths) for name, path in paths.items()}


def text_of(name: str) -> str:
    """The text of a shipped scenario; LaboratoryError if there is none of that name."""
    if name not in catalogue():  # Only names of this list become paths.
        raise LaboratoryError(f"no scenario is called {name!r}; choose one of the list")
    return shipped()[name].read_text(encoding="utf-8")


def document() -> dict[str, Any]:
    """What the page is given."""
    return {
        "scenarios": [
            {
                "name": entry.name,
                "group": entry.group,
                "engine": entry.engine,
                "rules": entry.rules,
                "story": entry.story,
                "breaks": entry.breaks,
                "others": entry.others,
            }
            for entry in catalogue().values()
        ],
        "first": [{"name": name, "why": why} for name, why in FIRST],
    }


def _entry(name: str, path: Path, known: Mapping[str, Path]) -> Entry:
    text = path.read_text(encoding="utf-8")
    engine = re.search(r"^engine (.*)$", text, re.MULTILINE)
    words = engine[1].split() if engine is not None else []
    named = [word for word in words if "=" not in word and word not in ("static", "views")]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    breaks = re.findall(r"^(\w+) violated: ", _outputs(text), re.MULTILINE)
    return Entry(
        name,
        named[0] if named else "template",
        options.get("rules", "safe"),
        _story(text),
        tuple(dict.fromkeys(breaks)),
        tuple(_others(name, known)),
    )


def _story(text: str) -> tuple[str, ...]:
    """The opening comment, paragraph by paragraph."""
    paragraphs: list[list[str]] = [[]]
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        words = line.lstrip("#").strip()
        if words:
            paragraphs[-1].append(words)
        elif paragraphs[-1]:
            paragraphs.append([])
    return tuple(" ".join(lines) for lines in paragraphs if lines)


def _outputs(text: str) -> str:
    """What follows the dashes of each block."""
    parts = re.split(rf"^{DASHES}$", text, flags=re.MULTILINE)[1:]
    return "\n".join(part.lstrip("\n").split("\n\n")[0] for part in parts)


def _others(name: str, known: Mapping[str, Path]) -> list[str]:
    stem = next((name.removesuffix(end) for end in _VARIANTS if name.endswith(end)), name)
    return [other for end in ("", *_VARIANTS) if (other := stem + end) in known and other != name]
