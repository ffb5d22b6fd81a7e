"""The process of one node under attack: `python -m roundelay.bench.intruder.member JOB`."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roundelay import Group, View
from roundelay.bench.intruder.capture import tapped
from roundelay.bench.ring.jobs import Job
from roundelay.bench.ring.member import Member, main, run
from roundelay.bench.ring.talk import Orders
from roundelay.bench.ring.workload import END, POOL, Ledger, pool
from roundelay.runtime import port

BATCH_MAX = 64 * POOL
"""Messages of a batch that are compared at once."""


def capture_file(directory: Path, node: str) -> Path:
    """Where the capture of this node is."""
    return directory / f"capture-{node}"


class StrictLedger(Ledger):
    """A ledger that compares every message with the one that was sent at its place."""

    def __init__(self, senders: Sequence[str], size: int) -> None:
        super().__init__(senders)
        self.foreign = 0
        """Messages that nobody sent."""
        self._sent = {sender: tuple(pool(sender, size)) * 65 for sender in senders}

    def add(self, sender: str, number: int, payloads: Sequence[bytes]) -> None:
        if sender not in self._sent:
            self.foreign += len(payloads)
            return
        sent, first = self._sent[sender], number % POOL
        for at in range(0, len(payloads), BATCH_MAX):
            given = tuple(payloads[at : at + BATCH_MAX])
            if given != sent[first : first + len(given)]:
                due = zip(given, sent[first:], strict=False)
                self.foreign += sum(a not in (b, END) for a, b in due)
        super().add(sender, number, payloads)


class MemberUnderAttack(Member):
    """A node that also tells of its views, its memory and what it refused."""

    def __init__(self, job: Job, group: Group, orders: Orders) -> None:
        super().__init__(job, group, orders)
        self._ledger: StrictLedger = StrictLedger(job.senders, job.cell.size)
        self._views_changed = 0
        self._before_mb = 0.0

    def _set_mark(self) -> None:
        super()._set_mark()
        self._before_mb = memory_mb()

    def _on_view(self, view: View) -> None:
        self._views_changed += self._whole
        super()._on_view(view)

    def _proof(self) -> dict[str, Any]:
        return {
            **super()._proof(),
            "foreign": self._ledger.foreign,
            "views_changed": self._views_changed,
            "before_mb": self._before_mb,
            "after_mb": memory_mb(),
            "drops": self._group.status()["drops"],
        }


def memory_mb() -> float:
    """The memory of this process that is in use now; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def under_attack(job: Job) -> None:
    # Of bench alone: no node of a user writes down what it sends.
    setattr(port, "UdpSocket", tapped(capture_file(Path(job.directory), job.node)))  # noqa: B010
    await main(job, MemberUnderAttack)


if __name__ == "__main__":
    run(under_attack(Job.from_json(sys.argv[1])))
