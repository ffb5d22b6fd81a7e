"""A process whose application reads nothing: prints how much memory that took it.

Told as JSON: the settings of its node, and `receipts`, whether it sends and awaits receipts too.
It ends when its standard input does.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import roundelay

PAGE_BYTES = 4096


def resident_bytes() -> int:
    """Of this process, now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


async def hoard(told: dict[str, Any]) -> None:
    receipts = told.pop("receipts")
    refusals: list[str] = []

    async def send(group: roundelay.Group) -> None:
        try:
            while True:
                await (await group.send(bytes(500_000)))
        except roundelay.QueueFullError as e:
            refusals.append(str(e))

    async with roundelay.join("g", **told) as group:
        await group.wait_for()
        before = most = resident_bytes()
        say({"ready": True})
        end = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        sending = asyncio.create_task(send(group)) if receipts else end
        while not end.done():
            await asyncio.sleep(0.02)
            most = max(most, resident_bytes())
        sending.cancel()
        document = {
            "grown": most - before,
            "counted": group.status()["queues"]["bytes_to_read"],
            "refused": group.status()["drops"]["refused"],
            "refusals": refusals,
        }
        say(document)
        group.ignore()


if __name__ == "__main__":
    asyncio.run(hoard(json.loads(sys.argv[1])))
