"""Single runs: start the processes, let them work, verify what they did."""

import dataclasses
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundelay.bench.ring.cluster import Cluster
from roundelay.bench.ring.jobs import Cell, Job, Task
from roundelay.bench.ring.systems import OURS, System
from roundelay.transport.address import free_addresses

NAMES = "abcdefghijklmnopqrstuvwxyz"
START_S = 0.2
"""From the word to the beginning: all processes have heard it by then."""
READY_S = 60.0
RESULT_S = 60.0
"""What a run may take beyond the time that it sends."""
SETTLE_S = 1.0
"""Before an idle group is looked at."""
BEAT_S = 5.0
FOREVER_S = 3600.0
PACE_PER_S = 100.0
"""Messages of each node while others crash and come back."""
WARM_SHARE = 0.2
"""Of a run that passes before anything is counted."""


class OrderError(Exception):
    """Nodes delivered different messages, or in different orders. The message tells which."""


@dataclass(frozen=True, slots=True)
class Load:
    """One run at full speed."""

    msgs_per_s: float
    """Delivered at the slowest node."""
    messages: int
    cpu_s: float
    """Of all nodes together."""
    peak_mb: float
    suspicions: int
    """Of all nodes: nobody fails in these runs, so there should be none."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """One crash, and one return."""

    crash_s: float
    """From `kill -9` until the last survivor has the view without the victim."""
    rejoin_s: float
    """From `join` in the restarted process until the last node has the view of all."""
    restart_s: float
    """The same, from the start of the process."""


def names(count: int) -> tuple[str, ...]:
    return tuple(NAMES[:count])


def load(system: System, cell: Cell, seconds: float, profile: Path | None = None) -> Load:
    """One run at full speed; with `profile`, the first node's profile is written to that file."""
    return _load(_run(system, "load", cell, seconds, profile=profile))


def _load(results: Mapping[str, Mapping[str, Any]]) -> Load:
    return Load(
        msgs_per_s=min(result["msgs_per_s"] for result in results.values()),
        messages=sum(result["sent"] for result in results.values()),
        cpu_s=sum(result["cpu_s"] for result in results.values()),
        peak_mb=max(result["peak_mb"] for result in results.values()),
        suspicions=sum(result.get("suspicions", 0) for result in results.values()),
    )


def latencies(system: System, cell: Cell, rate: float, seconds: float) -> list[float]:
    """Seconds from handing over to delivery, of every message at every node."""
    results = _run(system, "pace", cell, seconds, rate=rate)
    return [latency for result in results.values() for latency in result["latencies_s"]]


def idle(cell: Cell, seconds: float) -> list[float]:
    """Each node's share of a processor, with nothing to do."""
    results = _run(OURS, "idle", cell, seconds, warm_s=SETTLE_S)
    return [result["cpu_share"] for result in results.values()]


def soak(cell: Cell, seconds: float, beat: Callable[[str, dict[str, Any]], None]) -> Load:
    """One long run at full speed; nodes tell `beat` how they are doing, a few times a minute."""
    return _load(_run(OURS, "load", cell, seconds, beat_s=BEAT_S, beat=beat))


def _run(
    system: System,
    task: Task,
    cell: Cell,
    seconds: float,
    *,
    rate: float = 0.0,
    warm_s: float | None = None,
    profile: Path | None = None,
    beat_s: float = 0.0,
    beat: Callable[[str, dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """The results of all nodes, verified."""
    members = names(cell.nodes)
    senders = members if cell.senders == "all" else members[:1]
    with Cluster(system.module) as cluster:
        job = Job(
            task,
            "",
            free_addresses(members, system.ports),
            senders,
            cell,
            seconds,
            warm_s=seconds * WARM_SHARE if warm_s is None else warm_s,
            rate=rate,
            directory=str(cluster.directory),
            beat_s=beat_s,
        )
        for node in members:
            profiled = profile is not None and node == members[0]
            cluster.start(dataclasses.replace(job, node=node, profile=profiled))
        cluster.expect("ready", members, READY_S)
        cluster.tell(start=time.monotonic() + START_S)
        results: dict[str, Any] = {}
        while len(results) < len(members):
            node, words = cluster.hear(seconds + RESULT_S)
            if beat is not None and "beat" in words:
                beat(node, words["beat"])
            elif "result" in words:
                results[node] = words["result"]
        verify(results)
        cluster.leave()
        if profile is not None:
            shutil.copy(cluster.directory / f"{members[0]}.prof", profile)
    return results


def verify(results: Mapping[str, Mapping[str, Any]]) -> None:
    """All nodes delivered the same, in the same order, and all that was sent; or OrderError."""
    sent = {node: result["sent"] for node, result in results.items() if result["sent"]}
    first, *others = results
    for node, result in results.items():
        counts = {sender: count for sender, count in result["counts"].items() if count}
        if counts != sent:
            raise OrderError(f"node {node} delivered {counts}, but {sent} were sent")
    for node in others:
        if results[node]["digest"] != results[first]["digest"]:
            raise OrderError(f"nodes {first} and {node} delivered in different orders")


def recovery(cell: Cell, victims: Sequence[int]) -> list[Recovery]:
    """Kill these nodes, by their place in the ring, one after the other; each comes back before
    the next. All send at a slow pace meanwhile."""
    members = names(cell.nodes)
    found = []
    with Cluster(OURS.module) as cluster:
        job = Job(
            "stay",
            "",
            free_addresses(members, OURS.ports),
            members,
            cell,
            seconds=FOREVER_S,
            rate=PACE_PER_S,
            directory=str(cluster.directory),
        )
        for node in members:
            cluster.start(dataclasses.replace(job, node=node))
        _await_view(cluster, members, members)
        for place in victims:
            victim = members[place % cell.nodes]
            survivors = tuple(node for node in members if node != victim)
            killed = cluster.kill(victim)
            crash = _await_view(cluster, survivors, survivors) - killed
            started = time.monotonic()
            cluster.start(dataclasses.replace(job, node=victim))
            joined = cluster.expect("joining", (victim,), READY_S)[victim]
            back = _await_view(cluster, members, members)
            found.append(Recovery(crash, back - joined, back - started))
    return found


def _await_view(cluster: Cluster, members: Sequence[str], nodes: Sequence[str]) -> float:
    """Wait until all these nodes have the view with these members; returns when the last had."""
    wanted = list(members)
    at: dict[str, float] = {}
    while len(at) < len(nodes):
        node, words = cluster.hear(READY_S)
        if "view" in words and node in nodes:
            if words["view"] == wanted:
                at[node] = words["at_s"]
            else:
                at.pop(node, None)
    return max(at.values())
