"""Single runs: starts the processes, lets them do their jobs, verifies what they delivered."""

import dataclasses
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundelay.bench.ring.cluster import Cluster
from roundelay.bench.ring.jobs import KEY_FILE, Cell, Job, Task, Verify
from roundelay.bench.ring.systems import LOGGED, OURS, System
from roundelay.transport.address import free_addresses

NAMES = "abcdefghijklmnopqrstuvwxyz"
START_S = 0.2
"""How many seconds pass between the leader's word and the beginning: every process has read it by
then. If it is too short, some nodes begin late."""
READY_S = 60.0
"""How many seconds the processes have to start and form one view; then the run fails."""
RESULT_S = 60.0
"""How many seconds a run may take beyond the time that its nodes send; then it fails."""
SETTLE_S = 1.0
"""How many seconds an idle group has to become quiet before it is measured."""
BEAT_S = 5.0
"""How often a node reports its progress in a soak, in seconds."""
FOREVER_S = 3600.0
"""How many seconds nodes send while others crash; the run is over long before."""
PACE_PER_S = 100.0
"""Messages per second of each node while others crash and come back."""
WARM_SHARE = 0.2
"""The share of a run that passes before anything is counted. With less, the start of the run lowers
the figures; with more, fewer messages count."""


class OrderError(Exception):
    """Nodes delivered different messages, or different orders. The message tells which nodes."""


@dataclass(frozen=True, slots=True)
class Load:
    """One run at full speed."""

    msgs_per_s: float
    """The rate of deliveries at the slowest node."""
    messages: int
    cpu_s: float
    """CPU time of all nodes together."""
    peak_mb: float
    suspicions: int
    """False suspicions of all nodes: no node fails in these runs, so there should be none."""
    recoveries: int = 0
    """How often a node began to make good for a loss, in engines that stop for that."""
    lost: int = 0
    """Datagrams that nodes could not send or take in."""
    packets: int = 0
    """Packets that were ordered; 0 in peers, which do not tell."""
    tokens: int = 0
    """Frames that passed a token on, of all nodes."""

    @property
    def cpu_us_per_msg(self) -> float:
        return self.cpu_s / self.messages * 1e6


@dataclass(frozen=True, slots=True)
class Recovery:
    """The times of one crash and of one restart."""

    crash_s: float
    """From `kill -9` until the last survivor has the view without the victim."""
    pause_s: float
    """The longest time without a delivery at a survivor, from `kill -9` until each of them has
    delivered in that view."""
    rejoin_s: float
    """From `join` in the restarted process until the last node has the view of all."""
    restart_s: float
    """From the start of the restarted process until the last node has the view of all."""


def names(count: int) -> tuple[str, ...]:
    return tuple(NAMES[:count])


def load(
    system: System,
    cell: Cell,
    seconds: float,
    profile: Path | None = None,
    disk: Path | None = None,
    verify: Verify = "last",
) -> Load:
    """One run at full speed; with `profile`, the first node's profile is written to that file.
    Journals go below `disk`."""
    run = _run(system, "load", cell, seconds, profile=profile, disk=disk, compared=verify)
    return _load(run)


def _load(results: Mapping[str, Mapping[str, Any]]) -> Load:
    return Load(
        msgs_per_s=min(result["msgs_per_s"] for result in results.values()),
        messages=sum(result["sent"] for result in results.values()),
        cpu_s=sum(result["cpu_s"] for result in results.values()),
        peak_mb=max(result["peak_mb"] for result in results.values()),
        suspicions=sum(result.get("suspicions", 0) for result in results.values()),
        recoveries=max(result.get("recoveries", 0) for result in results.values()),
        lost=sum(result.get("lost", 0) for result in results.values()),
        packets=max(result.get("packets", 0) for result in results.values()),
        tokens=sum(result.get("tokens", 0) for result in results.values()),
    )


def latencies(
    system: System, cell: Cell, rate: float, seconds: float, disk: Path | None = None
) -> list[float]:
    """Seconds from submit to delivery, of every message at every node; of a message that is
    appended, until it is known to be committed there."""
    results = _run(system, "pace", cell, seconds, rate=rate, disk=disk)
    return [latency for result in results.values() for latency in result["latencies_s"]]


def reads(cell: Cell, seconds: float, disk: Path | None = None) -> tuple[list[float], float]:
    """Linearizable reads: the time of each if one node reads alone, and how many a second the
    slowest node does if all read at once."""
    results = _run(LOGGED, "reads", cell, seconds, disk=disk)
    times = [time for result in results.values() for time in result["latencies_s"]]
    return times, min(result["reads_per_s"] for result in results.values())


def idle(cell: Cell, seconds: float) -> list[float]:
    """The share of a core that each idle node takes."""
    results = _run(OURS, "idle", cell, seconds, warm_s=SETTLE_S)
    return [result["cpu_share"] for result in results.values()]


