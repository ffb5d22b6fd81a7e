"""Starts a group of either system, gives it tasks, and computes the figures."""

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from roundelay.bench.ring.jobs import Cell
from roundelay.bench.ring.runs import latencies
from roundelay.bench.ring.systems import FLOOR
from roundelay.bench.structures.talk import WARM_SHARE, Job, Task
from roundelay.transport.address import free_addresses

SYSTEMS = {
    "roundelay": "roundelay.bench.structures.member",
    "pysyncobj": "roundelay.bench.structures.peer",
}
OURS, PEER = SYSTEMS
HOPS_PER_S = 2000.0
"""Datagrams a second whose time is taken, about as many as there are writes one at a time. Fewer:
processes have to wake up, which takes longer; more: they wait for each other."""
ANSWER_S = 60.0
"""How many seconds a process has for an answer beyond those of its task."""


class MemberError(Exception):
    """A process of the measurement failed, or did not answer."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over rounds, of one system."""

    map_writes_per_s: float
    """Of all nodes together, with many outstanding at each."""
    counter_writes_per_s: float
    map_p50_ms: float
    """From the call to its reply, of one write at a time, at each node in turn: the median node,
    for a leader knows of a commit before others do."""
    map_p99_ms: float
    counter_p50_ms: float
    reads_per_cpu_s: float
    """Local reads, which may be old, in a second of processor time: nothing else limits them."""
    cpu_us_per_write: float
    """CPU time of all nodes, of writes to the map."""
    alone_cpu_us: float
    """The same of one write at a time. Its latency is made of this and of the hops: on few cores
    nodes wait for each other."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ours next to the peer's, within rounds."""

    systems: Mapping[str, Figures]
    writes_ratio: float
    """Our writes per second to a map, divided by theirs."""
    counter_ratio: float
    latency_ratio: float
    """Our median latency of a write to a map, divided by theirs."""
    hop_p50_ms: float
    """A bare UDP hop between processes. No write is faster than two: to another node, and back."""


def compare(
    nodes: int,
    outstanding: int,
    seconds: float,
    rounds: int,
    fsync: str,
    report: Callable[[int, int], None],
) -> Comparison:
    """Measure both systems in turn, round after round."""
    found: dict[str, list[Figures]] = {system: [] for system in SYSTEMS}
    hops: list[float] = []
    for n in range(rounds):
        hops.append(hop_ms(nodes, seconds))
        for i, system in enumerate(SYSTEMS):
            report(2 * n + i, 2 * rounds)
            found[system].append(measure(system, nodes, outstanding, seconds, fsync))
    pairs = list(zip(found[OURS], found[PEER], strict=True))
    return Comparison(
        systems={system: _medians(each) for system, each in found.items()},
        writes_ratio=median(a.map_writes_per_s / b.map_writes_per_s for a, b in pairs),
        counter_ratio=median(a.counter_writes_per_s / b.counter_writes_per_s for a, b in pairs),
        latency_ratio=median(a.map_p50_ms / b.map_p50_ms for a, b in pairs),
        hop_p50_ms=median(hops),
    )


def hop_ms(nodes: int, seconds: float) -> float:
    """Half of the bare datagrams between processes that are as busy as with one write at a time
    arrive within this time."""
    cell = Cell(nodes=max(2, nodes), senders="one")
    return median(latencies(FLOOR, cell, HOPS_PER_S, seconds)) * 1e3


def measure(system: str, nodes: int, outstanding: int, seconds: float, fsync: str) -> Figures:
    """One group of one system."""
    with _group(system, nodes, fsync) as members:
        all_write = [outstanding] * nodes
        many = _perform(members, "map", seconds, all_write)
        counted = _perform(members, "counter", seconds, all_write)
        alone, alone_cpu_s = _one_at_a_time(members, "map", seconds)
        counter_times, _ = _one_at_a_time(members, "counter", seconds)
        reads = _perform(members[:1], "reads", seconds / 2, [0])[0]
    window_s = (1 - WARM_SHARE) * seconds
    writes, counts = (sum(r["writes"] for r in results) for results in (many, counted))
    if not (writes and counts and all(alone) and all(counter_times)):
        raise MemberError(f"nodes of {system} wrote nothing")
    return Figures(
        map_writes_per_s=writes / window_s,
        counter_writes_per_s=counts / window_s,
        map_p50_ms=median(map(median, alone)) * 1e3,
        map_p99_ms=median(sorted(times)[len(times) * 99 // 100] for times in alone) * 1e3,
        counter_p50_ms=median(map(median, counter_times)) * 1e3,
        reads_per_cpu_s=reads["reads_per_cpu_s"],
        cpu_us_per_write=(1 - WARM_SHARE) * 1e6 * sum(r["cpu_s"] for r in many) / writes,
        alone_cpu_us=(1 - WARM_SHARE) * 1e6 * alone_cpu_s / sum(map(len, alone)),
    )


def _medians(found: Sequence[Figures]) -> Figures:
    each = [asdict(figures) for figures in found]
    return Figures(**{name: median(one[name] for one in each) for name in each[0]})


class _Member:
    """A process, and what is said between us."""

    def __init__(self, system: str, job: Job) -> None:
        self._name = f"node {job.node} of {system}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", SYSTEMS[system], job.to_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._said: list[str] = []
        assert self._process.stderr is not None
        self._reader = threading.Thread(
            target=self._said.extend, args=(self._process.stderr,), daemon=True
        )
        self._reader.start()

    def tell(self, task: Task) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `answer` says why.
            self._process.stdin.write(json.dumps(asdict(task)) + "\n")
            self._process.stdin.flush()

    def answer(self, limit_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        late = threading.Timer(limit_s, self._process.kill)
        late.start()
        try:
            line = self._process.stdout.readline()
        finally:
            late.cancel()
        if not line:
            self.end()
            said = self._said[-1].strip() if self._said else "it said nothing"
            raise MemberError(f"{self._name} gave no answer within {limit_s:.0f} s: {said}")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@contextlib.contextmanager
def _group(system: str, nodes: int, fsync: str) -> Iterator[list[_Member]]:
    """Processes whose group can commit."""
    addresses = free_addresses("abcdefgh"[:nodes])
    members: list[_Member] = []
    with tempfile.TemporaryDirectory(prefix="roundelay-structures-") as directory:
        try:
            for node in addresses:
                job = Job(node, dict(addresses), str(Path(directory) / node), fsync)
                members.append(_Member(system, job))
            for member in members:
                member.answer(ANSWER_S)
            yield members
        finally:
            for member in members:
                member.end()


def _one_at_a_time(
    members: Sequence[_Member], do: str, seconds: float
) -> tuple[list[list[float]], float]:
    """How long writes took, of each member while the others write nothing; and the CPU time that
    all members took for them."""
    times, cpu_s = [], 0.0
    for n in range(len(members)):
        alone = [int(n == other) for other in range(len(members))]
        results = _perform(members, do, seconds / len(members), alone)
        times.append(results[n]["times_s"])
        cpu_s += sum(result["cpu_s"] for result in results)
    return times, cpu_s


def _perform(
    members: Sequence[_Member], do: str, seconds: float, outstanding: Sequence[int]
) -> list[dict[str, Any]]:
    for member, count in zip(members, outstanding, strict=True):
        member.tell(Task(do, seconds, count))  # type: ignore[arg-type]
    return [member.answer(ANSWER_S + seconds) for member in members]
