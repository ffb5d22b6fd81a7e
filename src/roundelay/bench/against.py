"""Compares this checkout of the project with another one, by the same measurement of both.

Each side runs the measurement in processes of its own, with the Python of this process and with
nothing but its own source, and prints one JSON document. A run that prints none, for instance
because a node was suspected, counts as failed. A round is four runs: there, here, here, there. So
what makes the machine slower in the course of a round slows both sides alike. A ratio is
what was measured here divided by what was measured there, in one round.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import roundelay

HERE, THERE = "here", "there"
ORDER = (THERE, HERE, HERE, THERE)
"""The runs of a round."""

Figures = Callable[[dict[str, Any]], Mapping[str, float]]
"""What is compared of a document: figures by name."""
Troubles = Callable[[dict[str, Any]], Mapping[str, int]]
"""What a document says of what should not have happened: how often, by name."""
Report = Callable[[int, int], None]
REFUSED = 2
"""The exit code of a command that was told what it does not know."""


class AgainstError(Exception):
    """The other checkout cannot be measured; the message says why in a sentence."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of both sides: medians over rounds, and how far the ratio goes."""

    name: str
    rounds: int
    """Those in which all four runs have the figure."""
    here: float
    there: float
    ratio: float
    lowest: float
    highest: float


@dataclass(slots=True)
class Side:
    """What the runs of one checkout came to."""

    runs: int = 0
    failures: list[str] = field(default_factory=list)
    """The last words of the runs that failed."""
    troubles: Counter[str] = field(default_factory=Counter)
    """Of all other runs."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What its document says of settings that are no defaults."""

    def note(self, document: Mapping[str, Any], troubles: Mapping[str, int]) -> None:
        self.troubles.update(troubles)
        self.settings = document.get("settings", {})


@dataclass(frozen=True, slots=True)
class Outcome:
    figures: list[Comparison]
    sides: Mapping[str, Side]


class _FailedError(Exception):
    """A run printed no document; the message has its last words."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.refused = code == REFUSED


def source_of(directory: Path) -> Path:
    """Where the source of a checkout is, or AgainstError."""
    for source in (directory / "src", directory):
        if (source / "roundelay" / "__init__.py").is_file():
            return source.resolve()
    raise AgainstError(
        f"{directory} is no checkout of this project: it has no src/roundelay; make one with: "
        "git worktree add DIR COMMIT"
    )


def compare(
    directory: Path,
    arguments: Sequence[str],
    figures: Figures,
    rounds: int,
    report: Report,
    troubles: Troubles = lambda document: {},
) -> Outcome:
    """Run `roundelay` with these arguments, which make it print JSON, in both checkouts. A run that
    fails is left out; AgainstError if all of a checkout fail in the first round."""
    sources = {HERE: Path(roundelay.__file__).resolve().parents[1], THERE: source_of(directory)}
    for source in sources.values():
        _check(source)
    found: list[dict[str, dict[str, list[float]]]] = []
    sides = {HERE: Side(), THERE: Side()}
    for i in range(rounds):
        values: dict[str, dict[str, list[float]]] = {HERE: {}, THERE: {}}
        for j, name in enumerate(ORDER):
            side = sides[name]
            side.runs += 1
            try:
                document = _run(sources[name], arguments)
            except _FailedError as e:
                side.failures.append(str(e))
                never = len(side.failures) == side.runs
                if never and (e.refused or side.runs == ORDER.count(name)):
                    raise AgainstError(f"the checkout {name} cannot be measured so: {e}") from None
            else:
                side.note(document, troubles(document))
                for figure, value in figures(document).items():
                    values[name].setdefault(figure, []).append(value)
            report(i * len(ORDER) + j + 1, rounds * len(ORDER))
        found.append(values)
    try:
        return Outcome(comparisons(found), sides)
    except AgainstError as e:
        failures = [words for side in sides.values() for words in side.failures]
        why = f" (failed: {'; '.join(dict.fromkeys(failures))})" if failures else ""
        raise AgainstError(f"{e}{why}") from None


def comparisons(rounds: Sequence[Mapping[str, Mapping[str, Sequence[float]]]]) -> list[Comparison]:
    """Each figure of which there is a round with both sides, in the order of this side's
    document."""
    made = []
    for name in dict.fromkeys(name for sides in rounds for name in sides[HERE]):
        pairs = [
            (sum(sides[HERE][name]), sum(sides[THERE][name]))
            for sides in rounds
            if all(len(sides[side].get(name, ())) == ORDER.count(side) for side in sides)
        ]
        pairs = [pair for pair in pairs if pair[1]]
        if not pairs:
            continue
        ratios = [here / there for here, there in pairs]
        made.append(
            Comparison(
                name,
                len(pairs),
                here=median(here for here, _ in pairs) / ORDER.count(HERE),
                there=median(there for _, there in pairs) / ORDER.count(THERE),
                ratio=median(ratios),
                lowest=min(ratios),
                highest=max(ratios),
            )
        )
    if not made:
        raise AgainstError("no figure was measured in all runs of a round; run it again")
    return made


def _environment(source: Path) -> dict[str, str]:
    """The variables of a process that takes this project from there."""
    return {**os.environ, "PYTHONPATH": str(source)}


def _check(source: Path) -> None:
    """AgainstError unless processes take the project from there."""
    code = "import roundelay; print(roundelay.__file__)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=_environment(source),
    )
    if run.returncode or not Path(run.stdout.strip()).resolve().is_relative_to(source):
        raise AgainstError(f"Python does not take the project from {source} with PYTHONPATH")


def _run(source: Path, arguments: Sequence[str]) -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, "-m", "roundelay", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=_environment(source),
    )
    try:
        document: dict[str, Any] = json.loads(run.stdout)
    except ValueError:
        last = run.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise _FailedError(last[0], run.returncode) from None
    return document
