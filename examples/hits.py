"""A counter that survives kill -9 of every node, also of all of them at once.

Run it in three terminals: python hits.py a, python hits.py b, python hits.py c
Type a number to add it; `show` asks for the value; an empty line or Ctrl-D leaves. A node keeps its
journal in hits-a (or b, or c), or where --journal DIR says.
"""

import argparse
import asyncio
import sys
from pathlib import Path

import roundelay
from roundelay.structures import Counter


async def main(node: str, port: int, journal: Path) -> None:
    peers = {name: f"127.0.0.1:{port + i}" for i, name in enumerate("abc")}
    async with roundelay.replicate(
        Counter, "hits", node=node, peers=peers, journal=journal
    ) as hits:
        while (line := await asyncio.to_thread(sys.stdin.readline)).strip():
            value = await (hits.value() if line == "show\n" else hits.add(int(line)))
            print(f"value {value}", flush=True)


parser = argparse.ArgumentParser(epilog=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("node", choices="abc")
parser.add_argument("port", type=int, nargs="?", default=5401)
parser.add_argument("--journal", type=Path)
args = parser.parse_args()
try:
    asyncio.run(main(args.node, args.port, args.journal or Path(f"hits-{args.node}")))
except KeyboardInterrupt:
    sys.exit(130)
