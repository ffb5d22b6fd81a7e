"""A dictionary that all nodes share. A node that was killed has everything again after a restart.

All nodes apply the same writes in the same order. Who restarts, or was cut off, takes over the
dictionary of the others before it goes on. A node that is cut off from the majority answers
nothing: what is typed there waits in its memory, and is done once it is back. `get` waits like a
write, so it never shows a value that was already replaced when it was typed.

Run it in three terminals: python kv.py a, python kv.py b, python kv.py c
The first start needs all three. Type `set NAME VALUE`, `get NAME`, `del NAME`, or `show` for all
that this node knows. An empty line or Ctrl-D leaves.

So far the dictionary lives as long as two of the three nodes do. With a directory for each node,
python kv.py a --state state/a and so on, it is on disk before a write is confirmed, and is there
again after all of them were killed, as soon as two are back.
"""

import argparse
import asyncio
import sys
from collections import deque
from pathlib import Path

from replica import Replica

import roundelay

READY = "ready"


class Dictionary(Replica):
    """The state maps names to values, a command is a list of the words that were typed."""

    def __init__(self, group: roundelay.Group) -> None:
        super().__init__(group, {})
        self.typed: deque[list[str]] = deque()
        """Commands of this node that have not been answered yet, oldest first."""
        self.said = ""
        """How this node is, as was printed last."""
        self.known: dict[str, str] = {}
        """The dictionary as it was when this node last knew for certain."""

    def apply(self, sender: str, command: list[str]) -> None:
        match command:
            case ["set", name, value]:
                self.state[name] = value
            case ["del", name]:
                self.state.pop(name, None)
            case ["get", _]:
                pass  # It only has to take its place among the others.

    async def do(self, line: str) -> None:
        """Obey a line that was typed."""
        match line.split(maxsplit=2):
            case ["set", _, _] | ["get", _] | ["del", _] as command:
                if self.said != READY:
                    print(f"{line}: waits for the others", flush=True)
                self.typed.append(command)
                await self.submit(command)
            case ["show"]:
                old = "" if self.said == READY else "when last seen: "
                pairs = ", ".join(f"{name} = {self.known[name]}" for name in sorted(self.known))
                print(f"{old}{pairs or 'nothing'}", flush=True)
            case _:
                print("type: set NAME VALUE, get NAME, del NAME, or show", flush=True)

    def answer(self) -> None:
        """Say what became certain, or that nothing is."""
        now = READY if self.certain else "waiting for the others"
        if now != self.said:
            print(now, flush=True)
        self.said = now
        if self.certain:
            self.known = dict(self.state)
            while len(self.typed) > self.waiting:
                match self.typed.popleft():
                    case ["get", name]:
                        value = self.known.get(name)
                        print(
                            f"{name} = {value}" if value is not None else f"no {name}", flush=True
                        )
                    case command:
                        print(f"ok: {' '.join(command)}", flush=True)


async def read(dictionary: Dictionary) -> None:
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await dictionary.do(line)
    await dictionary.group.leave()


async def main(node: str, port: int, state: Path | None) -> None:
    peers = {name: f"127.0.0.1:{port + i}" for i, name in enumerate("abc")}
    async with roundelay.join("kv", node=node, peers=peers, state=state) as group:
        dictionary = Dictionary(group)
        reading = asyncio.create_task(read(dictionary))
        async for _ in dictionary.changes():
            dictionary.answer()
        await reading


parser = argparse.ArgumentParser(description="A dictionary that all nodes share.")
parser.add_argument("node", choices="abc")
parser.add_argument("port", type=int, nargs="?", default=5401, help="of a; b and c follow")
parser.add_argument("--state", type=Path, help="a directory of this node's own")
arguments = parser.parse_args()
asyncio.run(main(arguments.node, arguments.port, arguments.state))
