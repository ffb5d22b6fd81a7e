"""Swarm: a seed draws the cluster, the workload, the network and which faults there are.

Every run is a different cluster and not the same one with other dice: some have no loss at all,
some lose a third of all frames, some crash and never part. What a seed draws is a scenario, as
text, so a failure can be read, kept and cut down.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

from roundelay.check import Report, Standing, Validity, check
from roundelay.sim.scenario import parse
from roundelay.sim.seeds import scenario as scenario
from roundelay.sim.story import Story
from roundelay.sim.watch import Watch

@dataclass(frozen=True, slots=True)
class Judgement:
    """What a campaign keeps of one seed: small, since it comes from another process."""

    seed: int
    failures: tuple[str, ...]
    verdicts: dict[str, str]
    """Property to verdict; optional ones left out."""
    sha256: str
    """Of the trace."""


class Campaign:
    """Many seeds of one protocol, over several processes, and what came of them."""

    def __init__(self, protocol: str, *, static: bool = False) -> None:
        self.protocol = protocol
        self.static = static
        self.seeds = 0
        """Judged so far."""
        self.failed: list[int] = []
        self._counts: Counter[tuple[str, str]] = Counter()
        self._broken = 0
        self._traces = hashlib.sha256()

    def run(self, first: int, seeds: int, jobs: int) -> Iterator[Judgement]:
        """Judge `seeds` seeds from `first` on, in order, in `jobs` processes."""
        judge_one = partial(judge, protocol=self.protocol, static=self.static)
        numbers = range(first, first + seeds)
        if jobs <= 1 or seeds == 1:
            for seed in numbers:
                yield self._note(judge_one(seed))
            return
        with get_context("spawn").Pool(jobs) as pool:
            for judgement in pool.imap(judge_one, numbers, chunksize=2):
                yield self._note(judgement)

    def _note(self, judgement: Judgement) -> Judgement:
        self.seeds += 1
        self._traces.update(judgement.sha256.encode())
        self._counts.update(judgement.verdicts.items())
        if judgement.failures:
            self.failed.append(judgement.seed)
            self._broken += not judgement.verdicts
        return judgement

    def document(self) -> dict[str, object]:
        """The campaign in figures."""
        count = self._verdicts
        violated = sum(n for name, n in count(Validity.VIOLATED).items() if name[0] != "L")
        return {
            "protocol": self.protocol,
            "static": self.static,
            "seeds": self.seeds,
            "violations": violated + self._broken,
            "liveness_failures": sum(count(Validity.VIOLATED).values()) - violated,
            "outside_envelope": sum(count(Validity.OUTSIDE).values()),
            "inconclusive": sum(count(Validity.INCONCLUSIVE).values()),
            "vacuous": sum(count(Validity.VACUOUS).values()),
            "never_tested": self._never(),
            "failed": self.failed,
            "trace_sha256": self._traces.hexdigest(),
        }

    def summary(self) -> str:
        """The campaign in a few lines."""
        figures = self.document()
        lines = [
            f"{self.protocol}: {self.seeds} seeds, {figures['violations']} violations, "
            f"{figures['liveness_failures']} liveness failures, "
            f"{figures['outside_envelope']} outside the envelope, "
            f"{figures['inconclusive']} inconclusive"
        ]
        if never := self._never():
            lines.append(f"never put to the test: {' '.join(never)}")
        return "\n".join([*lines, f"traces {figures['trace_sha256']}"])

    def _never(self) -> list[str]:
        return [p for p, n in self._verdicts(Validity.VACUOUS).items() if n == self.seeds]

    def _verdicts(self, validity: Validity) -> dict[str, int]:
        return {name: n for (name, verdict), n in self._counts.items() if verdict == validity}


def judge(seed: int, *, protocol: str, static: bool) -> Judgement:
    """Run a seed and keep what counts."""
    outcome = run(seed, protocol, static=static)
    verdicts = {}
    if outcome.report is not None:
        judged = zip(outcome.report.verdicts, outcome.report.profile.entries, strict=True)
        verdicts = {
            verdict.property: str(verdict.validity)
            for verdict, entry in judged
            if entry.standing is not Standing.OPTIONAL
        }
    return Judgement(seed, outcome.failures, verdicts, outcome.story.sha256())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one seed."""

    seed: int
    scenario: str
    story: Story
    broken: str
    """The invariant that broke while it ran; then there is no report."""
    report: Report | None

    @property
    def failures(self) -> tuple[str, ...]:
        """What speaks against the protocol, a sentence each."""
        if self.report is None:
            return (f"an invariant broke: {self.broken}",)
        judged = zip(self.report.verdicts, self.report.profile.entries, strict=True)
        return tuple(
            f"{verdict.property} {verdict.validity}: {verdict.reason}"
            for verdict, entry in judged
            if verdict.validity not in (Validity.OK, Validity.VACUOUS)
            and entry.standing is not Standing.OPTIONAL
        )


def run(seed: int, protocol: str, *, static: bool = False) -> Outcome:
    """Run a seed, watch it, and judge its trace."""
    text = scenario(seed, protocol, static=static)
    story = Story(watch=Watch())
    try:
        for block in parse(text):
            story.play(block)
    except AssertionError as e:
        return Outcome(seed, text, story, str(e) or "unnamed", None)
    return Outcome(seed, text, story, "", check(story.rows, story.manifest(text)))
