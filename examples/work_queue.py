"""A work queue with a leader and no server.

Every node may add jobs. The leader, the first member of the view, gives each job to somebody; all
see who has which job, since all see the same messages. When a node disappears, the leader of the
next view gives its unfinished jobs to others; when the leader disappears, the next one goes on
where it stopped.

Run it in three terminals: python work_queue.py a, python work_queue.py b, python work_queue.py c
"""

import asyncio
import json
import sys
from typing import Any

import roundelay

JOBS_EACH = 5


class Queue:
    """What all nodes know of the jobs: a function of the messages and views so far."""

    def __init__(self) -> None:
        self.given: dict[str, str | None] = {}
        """Every job, and who has it."""
        self.done: dict[str, int] = {}

    def apply(self, message: dict[str, Any]) -> None:
        match message:
            case {"add": job}:
                self.given[job] = None
            case {"give": job, "to": node}:
                self.given[job] = node
            case {"done": job, "result": result}:
                self.done[job] = result

    def open(self, members: tuple[str, ...]) -> list[str]:
        """Jobs that nobody who is here has."""
        return [j for j, n in self.given.items() if j not in self.done and n not in members]


async def main(node: str, port: int = 5401) -> None:
    peers = {name: f"127.0.0.1:{port + i}" for i, name in enumerate("abc")}
    queue = Queue()
    async with roundelay.join("work", node=node, peers=peers) as group:

        async def say(**message: object) -> None:
            await group.send(json.dumps(message).encode())

        await group.wait_for(peers)
        for number in range(JOBS_EACH):
            await say(add=f"{node}{number}")
        members: tuple[str, ...] = ()
        async for event in group:
            if isinstance(event, roundelay.View):
                members = event.members
                new = queue.open(members)
            else:
                message = json.loads(event.payload)
                queue.apply(message)
                new = [message["add"]] if "add" in message else []
                if message.get("to") == node:  # Ours: do it, and tell.
                    await say(done=message["give"], result=len(message["give"]))
            if members and members[0] == node:  # We lead.
                for job in new:
                    await say(give=job, to=members[sum(map(ord, job)) % len(members)])
            if len(queue.done) == JOBS_EACH * len(peers):
                break
        print(f"{len(queue.done)} jobs done, by", sorted(set(queue.given.values()), key=str))


try:
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
except KeyboardInterrupt:
    sys.exit(130)
