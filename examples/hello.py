"""Three nodes greet each other, and all print the same greetings in the same order.

Run it in three terminals: python hello.py a, python hello.py b, python hello.py c
"""

import asyncio
import sys

import roundelay


async def main(node: str, port: int = 5401) -> None:
    peers = {name: f"127.0.0.1:{port + i}" for i, name in enumerate("abc")}
    async with roundelay.join("hello", node=node, peers=peers) as group:
        others = [name for name in peers if name != node]
        print("waiting for", " and ".join(others), flush=True)  # The others may start later.
        await group.wait_for(peers)
        # Safe, because a node leaves when it has all greetings, and the others need them too.
        await group.send(f"hello from {node}".encode(), safe=True)
        heard = 0
        async for event in group:
            match event:
                case roundelay.View():
                    print("members:", ", ".join(event.members), flush=True)
                case roundelay.Message():
                    print(f"{event.position.index}: {event.payload.decode()}", flush=True)
                    heard += 1
            if heard == len(peers):
                break


if len(sys.argv) < 2:
    sys.exit(__doc__)
try:
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
except KeyboardInterrupt:
    sys.exit(130)
