"""An exploration: the searches of several situations, over several processes."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from roundelay.sim.explore.search import Search
from roundelay.sim.explore.situations import SITUATIONS
from roundelay.sim.explore.tally import Tally, Violation
from roundelay.sim.pool import workers

GROWTH = 50
"""By how much one more deviation multiplies the work, roughly. It only shapes the progress bar: a
wrong number makes the estimate of the time left wrong."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is explored."""

    protocol: str
    nodes: int
    deviations: int | None
    """The most deviations of a run; None means the default of each situation."""
    limit: int
    log: bool = False
    """Whether nodes keep a replicated log."""

    def depth(self, situation: str) -> int:
        """How many deviations are made in a situation."""
        default = SITUATIONS[situation].deviations
        return default if self.deviations is None else self.deviations


class Exploration:
    """Searches every part of every situation, and adds up what they come to.

    The figures do not depend on how many processes did the work.
    """

    def __init__(
        self,
        protocol: str = "totem",
        *,
        nodes: int = 3,
        deviations: int | None = None,
        situations: Sequence[str] = tuple(SITUATIONS),
        limit: int = 10,
        log: bool = False,
    ) -> None:
        """The exploration ends with its `limit`-th violation."""
        self.scope = Scope(protocol, nodes, deviations, limit, log)
        self.situations = tuple(situations)
        self.tallies = {situation: Tally() for situation in self.situations}
        self.complete = False
        """Whether everything was searched."""
        self._sum = hashlib.sha256(_name(self.scope).encode())

    def run(self, jobs: int = 1) -> Iterator[tuple[int, int]]:
        """Explore. Yields the work that is done and the work in all, both estimated."""
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
        with workers(jobs) as pool:
            yield from self._add(parts, pool.imap(_part, parts))

    def _add(self, parts: "Sequence[Part]", tallies: Iterator[Tally]) -> Iterator[tuple[int, int]]:
        total = sum(self._work(situation) for _, situation, _ in parts)
        done = 0
        for (_, situation, number), tally in zip(parts, tallies, strict=True):
            self.tallies[situation].add(tally)
            self._note(situation, number, tally)
            done += self._work(situation)
            yield done, total
            if len(self.violations) >= self.scope.limit:
                break
        else:
            self.complete = True

    def _work(self, situation: str) -> int:
        """The work that a part of a situation takes, in relation to other parts."""
        work: int = GROWTH ** self.scope.depth(situation)
        return work

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
        """The hash of everything that was seen: states, histories, violations."""
        return self._sum.hexdigest()

    def document(self) -> dict[str, object]:
        """The exploration in figures."""
        scope = self.scope
        return {
            "protocol": scope.protocol,
            "nodes": scope.nodes,
            "log": scope.log,
            "complete": self.complete,
            **_figures(self._total()),
            "situations": {
                name: {"deviations": scope.depth(name), **_figures(tally)}
                for name, tally in self.tallies.items()
            },
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
        scope, total = self.scope, self._total()
        count = len(self.violations)
        what = "every run" if self.complete else f"some runs, up to violation {count},"
        lines = [
            f"{scope.protocol}, {scope.nodes} nodes: {what} with at most so many deviations",
            _line("situation", "deviations", "runs", "merged", "states", "histories"),
            *(_line(name, scope.depth(name), *_counts(t)) for name, t in self.tallies.items()),
            _line("all", "", *_counts(total)),
        ]
        tried = ", ".join(f"{kind} {n:,}" for kind, n in sorted(total.tried.items()))
        lines.append(f"tried: {tried or 'nothing'}")
        lines.append(f"{count or 'no'} violation{'s' if count > 1 else ''}; sum {self.sha256[:16]}")
        return "\n".join(lines)

    def _total(self) -> Tally:
        total = Tally()
        for tally in self.tallies.values():
            total.add(tally)
        return total


def _figures(tally: Tally) -> dict[str, object]:
    names = ("runs", "merged", "states", "histories")
    return {
        **dict(zip(names, _counts(tally), strict=True)),
        "tried": {str(kind): count for kind, count in sorted(tally.tried.items())},
    }


def _counts(tally: Tally) -> tuple[int, int, int, int]:
    return tally.runs, tally.merged, len(tally.states), len(tally.histories)


def _line(situation: str, *cells: int | str) -> str:
    """A row of the summary."""
    figures = [f"{cell:,}" if isinstance(cell, int) else cell for cell in cells]
    return f"  {situation:<10}" + "".join(f"{figure:>12}" for figure in figures)


Part = tuple[Scope, str, int]


def _part(part: Part) -> Tally:
    """Search one part in a worker process, which keeps the search of a situation for its next
    part."""
    scope, situation, number = part
    return _kept(scope, situation).part(number)


def _search(scope: Scope, situation: str) -> Search:
    return Search(
        scope.protocol,
        situation,
        deviations=scope.depth(situation),
        nodes=scope.nodes,
        limit=scope.limit,
        log=scope.log,
    )


def _name(scope: Scope) -> str:
    """What is explored, for the sum: as it was before there were logs, if there is none."""
    return repr(scope) if scope.log else repr(scope).replace(", log=False", "")


_kept = cache(_search)
