"""An account book that survives kill -9 of every node, also of all of them at once.

What is typed is appended to a replicated log, and counts once it is on the disks of a majority. A
node that starts again reads its whole log, fetches what it missed, and goes on with the others.

Run it in three terminals: python ledger.py a, python ledger.py b, python ledger.py c
Type an amount to book it; an empty line or Ctrl-D leaves. A node keeps its log in ledger-a (or b,
or c), or where --journal DIR says.
"""

import argparse
import asyncio
import sys
from pathlib import Path

import roundelay


async def book(group: roundelay.Group) -> None:
    while (line := await asyncio.to_thread(sys.stdin.readline)).strip():
        receipt = await group.log.append(line.strip().encode())
        print(f"booked as entry {await receipt}", flush=True)
    await group.leave()


async def main(node: str, port: int, journal: Path) -> None:
    peers = {name: f"127.0.0.1:{port + i}" for i, name in enumerate("abc")}
    async with roundelay.join("ledger", node=node, peers=peers, journal=journal) as group:
        group.ignore()  # Nobody uses `send` here; what is appended comes from the log.
        booking = asyncio.create_task(book(group))
        total = 0
        async for entry in group.log.read(from_index=0):
            if isinstance(entry, roundelay.Entry):  # Else an operator gave up entries here.
                amount = int(entry.payload)
                total += amount
                print(f"{entry.index} {entry.sender}: {amount:+}, total {total}", flush=True)
        await booking


parser = argparse.ArgumentParser(epilog=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("node", choices="abc")
parser.add_argument("port", type=int, nargs="?", default=5401)
parser.add_argument("--journal", type=Path)
args = parser.parse_args()
try:
    asyncio.run(main(args.node, args.port, args.journal or Path(f"ledger-{args.node}")))
except KeyboardInterrupt:
    sys.exit(130)
