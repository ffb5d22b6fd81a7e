"""A replicated counter: every node can add to it, and no addition is lost or counted twice.

Each addition is a message. All nodes apply the same additions in the same order, so all see the
counter take the same values, without locks and without a server. If a node is cut off from the
majority, its additions wait until it is back; then it first takes over the value of the others.

Run it in three terminals: python counter.py a, python counter.py b, python counter.py c
Type numbers to add them. An empty line or Ctrl-D leaves.
"""

import asyncio
import sys

from replica import Replica

import roundelay


class Counter(Replica):
    """The state is the counter's value, and a command is the number to add."""

    def apply(self, sender: str, command: int) -> None:
        self.state += command


async def read(counter: Counter) -> None:
    while (line := await asyncio.to_thread(sys.stdin.readline)).strip():
        await counter.submit(int(line))
    await counter.group.leave()


async def main(node: str, port: int = 5401) -> None:
    peers = {name: f"127.0.0.1:{port + i}" for i, name in enumerate("abc")}
    async with roundelay.join("counter", node=node, peers=peers) as group:
        counter = Counter(group, 0)
        reading = asyncio.create_task(read(counter))
        async for _ in counter.changes():
            print(
                f"value {counter.state}" if counter.certain else "waiting for the others",
                flush=True,
            )
        await reading


if len(sys.argv) < 2:
    sys.exit(__doc__)
try:
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
except KeyboardInterrupt:
    sys.exit(130)
