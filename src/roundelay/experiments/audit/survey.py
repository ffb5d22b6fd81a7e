"""Many cases of an audit, over several processes, counted."""

from collections.abc import Iterable, Sequence
from typing import Any

from roundelay.core.value import value
from roundelay.experiments.audit.cases import Case, spaces
from roundelay.experiments.audit.play import play
from roundelay.experiments.cells import Report, spread

CHUNK = 100
"""Cases that one process plays at a time."""
SHOWN = 3
"""Counterexamples that are kept of each assumption."""


@value
class Count:
    """What came of all cases of one assumption."""

    assumption: str
    size: int
    k: int
    rules: str
    runs: int
    divergent: int
    stuck: int
    examples: tuple[Case, ...]
    """The first cases in which members disagree."""

    def document(self) -> dict[str, Any]:
        """Its numbers, for a JSON document."""
        return {
            "assumption": self.assumption,
            "n": self.size,
            "k": self.k,
            "rules": self.rules,
            "runs": self.runs,
            "divergent": self.divergent,
            "stuck": self.stuck,
        }


@value
class _Task:
    """Some cases of one failing group."""

    assumption: str
    size: int
    k: int
    rules: str
    group: int
    first: int
    last: int


@value
class _Part:
    runs: int
    divergent: int
    stuck: int
    examples: tuple[Case, ...]


def survey(
    assumptions: Sequence[str], size: int, k: int, rules: str, *, jobs: int, report: Report
) -> list[Count]:
    """Play all cases of each assumption; without any cases, its count is 0."""
    tasks = [
        _Task(assumption, size, k, rules, group, first, min(first + CHUNK, len(cases)))
        for assumption in assumptions
        for group, cases in enumerate(spaces(assumption, size, k))
        for first in range(0, len(cases), CHUNK)
    ]
    parts = spread(_play, tasks, jobs=jobs, report=report, cost=lambda task: task.last - task.first)
    return [
        _sum(
            (assumption, size, k, rules),
            [
                part
                for task, part in zip(tasks, parts, strict=True)
                if task.assumption == assumption
            ],
        )
        for assumption in assumptions
    ]


def _play(task: _Task) -> _Part:
    cases = spaces(task.assumption, task.size, task.k)[task.group]
    divergent = stuck = 0
    examples: list[Case] = []
    for index in range(task.first, task.last):
        outcome = play(cases[index], task.rules, task.k)
        stuck += outcome.stuck
        if outcome.diverged:
            divergent += 1
            if len(examples) < SHOWN:
                examples.append(cases[index])
    return _Part(task.last - task.first, divergent, stuck, tuple(examples))


def _sum(what: tuple[str, int, int, str], parts: Iterable[_Part]) -> Count:
    parts = list(parts)
    return Count(
        *what,
        sum(part.runs for part in parts),
        sum(part.divergent for part in parts),
        sum(part.stuck for part in parts),
        tuple(case for part in parts for case in part.examples)[:SHOWN],
    )
