"""How fast a node with an empty disk gets the log from the others, and what that costs the group.

Two nodes fill the log; the third one, which was there when the log began, is killed and its journal
removed. It comes back while the others do nothing, and its time is taken. Then the others append
at full speed, once with all three caught up, and once while the third one, killed and emptied
again, catches up.
"""

import dataclasses
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundelay.bench.ring.cluster import Cluster
from roundelay.bench.ring.jobs import Cell, Job
from roundelay.bench.ring.runs import READY_S, START_S, names
from roundelay.bench.ring.systems import LOGGED
from roundelay.transport.address import free_addresses

STEPS = 4
"""After each of these the caller is told: the log is filled; the node caught up; the rate of all is
known; the node caught up under load."""
LIMIT_S = 180.0
"""How many seconds each step may take; then the run fails."""
ENDLESS = 1 << 60
"""Bytes to append that nobody waits for."""


@dataclass(frozen=True, slots=True)
class Catchup:
    """One node that caught up twice."""

    mb: float
    """Bytes of messages that the log had at first, in MB of a million bytes."""
    idle_s: float
    """From `join` until it had caught up, while the others did nothing."""
    idle_mb_per_s: float
    loaded_mb_per_s: float
    """How fast its log grew while the others appended at full speed."""
    loaded_s: float
    """How long it took, or had at most, while the others appended at full speed."""
    loaded_caught: bool
    """Whether it caught up in that time."""
    full_msgs_per_s: float
    """What was committed at the other nodes with all three caught up."""
    during_msgs_per_s: float
    """The same while the third one caught up."""

    @property
    def ratio(self) -> float:
        """The share of its rate that the group keeps while a node catches up."""
        return self.during_msgs_per_s / self.full_msgs_per_s if self.full_msgs_per_s else 0.0


class _Watch:
    """What nodes have told of their logs: pairs of a time and a length."""

    def __init__(self) -> None:
        self.lengths: dict[str, list[tuple[float, int]]] = {}
        self.commits: dict[str, list[tuple[float, int]]] = {}

    def note(self, node: str, beat: Mapping[str, Any]) -> None:
        self.lengths.setdefault(node, []).append((beat["at_s"], beat["length"]))
        self.commits.setdefault(node, []).append((beat["at_s"], beat["committed"]))


def per_s(points: list[tuple[float, int]], since: float, until: float) -> float:
    """How fast a length grew between two times, from the first to the last point there."""
    inside = [(at, length) for at, length in points if since <= at <= until]
    if len(inside) < 2:
        return 0.0
    (start, low), (end, high) = inside[0], inside[-1]
    return (high - low) / (end - start)


def measure(
    cell: Cell,
    fill_bytes: int,
    seconds: float,
    loaded_s: float,
    disk: Path | None,
    report: Callable[[int, int], None],
) -> Catchup:
    """Let the third of three nodes catch up with a log of so many bytes. The rate of all three is
    taken for `seconds`; the node has `loaded_s` while the others append at full speed."""
    members = names(3)
    *others, late = members
    watch = _Watch()
    with Cluster(LOGGED.module, disk) as cluster:
        job = Job("fill", "", free_addresses(members), (), cell, directory=str(cluster.directory))

        def hear(word: str, node: str) -> Any:
            limit = time.monotonic() + LIMIT_S
            while time.monotonic() < limit:
                name, words = cluster.hear(LIMIT_S)
                if "beat" in words:
                    watch.note(name, words["beat"])
                if word in words and name == node:
                    return words[word]
            raise RuntimeError(f"{node} did not get as far as {word} in {LIMIT_S:.0f} s")

        def rest(seconds: float, word: str = "") -> Any:
            """Listen for so long, or until the late node says this word."""
            until = time.monotonic() + seconds
            while (left := until - time.monotonic()) > 0:
                name, words = cluster.hear_within(left)
                if "beat" in words:
                    watch.note(name, words["beat"])
                if word and word in words and name == late:
                    return words[word]
            return None

        def come_back() -> None:
            """The late node begins anew with an empty disk."""
            cluster.kill(late)
            shutil.rmtree(cluster.directory / f"journal-{late}")
            cluster.start(dataclasses.replace(job, node=late, task="join"))

        for node in members:
            cluster.start(dataclasses.replace(job, node=node))
        cluster.expect("ready", members, READY_S)
        cluster.tell(start=time.monotonic() + START_S)
        cluster.tell_one(others[0], do=fill_bytes)
        filled = hear("filled", others[0])
        report(1, STEPS)

        come_back()
        idle = hear("caught", late)
        report(2, STEPS)

        for node in others:
            cluster.tell_one(node, do=ENDLESS)
        rest(seconds)
        full = (time.monotonic(), rest(seconds), time.monotonic())
        report(3, STEPS)

        come_back()
        hear("beat", late)
        since = time.monotonic()
        caught = rest(loaded_s, "caught")
        until = time.monotonic()
        for node in others:
            cluster.tell_one(node, do="stop")
        if caught is None:
            hear("caught", late)
        cluster.tell(do="end")
        cluster.expect("result", members, READY_S)
        cluster.leave()
        report(4, STEPS)
    size = cell.size
    mb = filled * size / 1e6
    return Catchup(
        mb=mb,
        idle_s=idle["seconds"],
        idle_mb_per_s=mb / idle["seconds"],
        loaded_mb_per_s=per_s(watch.lengths[late], since, until) * size / 1e6,
        loaded_s=until - since,
        loaded_caught=caught is not None,
        full_msgs_per_s=min(per_s(watch.commits[node], full[0], full[2]) for node in others),
        during_msgs_per_s=min(per_s(watch.commits[node], since, until) for node in others),
    )