def soak(cell: Cell, seconds: float, beat: Callable[[str, dict[str, Any]], None]) -> Load:
    """One long run at full speed; `beat` is called with the reports of the nodes."""
    system = OURS if cell.journal == "none" else LOGGED
    return _load(_run(system, "load", cell, seconds, beat_s=BEAT_S, beat=beat))


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
    disk: Path | None = None,
    compared: Verify = "last",
) -> dict[str, Any]:
    """Run once and return the verified results of all nodes."""
    members = names(cell.nodes)
    senders = members if cell.senders == "all" else members[:1]
    if cell.pattern == "conversation":
        senders = (members[0], members[cell.nodes // 2])
    with Cluster(system.module, disk) as cluster:
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
            verify=compared,
            variant=system.variant,
        )
        if cell.cipher != "none":
            make_key(cluster.directory)
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


def make_key(directory: Path) -> None:
    """Make the key of a sealed group where its nodes look for it."""
    from roundelay.runtime.key_files import write_keys
    from roundelay.sealing.ciphers import KEY_BYTES
    from roundelay.sealing.keys import GroupKey

    key = GroupKey(secrets.token_bytes(KEY_BYTES))
    write_keys(directory / KEY_FILE, (key,), replace=False)


def verify(results: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise OrderError unless all nodes delivered all messages that were sent, in the same
    order."""
    sent = {node: result["sent"] for node, result in results.items() if result["sent"]}
    first, *others = results
    for node, result in results.items():
        counts = {sender: count for sender, count in result["counts"].items() if count}
        if counts != sent:
            raise OrderError(f"node {node} delivered {counts}, but {sent} were sent")
    for node in others:
        if results[node]["digest"] != results[first]["digest"]:
            raise OrderError(f"nodes {first} and {node} delivered in different orders")


def formation(cell: Cell) -> float:
    """Seconds from the last node's `join` until the last node has the view of all. All nodes send
    at a slow rate."""
    with Cluster(OURS.module) as cluster:
        formed = _form(cluster, _staying(cluster, cell))
        cluster.leave()
    return formed.at_s - max(formed.joined.values())


def recovery(cell: Cell, victims: Sequence[int]) -> list[Recovery]:
    """Kill these nodes, given by their place in the ring, one after the other. Each is restarted
    before the next is killed. All nodes send at a slow rate meanwhile."""
    members = names(cell.nodes)
    found = []
    with Cluster(OURS.module) as cluster:
        job = _staying(cluster, cell)
        _form(cluster, job)
        for place in victims:
            victim = members[place % cell.nodes]
            survivors = tuple(node for node in members if node != victim)
            killed = cluster.kill(victim)
            crash = _await_view(cluster, survivors)
            started = time.monotonic()
            cluster.start(dataclasses.replace(job, node=victim))
            joined = cluster.expect("joining", (victim,), READY_S)[victim]
            back = _await_view(cluster, members)
            found.append(
                Recovery(
                    crash.at_s - killed,
                    crash.pause_s(killed),
                    back.at_s - joined,
                    back.at_s - started,
                )
            )
    return found


def _staying(cluster: Cluster, cell: Cell) -> Job:
    """What each node does while views change."""
    members = names(cell.nodes)
    if cell.cipher != "none":
        make_key(cluster.directory)
    return Job(
        "stay",
        "",
        free_addresses(members, OURS.ports),
        members,
        cell,
        seconds=FOREVER_S,
        rate=PACE_PER_S,
        directory=str(cluster.directory),
    )


def _form(cluster: Cluster, job: Job) -> "_Awaited":
    """Start all nodes, and wait until they are in one view."""
    for node in job.senders:
        cluster.start(dataclasses.replace(job, node=node))
    return _await_view(cluster, job.senders)


class _Awaited:
    """A view that all its members have and deliver in."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        """When each node had it."""
        self.joined: dict[str, float] = {}
        """When each node joined that did so meanwhile."""
        self._pauses: list[tuple[float, float]] = []
        """When a delivery came, and how long none had come, at all nodes."""

    @property
    def at_s(self) -> float:
        """When the last node had it."""
        return max(self.at.values())

    def note(self, node: str, words: Mapping[str, Any], wanted: Sequence[str]) -> None:
        self._pauses += ((end, length) for end, length in words["pauses"])
        if words["view"] == wanted:
            self.at[node] = words["at_s"]
        else:
            self.at.pop(node, None)

    def pause_s(self, since: float) -> float:
        """The longest time without a delivery at one of the nodes that was not over by then."""
        return max(length for end, length in self._pauses if end > since)


def _await_view(cluster: Cluster, members: Sequence[str]) -> _Awaited:
    """Wait until all these nodes have the view of them, and have delivered something in it."""
    awaited = _Awaited()
    while len(awaited.at) < len(members):
        node, words = cluster.hear(READY_S)
        if "joining" in words:
            awaited.joined[node] = words["joining"]
        elif "view" in words and node in members:
            awaited.note(node, words, list(members))
    return awaited
