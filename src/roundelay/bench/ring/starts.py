"""How long a group takes to come back after `kill -9` of all its nodes, with a short log and with a
long one.

The nodes append until the log has its length, and are killed at once and started again. What the
length of the log costs shows in the difference: a start reads the last two files of the journal,
and of the others how they begin.
"""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from roundelay.bench.ring.cluster import Cluster
from roundelay.bench.ring.jobs import Cell, Job
from roundelay.bench.ring.runs import READY_S, START_S, names
from roundelay.bench.ring.systems import LOGGED
from roundelay.transport.address import free_addresses

STEPS = 2
"""How often `measure` reports."""
FILLED_S = 600.0
"""How many seconds the log may take to get its length; then the run fails."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start of all nodes."""

    mb: float
    """Bytes of messages in the log, in MB of a million bytes."""
    killed_s: float
    """From the kill until the log was open at all nodes and they had all of it, with the start of
    the processes."""
    joined_s: float
    """The same from `join` on, at the slowest node."""


def measure(
    cell: Cell, fill_bytes: int, disk: Path | None, report: Callable[[int, int], None]
) -> list[Start]:
    """Kill and start all nodes with a log of a message, and then with one of so many bytes."""
    members = names(cell.nodes)
    found = []
    with Cluster(LOGGED.module, disk) as cluster:
        job = Job("fill", "", free_addresses(members), (), cell, directory=str(cluster.directory))
        for node in members:
            cluster.start(dataclasses.replace(job, node=node))
        cluster.expect("ready", members, READY_S)
        cluster.tell(start=time.monotonic() + START_S)
        for done, size in enumerate((cell.size, fill_bytes), 1):
            cluster.tell_one(members[0], do=size)
            entries = cluster.expect("filled", members[:1], FILLED_S)[members[0]]
            killed = cluster.kill(*members)
            for node in members:
                cluster.start(dataclasses.replace(job, node=node, task="join"))
            caught = cluster.expect("caught", members, READY_S)
            found.append(
                Start(
                    mb=entries * cell.size / 1e6,
                    killed_s=time.monotonic() - killed,
                    joined_s=max(told["seconds"] for told in caught.values()),
                )
            )
            report(done, STEPS)
            if done == 1:  # Those that joined do nothing else: begin anew, to append more.
                cluster.kill(*members)
                for node in members:
                    cluster.start(dataclasses.replace(job, node=node))
                cluster.expect("ready", members, READY_S)
                cluster.tell(start=time.monotonic() + START_S)
        cluster.tell(do="end")
        cluster.expect("result", members, READY_S)
        cluster.leave()
    return found
