"""A replicated counter: every node adds to it, and every node always knows its value.

Each addition is a message. All nodes apply the same additions in the same order, so each of them
sees the counter pass through the same values; no locks, no server.

Run it in three terminals: python counter.py a, python counter.py b, python counter.py c
"""

import asyncio
import sys

import roundelay

ADDITIONS = 100


async def main(node: str, port: int = 5401) -> None:
    peers = {name: f"127.0.0.1:{port + i}" for i, name in enumerate("abc")}
    async with roundelay.join("counter", node=node, peers=peers) as group:
        await group.wait_for(peers)
        for step in range(1, ADDITIONS + 1):
            await group.send(b"%d" % step)
        value = applied = fingerprint = 0
        async for event in group:
            if isinstance(event, roundelay.Message):
                value += int(event.payload)
                applied += 1
                fingerprint = (fingerprint * 31 + value) % 1_000_003
                if applied == ADDITIONS * len(peers):
                    break
        print(f"value {value}, reached by the same steps everywhere: {fingerprint}", flush=True)


try:
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
except KeyboardInterrupt:
    sys.exit(130)
