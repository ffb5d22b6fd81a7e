"""A work queue without a server.

Every node may add jobs. All nodes see the same jobs in the same order, so each can tell which node
does which job, and no node has to assign them. When a node disappears, its unfinished jobs go to
other nodes. A node that is cut off from the majority starts no job, since the others may have given
the job to another node. If it was working on a job when it was cut off, another node starts this
job a second time, and only one result counts.

Run it in three terminals: python work_queue.py a, python work_queue.py b, python work_queue.py c
Type jobs to add them, each with a name of its own. An empty line or Ctrl-D leaves.
"""

import asyncio
import sys
from typing import Any

from replica import Replica

import roundelay


class Queue(Replica):
    """The state maps every unfinished job to the node that does it."""

    def __init__(self, group: roundelay.Group) -> None:
        super().__init__(group, {})
        self.started: set[str] = set()
        """Jobs that this node has started."""
        self.known: set[str] = set()
        """Jobs that were unfinished when the state was last certain."""

    def apply(self, sender: str, command: dict[str, Any]) -> None:
        match command:
            case {"add": job}:
                self.state.setdefault(job, self._choose(job))
            case {"done": job}:
                self.state.pop(job, None)

    def on_agreement(self) -> None:
        for job, node in self.state.items():
            if node not in self.members:
                self.state[job] = self._choose(job)

    def _choose(self, job: str) -> str:
        return self.members[sum(job.encode()) % len(self.members)]

    async def work(self) -> None:
        for job in sorted(self.known - self.state.keys()):
            print(f"{job} is done", flush=True)
        self.known = set(self.state)
        for job, node in list(self.state.items()):
            if node == self.node and job not in self.started:
                self.started.add(job)
                print(f"doing {job}", flush=True)  # A real program works here.
                await self.submit({"done": job})


async def read(queue: Queue) -> None:
    while job := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await queue.submit({"add": job})
    await queue.group.leave()


async def main(node: str, port: int = 5401) -> None:
    peers = {name: f"127.0.0.1:{port + i}" for i, name in enumerate("abc")}
    async with roundelay.join("work", node=node, peers=peers) as group:
        queue = Queue(group)
        reading = asyncio.create_task(read(queue))
        async for _ in queue.changes():
            if queue.certain:
                await queue.work()
            else:
                print("waiting for the others", flush=True)
        await reading


if len(sys.argv) < 2:
    sys.exit(__doc__)
try:
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
except KeyboardInterrupt:
    sys.exit(130)
