"""A node with clients, as a process: `python -m roundelay.bench.histories.member TOLD`.

TOLD is JSON: `node`, `peers`, `journal`, `kind`, `out` (a file), `seed`. Each client calls, and
writes to `out` before and after each call what it does and sees, with the clock of the machine. So
of a call that a kill interrupted the first line is there. Once commands can be committed there is a
file of the same name that ends in `.open`.

What a client gets later than its call returned, such as a turn of a lock, it notes as a read called
`granted`: its claim had been granted this when so many entries were applied here.
"""

import asyncio
import contextlib
import json
import random
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import roundelay
from roundelay.structures import Counter, Hold, Job, Lock, Machine, Map, Queue, Refused
from roundelay.structures.arguments import Arguments
from roundelay.structures.port import Options, Port

CLIENTS = 2
"""At each node."""
CALL_S = 0.5
"""How long a client waits for a call. Too small: many fates are unknown; too large: clients do
little while a node is cut off."""
HOLD_S = 2.0
"""How long a client holds the lock at most. Too small: it is over before a node that was cut off
knows of it; too large: the others wait in vain."""
BEAT_S = 0.02
"""How often a node notes that it runs. Too large: a pause is not seen; too small: notes grow."""
KEYS = "xyz"
BRIEF = "brief"
"""A key whose values end by themselves."""
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


class NotedPort:
    """The port of a client's face, which notes the writes of the face's tasks too: to acquire a
    lock is to ask, and to give back, perhaps much later, what came too late."""

    def __init__(self, port: Port, client: str, notes: Notes) -> None:
        self._port = port
        self._client = client
        self._notes = notes
        self._handle = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    async def write(self, method: Arguments, given: tuple[Any, ...], options: Options) -> Any:
        if method.method == "ask":
            self._handle = given[0]
        id = self._notes.call(self._client, "", method.method, given, reads=False)
        try:
            placed = await self._port.write(method, given, replace(options, placed=True))
        except roundelay.NotPrimaryError:
            self._notes.not_done(id)
            raise
        self._notes.answer(id, placed.reply, placed.index)
        return placed if options.placed else placed.reply

    @property
    def claim(self) -> tuple[int, int]:
        """Session and handle of the claim that asked last."""
        return self._port.session, self._handle


class Client:
    """One client of a machine at its node."""

    def __init__(self, name: str, face: Any, notes: Notes, chance: random.Random) -> None:
        self.name = name
        self.face = face
        self.notes = notes
        self.chance = chance
        self.port = NotedPort(face.port, name, notes)
        self.noted = type(face).bind(self.port)
        """The same face; what it writes is noted."""

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
        match self.chance.choice(
            [
                *("set", "set", "get", "get", "get", "items", "items", "delete", "pop", "update"),
                *("compare_and_set", "setdefault", "set_if", "brief", "size", "clear"),
            ]
        ):
            case "get" | "delete" | "pop" as op:
                await self.call(key, op, None, (key,), reads=op == "get")
            case "items" | "size" as op:
                await self.call("", op, None, (), reads=True)
            case "update":
                values = {key: value + n for n, key in enumerate(self.chance.sample(KEYS, 2))}
                await self.call("", "update", values, (values,))
            case "clear" if self.chance.random() < 0.2:
                await self.call("", "clear", None, ())
            case "clear" | "brief":
                await self.call(BRIEF, "set", value, (BRIEF, value, 0.1))
            case "set_if":
                slot = self.face.slot.stale(key)
                version = None if slot is None else slot.version
                await self.call(key, "set_if", value, (key, value, version))
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
        if self.chance.random() < 0.2:
            await self.look()
        asked = time.monotonic()
        with contextlib.suppress(*_UNKNOWN, *_NOT_DONE):
            hold = await self.noted.acquire(timeout_s=CALL_S)
            self._got("hold", hold.token, asked)
            try:
                await self._work(hold)
                self.notes.more(giving=hold.token, at=(gave := time.monotonic()))
                async with asyncio.timeout(CALL_S):
                    if await hold.release():
                        self.notes.more(gave=hold.token, at=gave)
            except TimeoutError:
                self.port.background(hold.release)  # Else it would have the lock for ever.

    async def _work(self, hold: Hold) -> None:
        """Hold the lock for a while, or until it is lost."""
        long = self.chance.random() < 0.1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.chance.uniform(0, HOLD_S if long else 0.005)):
                await hold.until_lost()
                self.notes.more(lost=hold.token, at=time.monotonic())

    async def queue(self) -> None:
        if self.chance.random() < 0.2:
            await self.look()
        with contextlib.suppress(*_UNKNOWN, *_NOT_DONE):
            value, priority = self.chance.randrange(1000), self.chance.choice((0, 0, 0, -1, 1))
            await self.noted.put.within(CALL_S)(value, priority)
            if self.chance.random() < 0.1:
                return  # So that items wait.
            asked = time.monotonic()
            job: Job[int] = await self.noted.take(timeout_s=CALL_S)
            self._got("took", [job.id, job.token, job.value], asked)
            give_back, ended = self.chance.random() < 0.2, time.monotonic()
            try:
                async with asyncio.timeout(CALL_S):
                    if await (job.give_back() if give_back else job.done()):
                        self.notes.more(ended=job.token, done=not give_back, at=ended)
            except TimeoutError:
                self.port.background(job.give_back)

    def _got(self, what: str, found: object, asked: float) -> None:
        """Note what the claim that asked last was granted."""
        got = time.monotonic()
        about = {"claim": self.port.claim, "index": self.port.index, "client": self.name}
        self.notes.more(**{what: found}, **about, asked=asked, got=got)

    async def look(self) -> None:
        """Note what the machine tells of itself once it is fresh."""
        id = self.notes.call(self.name, "", "status", (), reads=True)
        with contextlib.suppress(*_UNKNOWN, *_NOT_DONE):
            await self.port.sync(Options(timeout_s=CALL_S))
            with self.port.lock:
                status, index = dict(self.port.machine.status()), self.port.index
            self.notes.answer(id, status, index)


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
        await client.look()

    async def beat() -> None:
        while not stop.is_set():
            notes.more(beat=time.monotonic())
            await asyncio.sleep(BEAT_S)

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
        await asyncio.gather(beat(), *map(live, clients))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
