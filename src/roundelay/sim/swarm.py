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
from random import Random

from roundelay.check import Report, Standing, Validity, check
from roundelay.sim.scenario import parse
from roundelay.sim.story import Story
from roundelay.sim.units import show_ns
from roundelay.sim.watch import Watch

MS = 1_000_000

BOUND_MS = 8_000
"""How long after the faults everything must have come about. The longest pause before a merge is
3 s; forming a ring takes one consensus time for every node given up, and some tries may fail."""


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


def scenario(seed: int, protocol: str, *, static: bool = False) -> str:
    """The scenario of a seed."""
    random = Random(f"roundelay/{seed}/swarm/{protocol}")
    nodes = [chr(ord("a") + i) for i in range(random.randint(1 if not static else 2, 6))]
    length_ms = random.randint(300, 2500)
    lines = [
        f"seed {seed}",
        f"engine {protocol}{' static' if static else ''}",
        f"group packet_bytes={random.choice((100, 400, 1200, 1200))}",
        _network(random),
        f"nodes {' '.join(nodes)}",
        *_rates(random),
        f"load messages={random.randint(1, 150)} rate={random.randint(5, 300)}/s"
        f" size={random.choice((4, 40, 300, 2000))} safe={random.choice((0, 20, 50, 100))}%",
    ]
    if random.random() < 0.3:
        lines.append(
            f"load messages={random.randint(1, 6)} rate={random.randint(1, 10)}/s size=9000"
        )
    lines += [] if static else _events(random, nodes, length_ms)
    # The last messages come after the faults: they are owed to everybody who is left.
    last = f"load messages={random.randint(1, 12)} rate={random.randint(5, 100)}/s safe=50%"
    lines += [f"run {length_ms}ms", "heal", last, f"end after={BOUND_MS}ms"]
    return "\n".join(lines) + "\n----\n"


def _network(random: Random) -> str:
    kind = random.choice(("lan", "lan", "bus", "switched", "wan"))
    jitter = random.choice(("0us", "20us", "300us"))
    match kind:
        case "bus":
            return f"network bus rate=100Mbit jitter={jitter}"
        case "switched":
            return f"network switched jitter={jitter}"
        case "wan":
            return f"network wan latency={random.randint(1, 4)}ms jitter={jitter}"
        case _:
            return f"network lan latency={random.randint(20, 500)}us jitter={jitter}"


def _rates(random: Random) -> list[str]:
    """Some of the things that can happen to frames, each at a rate of its own."""
    rates = {
        "loss": random.choice((0.5, 2, 10, 20)),
        "duplicate": random.choice((1, 5, 15)),
        "reorder": random.choice((1, 5, 15)),
        "spike": random.choice((0.2, 1)),
        "corrupt": random.choice((0.5, 2)),
    }
    chosen = [f"{name}={rate}%" for name, rate in rates.items() if random.random() < 0.4]
    return ["faults " + " ".join(chosen)] if chosen else []


def _events(random: Random, nodes: list[str], length_ms: int) -> list[str]:
    """What is done to nodes and links, and when."""
    classes = [kind for kind in _KINDS if random.random() < 0.45]
    if not classes or len(nodes) == 1:
        classes = ["crash"] if len(nodes) == 1 else classes
    if not classes:
        return []
    events: list[tuple[int, str]] = []
    for _ in range(random.randint(1, 8)):
        at = random.randint(0, length_ms) * MS
        later = at + random.choice((1, 5, 30, 120, 400, 1000)) * MS
        _KINDS[random.choice(classes)](random, nodes, at, later, events)
    end = length_ms * MS
    return [f"at {show_ns(at)} {what}" for at, what in sorted(events) if 0 < at <= end]


Events = list[tuple[int, str]]


def _crash(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    node = random.choice(nodes)
    after = random.choice(("", "", f" after={random.randint(1, 12)}"))
    storage = random.choice(("kept", "kept", "kept", "lost", "torn"))
    events.append((at, f"crash {node}{after}"))
    if random.random() < 0.8:
        events.append((later, f"restart {node} storage={storage}"))


def _partition(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    if len(nodes) < 2:
        return
    shuffled = random.sample(nodes, len(nodes))
    cut = random.randint(1, len(nodes) - 1)
    sides = [shuffled[:cut], shuffled[cut:]]
    events.append((at, "partition " + " ".join(",".join(sorted(side)) for side in sides)))
    events.append((later, "merge"))


def _one_way(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    if len(nodes) < 2:
        return
    links = [random.sample(nodes, 2) for _ in range(random.randint(1, 3))]
    events.append((at, "cut " + " ".join(f"{a}>{b}" for a, b in links)))
    events.append((later, "merge"))


def _pause(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    node = random.choice(nodes)
    events.append((at, f"pause {node}"))
    events.append((later, f"resume {node}"))


def _slow(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    node = random.choice(nodes)
    events.append((at, f"slow {node} {random.choice((1, 3, 10))}ms"))
    events.append((later, f"slow {node} 0ms"))


def _drift(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    events.append((at, f"drift {random.choice(nodes)} {random.choice((0.8, 0.95, 1.05, 1.3))}"))


_KINDS = {
    "crash": _crash,
    "partition": _partition,
    "one-way": _one_way,
    "pause": _pause,
    "slow": _slow,
    "drift": _drift,
}
