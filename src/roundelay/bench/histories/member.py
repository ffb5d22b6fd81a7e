"""A node with clients, as a process: `python -m roundelay.bench.histories.member TOLD`.

TOLD is JSON: `node`, `peers`, `journal`, `kind`, `out` (a file), `seed`. Each client calls, and
writes to `out` before and after each call what it does and sees, with the clock of the machine. So
of a call that a kill interrupted the first line is there. Once commands can be committed there is a
file of the same name that ends in `.open`.
"""

import asyncio
import contextlib
import json
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import roundelay
from roundelay.structures import Counter, Lock, Machine, Map, Queue, Refused

CLIENTS = 2
"""At each node."""
CALL_S = 0.5
"""How long a client waits for a call. Too small: many fates are unknown; too large: clients do
little while a node is cut off."""
KEYS = "xyz"
_UNKNOWN = (roundelay.ClosedError, roundelay.UncertainError)
_NOT_DONE = (roundelay.NotPrimaryError, TimeoutError)


class Purse(Machine):
    """A machine of an application's own: money of several people, which never falls below zero."""

    money: dict[str, int]

    def __init__(self) -> None:
        self.money = {}

    @roundelay.write
    def pay(self, who: str, amount: int) -> int:
        after = self.money.get(who, 0) + amount
        if after < 0:
            raise Refused(f"{who} has {after - amount}")
        self.money[who] = after
        return after

    @roundelay.read
    def total(self) -> int:
        return sum(self.money.values())


class Notes:
    """What the clients of this life of a node saw."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("a", buffering=1)
        self._next = 0

    def open(self) -> None:
        """Commands can be committed."""
        self._path.with_name(f"{self._path.name}.open").touch()

    def call(self, client: str, key: str, op: str, argument: object, *, reads: bool) -> int:
        self._next += 1
        told = [client, key, op, argument, reads]
        self._write({"id": self._next, "call": told, "at": time.monotonic()})
        return self._next

    def answer(self, id: int, reply: object, index: int | None) -> None:
        self._write({"id": id, "reply": reply, "index": index, "at": time.monotonic()})

    def not_done(self, id: int) -> None:
        self._write({"id": id, "not done": True})

    def more(self, **what: object) -> None:
        self._write(what)

    def _write(self, line: object) -> None:
        self._file.write(json.dumps(line) + "\n")


class Client:
    """One client of a face."""

    def __init__(self, name: str, face: Any, notes: Notes, chance: random.Random) -> None:
        self.name = name
        self.face = face
        self.notes = notes
        self.chance = chance

    async def call(
        self,
        key: str,
        op: str,
        argument: object,
        arguments: tuple[Any, ...],
        *,
        reads: bool = False,
    ) -> None:
        """Call a write or a read, and note what came of it."""
        id = self.notes.call(self.name, key, op, argument, reads=reads)
        try:
            placed = await getattr(self.face, op).within(CALL_S).placed(*arguments)
        except _UNKNOWN:
            return  # It may have been done.
        except _NOT_DONE:
            self.notes.not_done(id)
        except Refused as e:
            self.notes.answer(id, ["refused", str(e)], e.index)
        else:
            self.notes.answer(id, placed.reply, placed.index)

    async def map(self) -> None:
        key, value = self.chance.choice(KEYS), self.chance.randrange(1_000_000)
        match self.chance.choice(["set", "get", "get", "delete", "compare_and_set", "setdefault"]):
            case "get":
                await self.call(key, "get", None, (key,), reads=True)
            case "delete":
                await self.call(key, "delete", None, (key,))
            case "compare_and_set":
                expected = self.face.get.stale(key)
                await self.call(key, "compare_and_set", [expected, value], (key, expected, value))
            case op:
                await self.call(key, op, value, (key, value))

    async def counter(self) -> None:
        if self.chance.random() < 0.5:
            await self.call("", "add", 1, (1,))
        else:
            await self.call("", "value", None, (), reads=True)

    async def own(self) -> None:
        if self.chance.random() < 0.6:
            given = (self.chance.choice(KEYS), self.chance.randint(-5, 8))
            await self.call("", "pay", given, given)
        else:
            await self.call("", "total", (), (), reads=True)

    async def lock(self) -> None:
        asked = time.monotonic()
        with contextlib.suppress(*_UNKNOWN, *_NOT_DONE):
            hold = await self.face.acquire(timeout_s=CALL_S)
            got = time.monotonic()
            self.notes.more(hold=hold.token, client=self.name, asked=asked, got=got)
            await asyncio.sleep(self.chance.uniform(0, 0.005))
            gave = time.monotonic()
            async with asyncio.timeout(CALL_S):
                if await hold.release():
                    self.notes.more(gave=hold.token, at=gave)

    async def queue(self) -> None:
        with contextlib.suppress(*_UNKNOWN, *_NOT_DONE):
            await self.face.put.within(CALL_S)(self.chance.randrange(1000))
            asked = time.monotonic()
            job = await self.face.take(timeout_s=CALL_S)
            got = time.monotonic()
            self.notes.more(took=job.id, token=job.token, client=self.name, asked=asked, got=got)
            give_back, ended = self.chance.random() < 0.2, time.monotonic()
            async with asyncio.timeout(CALL_S):
                if await (job.give_back() if give_back else job.done()):
                    self.notes.more(ended=job.token, done=not give_back, at=ended)


KINDS: dict[str, tuple[Callable[[], Machine], Callable[[Client], Awaitable[None]]]] = {
    "map": (Map[int], Client.map),
    "counter": (Counter, Client.counter),
    "lock": (Lock, Client.lock),
    "queue": (Queue[int], Client.queue),
    "own": (Purse, Client.own),
}
"""What is replicated, and what a client does next."""


async def main(told: dict[str, Any]) -> None:
    make, step = KINDS[told["kind"]]
    node: str = told["node"]
    notes = Notes(Path(told["out"]))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    async def live(client: Client) -> None:
        while not stop.is_set():
            await step(client)
            await asyncio.sleep(client.chance.uniform(0, 0.02))

    async with roundelay.replicate(
        make, "histories", node=node, peers=told["peers"], journal=told["journal"]
    ) as face:
        opened = asyncio.ensure_future(face.port.until(lambda _: True if face.primary else None))
        told_to_stop = asyncio.ensure_future(stop.wait())
        await asyncio.wait({opened, told_to_stop}, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            opened.cancel()  # The others may have ended before: nothing opens here any more.
            return
        told_to_stop.cancel()
        notes.open()
        names = [f"{node}{n} of {told['seed']}" for n in range(CLIENTS)]
        clients = [Client(name, face, notes, random.Random(name)) for name in names]
        await asyncio.gather(*map(live, clients))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
