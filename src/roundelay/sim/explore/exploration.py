"""An exploration: the searches of several situations, over several processes."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

from roundelay.sim.explore.search import Search, Tally, Violation
from roundelay.sim.explore.situations import SITUATIONS


@dataclass(frozen=True, slots=True)
class Scope:
    """What is explored."""

    protocol: str
    nodes: int
    deviations: int
    limit: int


class Exploration:
    """Searches every part of every situation, and adds up what they come to.

    The figures do not depend on how many processes did the work.
    """

    def __init__(
        self,
        protocol: str = "totem",
        *,
        nodes: int = 3,
        deviations: int = 2,
        situations: Sequence[str] = tuple(SITUATIONS),
        limit: int = 10,
    ) -> None:
        """The exploration ends with its `limit`-th violation."""
        self.scope = Scope(protocol, nodes, deviations, limit)
        self.situations = tuple(situations)
        self.tallies = {situation: Tally() for situation in self.situations}
        self.complete = False
        """Whether everything was searched."""
        self._sum = hashlib.sha256(repr(self.scope).encode())

    def run(self, jobs: int = 1) -> Iterator[tuple[int, int]]:
        """Explore; yields how many parts of how many are done."""
        searches = {situation: _search(self.scope, situation) for situation in self.situations}
        parts = [
            (self.scope, situation, number)
            for situation, search in searches.items()
            for number in range(search.parts)
        ]
        if jobs <= 1:
            here = (searches[situation].part(number) for _, situation, number in parts)
            yield from self._add(parts, here)
            return
        with get_context("spawn").Pool(jobs) as pool:
            yield from self._add(parts, pool.imap(_part, parts))

    def _add(self, parts: "Sequence[Part]", tallies: Iterator[Tally]) -> Iterator[tuple[int, int]]:
        for done, ((_, situation, number), tally) in enumerate(zip(parts, tallies, strict=True), 1):
            self.tallies[situation].add(tally)
            self._note(situation, number, tally)
            yield done, len(parts)
            if len(self.violations) >= self.scope.limit:
                break
        else:
            self.complete = True

    def _note(self, situation: str, number: int, tally: Tally) -> None:
        tried = sorted(tally.tried.items())
        told = (situation, number, tally.runs, tally.merged, tried, sorted(tally.histories))
        self._sum.update(repr(told).encode())
        self._sum.update(repr(sorted(tally.states)).encode())
        self._sum.update(repr(tally.violations).encode())

    @property
    def violations(self) -> list[Violation]:
        found = [v for tally in self.tallies.values() for v in tally.violations]
        return found[: self.scope.limit]

    @property
    def sha256(self) -> str:
        """Of everything that was seen: states, histories, violations."""
        return self._sum.hexdigest()

    def document(self) -> dict[str, object]:
        """The exploration in figures."""
        total = Tally()
        for tally in self.tallies.values():
            total.add(tally)
        scope = self.scope
        return {
            "protocol": scope.protocol,
            "nodes": scope.nodes,
            "deviations": scope.deviations,
            "complete": self.complete,
            **_figures(total),
            "situations": {name: _figures(tally) for name, tally in self.tallies.items()},
            "violations": [
                {
                    "situation": violation.situation,
                    "failures": list(violation.failures),
                    "deviations": list(violation.deviations),
                }
                for violation in self.violations
            ],
            "sha256": self.sha256,
        }

    def summary(self) -> str:
        """The exploration in a few lines."""
        scope = self.scope
        every = "every placement" if self.complete else "not every placement"
        lines = [
            f"{scope.protocol}, {scope.nodes} nodes: {every} of up to {scope.deviations} "
            f"deviations in {len(self.situations)} situations"
        ]
        total = Tally()
        for name, tally in self.tallies.items():
            total.add(tally)
            lines.append(f"  {name:<10} {_sentence(tally)}")
        lines.append(f"  {'all':<10} {_sentence(total)}")
        tried = ", ".join(f"{kind} {count:,}" for kind, count in sorted(total.tried.items()))
        lines.append(f"deviations tried: {tried}")
        count = len(self.violations)
        lines.append(f"{count or 'no'} violation{'s' if count > 1 else ''}; sum {self.sha256[:16]}")
        return "\n".join(lines)


def _figures(tally: Tally) -> dict[str, object]:
    return {
        "runs": tally.runs,
        "merged": tally.merged,
        "states": len(tally.states),
        "histories": len(tally.histories),
        "tried": {str(kind): count for kind, count in sorted(tally.tried.items())},
    }


def _sentence(tally: Tally) -> str:
    return (
        f"{tally.runs:,} runs, {tally.merged:,} of them merged with others, "
        f"{len(tally.states):,} states, {len(tally.histories):,} histories"
    )


Part = tuple[Scope, str, int]


def _part(part: Part) -> Tally:
    """Search a part; for processes, which keep what they know of a situation for the next."""
    scope, situation, number = part
    return _kept(scope, situation).part(number)


def _search(scope: Scope, situation: str) -> Search:
    return Search(
        scope.protocol,
        situation,
        deviations=scope.deviations,
        nodes=scope.nodes,
        limit=scope.limit,
    )


_kept = cache(_search)
