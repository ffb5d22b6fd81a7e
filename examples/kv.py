"""A dictionary that all nodes share. A node that was killed has everything again after a restart.

All nodes apply the same writes in the same order. A node that restarts, or was cut off, takes over
the dictionary of the others before it goes on. While a node is cut off from the majority, commands
typed there wait in its memory until it is back. `get` is ordered like a write, so it never shows a
value that was already replaced when the command was typed.

Run it in three terminals: python kv.py a, python kv.py b, python kv.py c
The first start needs all three. Type `set NAME VALUE`, `get NAME`, `del NAME`, or `show`, which
prints all names and values that this node knows. An empty line or Ctrl-D leaves.

Started like this, the nodes keep the dictionary in memory, and it survives as long as two of the
three nodes run. Give each node a directory, as in python kv.py a --state state/a, to keep it on
disk too: a write is then confirmed only when it is on disk, and after all nodes were killed, the
dictionary is there again as soon as two are back.
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
    """The state maps names to values, and a command is the list of words that were typed."""

    def __init__(self, group: roundelay.Group) -> None:
        super().__init__(group, {})
        self.typed: deque[list[str]] = deque()
        """Commands of this node that have not been answered yet, oldest first."""
        self.said = ""
        """What `answer` printed last about this node: `READY`, or that it waits."""
        self.known: dict[str, str] = {}
        """The dictionary when it was last certain at this node."""

    def apply(self, sender: str, command: list[str]) -> None:
        match command:
            case ["set", name, value]:
                self.state[name] = value
            case ["del", name]:
                self.state.pop(name, None)
            case ["get", _]:
                pass  # It changes nothing; `answer` prints the value once the command is certain.

    async def do(self, line: str) -> None:
        """Carry out a line that was typed."""
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
        """Print the results of commands that became certain, or that this node waits."""
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
parser.add_argument(
    "port", type=int, nargs="?", default=5401, help="the port of a; b and c use the next two"
)
parser.add_argument("--state", type=Path, help="a directory for this node alone")
arguments = parser.parse_args()
asyncio.run(main(arguments.node, arguments.port, arguments.state))
