"""Swarm: many seeds, each a cluster of its own, run, watched and checked.

What a seed draws is in `seeds`. A campaign fails if anything promised is broken, and, once it is
long enough, also if it never went where it should: see `coverage`.

The online checker follows a run row by row while the batch checker, which decides, reads the whole
trace afterwards. What both cover they must agree on; if they do not, one of them has a bug, and the
seed fails.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from roundelay.check import Report, Standing, Validity, Verdict, check, profile_of
from roundelay.check.online import OnlineChecker
from roundelay.core.ids import NodeId
from roundelay.sim.coverage import Evidence, catalogue, reached
from roundelay.sim.pool import workers
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.sim.seeds import scenario
from roundelay.sim.watch import Watch
from roundelay.sim.world import World
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

SEEDS_TO_COVER = 1000
"""A campaign of fewer seeds may leave goals of its catalogue unreached."""

WHOLE_SHARE = 10
"""The first of so many seeds of a campaign, and at least one, take every frame through its
bytes ..."""

BYTES_EVERY = 50
"""... and the others one frame of so many. Fewer: every frame costs as much as on a real network.
More: a message that reads otherwise than it was sent is found later."""

RAREST = 5
"""How many of the goals that were reached least often a summary names."""


@dataclass(frozen=True, slots=True)
class SeedResult:
    """What a campaign keeps of one seed: small, since it comes from another process."""

    seed: int
    failures: tuple[str, ...]
    verdicts: dict[str, str]
    """Property to verdict; optional ones left out."""
    reached: tuple[str, ...]
    """Goals of the catalogue."""
    sha256: str
    """Of the trace."""


class Campaign:
    """Many seeds of one protocol, over several processes, and what came of them."""

    def __init__(
        self,
        protocol: str,
        *,
        static: bool = False,
        rules: str = "safe",
        intruder: bool = False,
        log: bool = False,
    ) -> None:
        self.protocol = protocol
        self.static = static
        self.rules = rules
        self.intruder = intruder
        self.log = log
        self.seeds = 0
        """Checked so far."""
        self.failed: list[int] = []
        self._counts: Counter[tuple[str, str]] = Counter()
        goals = catalogue(protocol, static=static, rules=rules, intruder=intruder, log=log)
        self._reached = Counter(dict.fromkeys(goals, 0))
        self._first: dict[str, int] = {}
        """By goal: a seed to look at."""
        self._broken = 0
        self._traces = hashlib.sha256()

    def run(self, first: int, seeds: int, jobs: int) -> Iterator[SeedResult]:
        """Check `seeds` seeds from `first` on, in order, in `jobs` processes."""
        check_one = partial(
            _check_numbered,
            protocol=self.protocol,
            static=self.static,
            rules=self.rules,
            intruder=self.intruder,
            log=self.log,
        )
        whole = first + -(-seeds // WHOLE_SHARE)
        numbers = [(n, 1 if n < whole else BYTES_EVERY) for n in range(first, first + seeds)]
        if jobs <= 1 or seeds == 1:
            for number in numbers:
                yield self._note(check_one(number))
            return
        with workers(jobs) as pool:
            for result in pool.imap(check_one, numbers, chunksize=2):
                yield self._note(result)

    def _note(self, result: SeedResult) -> SeedResult:
        self.seeds += 1
        self._traces.update(result.sha256.encode())
        self._counts.update(result.verdicts.items())
        self._reached.update(result.reached)
        for goal in result.reached:
            self._first.setdefault(goal, result.seed)
        if result.failures:
            self.failed.append(result.seed)
            self._broken += not result.verdicts
        return result

    @property
    def ok(self) -> bool:
        """Nothing failed, and a campaign that is long enough has reached every goal."""
        return not self.failed and not (self.uncovered and self.seeds >= SEEDS_TO_COVER)

    @property
    def uncovered(self) -> list[str]:
        """Goals of the catalogue that no seed has reached."""
        return [goal for goal, seeds in self._reached.items() if not seeds]

    def document(self) -> dict[str, object]:
        """The campaign in figures."""
        count = self._verdicts
        violated = sum(n for name, n in count(Validity.VIOLATED).items() if name[0] != "L")
        return {
            "protocol": self.protocol,
            "static": self.static,
            "rules": self.rules,
            "intruder": self.intruder,
            "log": self.log,
            "seeds": self.seeds,
            "violations": violated + self._broken,
            "liveness_failures": sum(count(Validity.VIOLATED).values()) - violated,
            "outside_envelope": sum(count(Validity.OUTSIDE).values()),
            "inconclusive": sum(count(Validity.INCONCLUSIVE).values()),
            "vacuous": sum(count(Validity.VACUOUS).values()),
            "never_tested": self._never(),
            "uncovered": self.uncovered,
            "coverage": {
                goal: {"seeds": seeds, "first": self._first.get(goal)}
                for goal, seeds in self._reached.items()
            },
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
        if self._reached:
            lines += self._coverage()
        return "\n".join([*lines, f"traces {figures['trace_sha256']}"])

    def _coverage(self) -> list[str]:
        """How much of the catalogue was reached, and what hardly or never."""
        seeds, uncovered = self._reached, self.uncovered
        rarest = sorted((goal for goal in seeds if seeds[goal]), key=seeds.__getitem__)[:RAREST]
        lines = [f"coverage: {len(seeds) - len(uncovered)} of {len(seeds)} goals"]
        if rarest:
            lines[0] += "; rarest: " + ", ".join(f"{goal} {seeds[goal]}" for goal in rarest)
        if uncovered:
            lines.append(f"never reached: {' '.join(uncovered)}; docs/swarm.md says what they are")
        return lines

    def _never(self) -> list[str]:
        return [p for p, n in self._verdicts(Validity.VACUOUS).items() if n == self.seeds]

    def _verdicts(self, validity: Validity) -> dict[str, int]:
        return {name: n for (name, verdict), n in self._counts.items() if verdict == validity}


def _check_numbered(number: tuple[int, int], **options: Any) -> SeedResult:
    """Check a seed; `number` has it, and one frame of how many is taken through its bytes."""
    seed, bytes_every = number
    return check_seed(seed, bytes_every=bytes_every, **options)


def check_seed(
    seed: int,
    *,
    protocol: str,
    static: bool,
    rules: str,
    intruder: bool,
    log: bool = False,
    bytes_every: int = 1,
) -> SeedResult:
    """Run a seed and keep what counts."""
    outcome = run(
        seed,
        protocol,
        static=static,
        rules=rules,
        intruder=intruder,
        log=log,
        bytes_every=bytes_every,
    )
    verdicts = {}
    if outcome.report is not None:
        verdicts_held = zip(outcome.report.verdicts, outcome.report.profile.entries, strict=True)
        verdicts = {
            verdict.property: str(verdict.validity)
            for verdict, entry in verdicts_held
            if entry.standing is not Standing.OPTIONAL
        }
    return SeedResult(seed, outcome.failures, verdicts, outcome.reached, outcome.runner.sha256())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one seed."""

    seed: int
    scenario: str
    runner: ScenarioRunner
    broken: str
    """The invariant that broke while it ran; then there is no report."""
    report: Report | None
    reached: tuple[str, ...]
    """Goals of the catalogue, also where an invariant broke."""
    disagreements: tuple[str, ...] = ()
    """Properties on which the batch and the online checker disagree, a sentence each."""

    @property
    def failures(self) -> tuple[str, ...]:
        """What speaks against the protocol, a sentence each."""
        if self.report is None:
            return (f"an invariant broke: {self.broken}",)
        verdicts_held = zip(self.report.verdicts, self.report.profile.entries, strict=True)
        found = tuple(
            f"{verdict.property} {verdict.validity}: {verdict.reason}"
            for verdict, entry in verdicts_held
            if verdict.validity not in (Validity.OK, Validity.VACUOUS)
            and entry.standing is not Standing.OPTIONAL
        )
        return found + self.disagreements


