"""PySyncObj, a Raft in Python: `python -m roundelay.bench.ring.peers.pysyncobj JOB`.

A replicated method is called with the messages, one by one, in the order of Raft's log. One thread
sends and drives the node, without callbacks, which is its fastest way. Entries are sent in batches
at full speed, and at once if latencies are measured, as its documentation advises for either.
"""

import sys
from pathlib import Path
from typing import Any

from pysyncobj import SyncObj, SyncObjConf, replicated

from roundelay.bench.ring.jobs import Job, Task
from roundelay.bench.ring.peers.member import Member
from roundelay.bench.ring.talk import say

WINDOW_BYTES = 4 * 1024 * 1024
"""The most bytes that a sender has submitted and not yet seen delivered."""
WINDOW_MESSAGES = 20_000
"""The most messages of the same kind, well below the limit of PySyncObj's queue."""
NEVER = 1_000_000_000
"""After how many entries and seconds the log is compacted: never in a run, which is short."""
QUIET_S = (10.0, 20.0)
"""Raft's election timeouts in seconds, once there is a leader. With shorter ones a leader that is
busy under full load would be replaced, and messages lost."""


class Log(SyncObj):  # type: ignore[misc]
    """A log to which all nodes append; a `Peer`."""

    def __init__(self, job: Job) -> None:
        self._conf = SyncObjConf(**_settings(job.task), journalFile=_journal(job))
        others = [address for node, address in job.addresses.items() if node != job.node]
        super().__init__(job.addresses[job.node], others, self._conf)
        self._node = job.node
        self._room = min(WINDOW_MESSAGES, max(1, WINDOW_BYTES // job.cell.size))
        self._delivered: list[tuple[str, bytes]] = []

    def formed(self) -> bool:
        if self._getLeader() is None or not self.isReady():
            return False
        # A leader under full load may be silent for long; another election would lose messages.
        self._conf.raftMinTimeout, self._conf.raftMaxTimeout = QUIET_S
        return True

    def send(self, payload: bytes) -> bool:
        if not self._room:
            return False
        self._room -= 1
        self.append(self._node, payload)
        return True

    def deliveries(self, wait_s: float) -> list[tuple[str, bytes]]:
        self.doTick(wait_s)
        delivered, self._delivered = self._delivered, []
        return delivered

    @replicated  # type: ignore[untyped-decorator]
    def append(self, sender: str, payload: bytes) -> None:
        self._delivered.append((sender, payload))
        if sender == self._node:
            self._room += 1


def _settings(task: Task) -> dict[str, Any]:
    return {
        "autoTick": False,
        "commandsQueueSize": 2 * WINDOW_MESSAGES,
        "appendEntriesUseBatch": task == "load",
        "logCompactionMinEntries": NEVER,
        "logCompactionMinTime": NEVER,
    }


def unusual(variant: str) -> dict[str, Any]:
    """The settings that are not PySyncObj's defaults."""
    default = SyncObjConf()
    told = {
        name: value for name, value in _settings("load").items() if value != getattr(default, name)
    }
    return {**told, "raftMinTimeout": QUIET_S[0], "raftMaxTimeout": QUIET_S[1]}


def _journal(job: Job) -> str | None:
    """The file of its journal, if nodes are to have one: it is mapped into memory and written by
    the kernel, and never synced."""
    if job.cell.journal == "none":
        return None
    return str(Path(job.directory) / f"journal-{job.node}")


if __name__ == "__main__":
    try:
        job = Job.from_json(sys.argv[1])
        Member(job, Log(job)).run()
    except Exception as e:
        say(failure=f"{type(e).__name__}: {e}")
        raise
