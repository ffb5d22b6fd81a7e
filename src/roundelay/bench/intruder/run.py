"""Sessions without and with the intruder, in turn, and what comes of them."""

import contextlib
import dataclasses
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from roundelay.bench.intruder.attack import Raid
from roundelay.bench.intruder.member import capture_file
from roundelay.bench.ring import runs
from roundelay.bench.ring.cluster import Cluster, SplitError
from roundelay.bench.ring.figures import Report
from roundelay.bench.ring.jobs import KEY_FILE, Cell, Job
from roundelay.bench.ring.member import GROUP
from roundelay.transport.address import free_addresses

NODES = ("a", "b", "c")
WARM_S = 1.0
"""How long a session runs before the intruder begins and anything is counted, in seconds."""
EARLIER_S = 1.0
"""How long the earlier session lasts, whose capture is repeated in all others, in seconds."""
GROWTH_MAX = 1.2
"""How many times its memory before the attack a node may need after it. The caches and buffers of a
node that is not attacked grow too."""
MEMBER = "roundelay.bench.intruder.member"
INTRUDER = "roundelay.bench.intruder.attack"
DRAIN = "roundelay.bench.intruder.drain"

Kind = Literal["quiet", "attacked", "drained"]
"""Nobody attacks; the intruder attacks the nodes; its flood goes to sockets whose reader drops."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session."""

    kind: Kind
    msgs_per_s: float
    """At the slowest node; 0 if the group fell apart."""
    views_changed: int
    """Views after the one of all nodes, the most at one node."""
    foreign: int
    """Messages delivered, at all nodes together, that nobody sent at their place."""
    before_mb: float
    after_mb: float
    """Memory of the largest node, before and after the time that counts."""
    cpu_us_per_msg: float
    """CPU time of all nodes together."""
    drops: Mapping[str, int]
    """Datagrams that nodes refused, by reason, all nodes together."""
    sent: Mapping[str, int]
    """What the intruder sent, by kind."""
    intruder_cpu: float
    """The share of a core that the intruder took."""
    drain_cpu: float
    """The share of a core that the reader of the flood took, where the flood was drained."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """All rounds."""

    sessions: Sequence[Session]
    seconds: float

    @property
    def views_changed(self) -> int:
        return sum(s.views_changed for s in self.sessions if s.kind == "attacked")

    @property
    def foreign_delivered(self) -> int:
        return sum(s.foreign for s in self.sessions)

    def of(self, kind: Kind) -> list[Session]:
        return [s for s in self.sessions if s.kind == kind]

    def ratio(self, kind: Kind) -> float | None:
        """The rate of sessions of that kind, divided by that of quiet ones of the same round."""
        pairs = list(zip(self.of("quiet"), self.of(kind), strict=False))
        ratios = [b.msgs_per_s / a.msgs_per_s for a, b in pairs if a.msgs_per_s]
        return median(ratios) if ratios else None

    def pairs(self) -> list[tuple[Session, Session]]:
        """The quiet and the attacked session of each round in which the group held together."""
        both = zip(self.of("quiet"), self.of("attacked"), strict=False)
        return [(a, b) for a, b in both if a.msgs_per_s and b.msgs_per_s]

    @property
    def attack_cores(self) -> float | None:
        """How many cores all nodes together spend on the attack: on a machine with less to spare,
        the group slows down."""
        spent = [
            (b.cpu_us_per_msg - a.cpu_us_per_msg) * b.msgs_per_s / 1e6 for a, b in self.pairs()
        ]
        return median(spent) if spent else None

    @property
    def intruder_cores(self) -> float:
        return median(s.intruder_cpu for s in self.of("attacked"))

    @property
    def throughput_ratio(self) -> float:
        return self.ratio("attacked") or 0.0

    def growth(self, kind: Kind) -> float:
        """How many times its memory before a node needs after a session of that kind, at most."""
        return max((s.after_mb / s.before_mb for s in self.of(kind) if s.before_mb), default=0.0)

    @property
    def flat(self) -> bool:
        return self.growth("attacked") <= GROWTH_MAX * max(1.0, self.growth("quiet"))

    @property
    def sound(self) -> bool:
        """Whether the intruder achieved nothing but to cost time."""
        return not self.views_changed and not self.foreign_delivered and self.flat


def measure(
    cell: Cell, seconds: float, flood_per_s: int, rounds: int, report: Report, *, floor: bool
) -> Verdict:
    """Alternate sessions; with `floor`, the flood is drained in a third session of each round."""
    kinds: tuple[Kind, ...] = ("quiet", "attacked", "drained") if floor else ("quiet", "attacked")
    sessions = []
    with tempfile.TemporaryDirectory(prefix="roundelay-bench-") as name:
        place = Path(name)
        runs.make_key(place)
        session("quiet", cell, EARLIER_S, 0, place, keep=True)
        for i in range(rounds):
            for j, kind in enumerate(kinds if i % 2 == 0 else tuple(reversed(kinds))):
                sessions.append(session(kind, cell, seconds, flood_per_s, place))
                report(i * len(kinds) + j + 1, rounds * len(kinds))
    return Verdict(sessions, seconds)


def session(
    kind: Kind, cell: Cell, seconds: float, flood_per_s: int, place: Path, *, keep: bool = False
) -> Session:
    """One session of the group whose key is in that place, and with it the captures of the earlier
    session; with `keep`, this is the earlier session."""
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(MEMBER))
        shutil.copy(place / KEY_FILE, cluster.directory / KEY_FILE)
        job = Job(
            "load",
            "",
            free_addresses(NODES),
            NODES,
            cell,
            WARM_S + seconds,
            warm_s=WARM_S,
            directory=str(cluster.directory),
        )
        for node in NODES:
            cluster.start(dataclasses.replace(job, node=node))
        cluster.expect("ready", NODES, runs.READY_S)
        others = _others(stack, kind, job, seconds, flood_per_s, place, cluster.directory)
        start = time.monotonic() + runs.START_S
        cluster.tell(start=start)
        for other in others:
            other.tell(attack=start + WARM_S)
        try:
            results = cluster.expect("result", NODES, seconds + runs.RESULT_S)
        except SplitError:
            if keep:
                raise  # Without its capture there is nothing to repeat.
            return Session(kind, 0.0, 1, 0, 0.0, 0.0, 0.0, {}, {}, 0.0, 0.0)
        runs.verify(results)
        told = [_last_word(other, seconds) for other in others]
        cluster.leave()
        if keep:
            for node in NODES:
                shutil.copy(capture_file(cluster.directory, node), capture_file(place, node))
    return _summed_up(kind, results, told, seconds)


def _others(
    stack: contextlib.ExitStack,
    kind: Kind,
    job: Job,
    seconds: float,
    flood_per_s: int,
    place: Path,
    directory: Path,
) -> list[Cluster]:
    """Start the intruder of a session, and a reader for its flood if nodes do not get it."""
    if kind == "quiet":
        return []
    targets = job.addresses if kind == "attacked" else free_addresses(NODES)
    raid = Raid(
        tuple(targets.values()),
        tuple(str(capture_file(directory, node)) for node in NODES),
        tuple(str(capture_file(place, node)) for node in NODES),
        seconds,
        flood_per_s,
        GROUP,
    )
    started = []
    for module in (INTRUDER,) if kind == "attacked" else (INTRUDER, DRAIN):
        other = stack.enter_context(Cluster(module))
        other.start(raid)
        other.expect("ready", (raid.node,), runs.READY_S)
        started.append(other)
    return started


def _last_word(other: Cluster, seconds: float) -> dict[str, Any]:
    """What the intruder or the reader of its flood tells at the end."""
    name = Raid(()).node
    if other.module == DRAIN:
        other.tell(leave=True)
    result: dict[str, Any] = other.expect("result", (name,), seconds + runs.RESULT_S)[name]
    other.leave()
    return result


def _summed_up(
    kind: Kind, results: Mapping[str, Any], told: Sequence[Mapping[str, Any]], seconds: float
) -> Session:
    drops: Counter[str] = Counter()
    for result in results.values():
        drops.update(result["drops"])
    shares = [other["cpu_s"] / seconds for other in told]
    return Session(
        kind,
        min(result["msgs_per_s"] for result in results.values()),
        max(result["views_changed"] for result in results.values()),
        sum(result["foreign"] for result in results.values()),
        max(result["before_mb"] for result in results.values()),
        max(result["after_mb"] for result in results.values()),
        1e6
        * sum(result["cpu_s"] for result in results.values())
        / sum(result["sent"] for result in results.values()),
        {reason: count for reason, count in sorted(drops.items()) if count},
        told[0]["sent"] if told else {},
        shares[0] if shares else 0.0,
        shares[1] if len(shares) > 1 else 0.0,
    )