def run(
    seed: int,
    protocol: str,
    *,
    static: bool = False,
    rules: str = "safe",
    intruder: bool = False,
    log: bool = False,
    online: bool = True,
    bytes_every: int = 1,
) -> Outcome:
    """Run a seed, watch it, and check its trace; `online` says whether by both checkers."""
    text = scenario(seed, protocol, static=static, rules=rules, intruder=intruder, log=log)
    watch, evidence = Watch(), Evidence()

    def both(world: World, node: NodeId, verb: str, what: Any) -> None:
        evidence(world, node, verb, what)
        watch(world, node, verb, what)

    followers: list[OnlineChecker] = []

    def follow(row: Row) -> None:
        if not followers:  # Only now the nodes and the engine are known.
            followers.append(_follower(runner.manifest()))
        followers[0].append(row)

    runner = ScenarioRunner(watch=both, append=follow if online else None)
    runner.bytes_every = bytes_every
    broken, report = "", None
    try:
        for block in parse(text):
            runner.play(block)
        report = check(runner.rows, runner.manifest(text))
    except AssertionError as e:
        broken = str(e) or "unnamed"
    except Exception as e:  # A core that raises anything is broken; the campaign goes on.
        broken = f"{type(e).__name__}: {e}"
    evidence.close(runner.rows)
    goals = catalogue(protocol, static=static, rules=rules, intruder=intruder, log=log)
    disagreements: tuple[str, ...] = ()
    if followers and report is not None:
        disagreements = tuple(disagreed(report, followers[0].verdicts()))
    return Outcome(seed, text, runner, broken, report, reached(evidence, goals), disagreements)


def _follower(manifest: Manifest) -> OnlineChecker:
    """An online checker of all that the run is held to."""
    held = [entry.property for entry in profile_of(manifest).entries]
    return OnlineChecker(manifest.nodes, held, manifest.resilience)


UNDECIDED = (Validity.OUTSIDE, Validity.INCONCLUSIVE)
"""Verdicts of the batch checker that leave open whether a property held. The online checker knows
neither the assumptions of a protocol nor that rows are missing, so it may decide there."""


def disagreed(report: Report, online: Iterable[Verdict]) -> Iterator[str]:
    """Where the two checkers disagree, a sentence for each property."""
    for verdict in online:
        batch = report[verdict.property]
        if batch.validity in UNDECIDED or batch.validity is verdict.validity:
            continue
        yield (
            f"the checkers disagree on {verdict.property}: batch {_said(batch)}, "
            f"online {_said(verdict)}"
        )


def _said(verdict: Verdict) -> str:
    return f"{verdict.validity} ({verdict.reason})" if verdict.reason else str(verdict.validity)
