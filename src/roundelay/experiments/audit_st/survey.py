"""Many cases of an audit of ST, over several processes, counted."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from roundelay.core.value import value
from roundelay.experiments.audit_st.cases import Case, draw
from roundelay.experiments.audit_st.play import Outcome, play
from roundelay.experiments.cells import Report, spread

RULES = ("paper", "safe")
PROMISED = {
    "paper": ("pairwise", "cyclic", "source", "unfinished"),
    "safe": ("pairwise", "cyclic", "source", "causal", "unfinished"),
}
"""By rules: which kinds of errors break a promise. The paper promises nothing about causes."""
KINDS = {
    "pairwise": "two members deliver two messages in different orders",
    "cyclic": "no order of all messages fits every member",
    "source": "one sender's messages are not in its order",
    "causal": "a message comes before one that its sender had heard",
    "unfinished": "a message does not come",
}
CHUNK = 20
"""Cases that one process plays at a time."""
SHOWN = 3
"""Counterexamples that are kept."""


@value
class Count:
    """What came of all cases under some rules."""

    rules: str
    violations: int
    single_violations: int
    """After the loss of one copy."""
    kinds: dict[str, int]
    single_kinds: dict[str, int]
    examples: tuple[Case, ...]
    """The first cases that break a promise, those after a single loss before others."""

    def document(self) -> dict[str, Any]:
        """Its numbers, for a JSON document."""
        return {
            "violations": self.violations,
            "single_violations": self.single_violations,
            "kinds": self.kinds,
            "single_kinds": self.single_kinds,
        }


@value
class Survey:
    """What came of an audit."""

    runs: int
    single: int
    """Runs in which one member misses one message that is for it, and nothing else is missed by
    anybody whom it is for."""
    counts: tuple[Count, ...]


@value
class _Task:
    size: int
    losses: tuple[float, ...]
    first: int
    last: int


def survey(runs: int, size: int, losses: Sequence[float], *, jobs: int, report: Report) -> Survey:
    """Play so many cases under both rules, each loss in turn."""
    tasks = [
        _Task(size, tuple(losses), first, min(first + CHUNK, runs))
        for first in range(0, runs, CHUNK)
    ]
    parts = spread(_play, tasks, jobs=jobs, report=report, cost=lambda task: task.last - task.first)
    results = [result for part in parts for result in part]
    single = sum(case.losses == 1 for case, _ in results)
    counts = (
        _count(rules, [(case, outcomes[i]) for case, outcomes in results])
        for i, rules in enumerate(RULES)
    )
    return Survey(len(results), single, tuple(counts))


def _play(task: _Task) -> list[tuple[Case, tuple[Outcome, ...]]]:
    found: list[tuple[Case, tuple[Outcome, ...]]] = []
    for number in range(task.first, task.last):
        case = draw(number, task.size, task.losses[number % len(task.losses)])
        found.append((case, tuple(play(case, rules) for rules in RULES)))
    return found


def _count(rules: str, results: Sequence[tuple[Case, Outcome]]) -> Count:
    kinds: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
    single_kinds = kinds.copy()
    broken: list[Case] = []
    for case, outcome in results:
        wrong = [kind for kind in KINDS if getattr(outcome, kind)]
        kinds.update(wrong)
        if case.losses == 1:
            single_kinds.update(wrong)
        if any(kind in PROMISED[rules] for kind in wrong):
            broken.append(case)
    examples = sorted(broken, key=lambda case: case.losses > 1)[:SHOWN]
    single = sum(case.losses == 1 for case in broken)
    return Count(rules, len(broken), single, dict(kinds), dict(single_kinds), tuple(examples))
