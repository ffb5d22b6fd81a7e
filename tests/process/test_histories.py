"""What clients of real nodes saw while nodes ended and came back, judged."""

import asyncio
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.process.test_replicas import Trio, run

import roundelay
from roundelay.check.histories import (
    Holding,
    Judgement,
    Operation,
    Taking,
    counter,
    done_once,
    fenced,
    linearizable,
    register,
)
from roundelay.check.verdict import Validity
from roundelay.structures import Counter, Lock, Map, Queue

pytestmark = pytest.mark.process

ROUNDS = 3
FATE_UNKNOWN = (roundelay.ClosedError, roundelay.UncertainError)
NOT_DONE = (roundelay.NotPrimaryError, roundelay.ConfigError, TimeoutError)


async def trouble(nodes: Trio[Any], chance: random.Random, ended: asyncio.Event) -> None:
    """End nodes and start them again; a majority is left each time, but not always."""
    for _ in range(ROUNDS):
        await asyncio.sleep(chance.uniform(0.1, 0.3))
        victims = chance.sample("abc", chance.choice([1, 1, 2]))
        for node in victims:
            await nodes.stop(node)
        await asyncio.sleep(chance.uniform(0.1, 0.5))
        for node in victims:
            await nodes.start(node)
    await asyncio.sleep(0.2)
    ended.set()


class Clients:
    """Clients that call one node each, as long as it lives, and write down what they saw."""

    def __init__(self, nodes: Trio[Any], seed: int) -> None:
        self.nodes = nodes
        self.history: list[Operation] = []
        self.ended = asyncio.Event()
        self.chance = random.Random(seed)

    async def call(self, client: str, key: str, op: str, argument: Any, arguments: tuple[Any, ...],
                   *, reads: bool = False) -> Any:  # fmt: skip
        """One call of a write or read of the face at the client's node."""
        called = time.monotonic()
        returned: float | None = None
        reply = None
        try:
            face = self.nodes[client[0]]
            reply = await getattr(face, op).within(0.5)(*arguments)
            returned = time.monotonic()
        except FATE_UNKNOWN:
            pass
        except (KeyError, *NOT_DONE):
            await asyncio.sleep(0.02)
            return None
        if returned is not None or not reads:
            made = Operation(client, key, op, argument, called, returned, reply, reads=reads)
            self.history.append(made)
        return reply


async def registers(directory: Path, seed: int) -> Judgement:
    nodes = Trio(Map[int], directory)
    for node in "abc":
        await nodes.start(node)
    clients = Clients(nodes, seed)

    async def client(name: str) -> None:
        chance, n = random.Random(f"{seed} {name}"), 0
        while not clients.ended.is_set():
            n += 1
            key, value = chance.choice("xy"), hash((name, n)) % 1_000_000
            match chance.choice(["set", "get", "get", "delete", "compare_and_set"]):
                case "set":
                    await clients.call(name, key, "set", value, (key, value))
                case "get":
                    await clients.call(name, key, "get", None, (key,), reads=True)
                case "delete":
                    await clients.call(name, key, "delete", None, (key,))
                case "compare_and_set":
                    expected = nodes_stale(nodes, name, key)
                    pair = (expected, value)
                    await clients.call(name, key, "compare_and_set", pair, (key, *pair))
            await asyncio.sleep(chance.uniform(0, 0.01))

    await asyncio.gather(
        *(client(f"{node}{n}") for node in "abc" for n in range(2)),
        trouble(nodes, clients.chance, clients.ended),
    )
    await nodes.close()
    assert len(clients.history) > 50
    return linearizable(clients.history, register)


def nodes_stale(nodes: Trio[Any], name: str, key: str) -> Any:
    try:
        return nodes[name[0]].get.stale(key)
    except KeyError:
        return None


async def counters(directory: Path, seed: int) -> Judgement:
    nodes = Trio(Counter, directory)
    for node in "abc":
        await nodes.start(node)
    clients = Clients(nodes, seed)

    async def client(name: str) -> None:
        while not clients.ended.is_set():
            await clients.call(name, "n", "add", 1, (1,))
            await clients.call(name, "n", "value", None, (), reads=True)
            await asyncio.sleep(0.01)

    await asyncio.gather(
        *(client(f"{node}{n}") for node in "abc" for n in range(2)),
        trouble(nodes, clients.chance, clients.ended),
    )
    await nodes.close()
    assert len(clients.history) > 50
    return linearizable(clients.history, counter)


async def locks(directory: Path, seed: int) -> Judgement:
    nodes = Trio(Lock, directory)
    for node in "abc":
        await nodes.start(node)
    clients = Clients(nodes, seed)
    holdings: list[Holding] = []

    async def client(name: str) -> None:
        while not clients.ended.is_set():
            asked = time.monotonic()
            try:
                hold = await nodes[name[0]].acquire(timeout_s=0.5)
                got = time.monotonic()
                await asyncio.sleep(0.002)
            except (KeyError, *FATE_UNKNOWN, *NOT_DONE):
                await asyncio.sleep(0.02)
                continue
            gave, confirmed = time.monotonic(), False
            try:
                async with asyncio.timeout(0.5):
                    confirmed = await hold.release()
            except (*FATE_UNKNOWN, *NOT_DONE):
                pass
            holdings.append(Holding(name, asked, got, hold.token, gave, confirmed))

    await asyncio.gather(
        *(client(f"{node}{n}") for node in "abc" for n in range(2)),
        trouble(nodes, clients.chance, clients.ended),
    )
    await nodes.close()
    assert sum(holding.confirmed for holding in holdings) > 20
    return fenced(holdings)


async def queues(directory: Path, seed: int) -> Judgement:
    nodes = Trio(Queue[int], directory)
    for node in "abc":
        await nodes.start(node)
    clients = Clients(nodes, seed)
    takings: list[Taking] = []
    put: set[int] = set()
    """Items of confirmed puts."""

    async def client(name: str) -> None:
        number = 0
        while not clients.ended.is_set():
            try:
                number += 1
                face = nodes[name[0]]
                put.add(await face.put.within(0.5)(number))
                asked = time.monotonic()
                job = await face.take(timeout_s=0.5)
            except (KeyError, *FATE_UNKNOWN, *NOT_DONE):
                await asyncio.sleep(0.02)
                continue
            got, done, lost = time.monotonic(), False, True
            try:
                async with asyncio.timeout(0.5):
                    done = await job.done()
                    lost = not done
            except (*FATE_UNKNOWN, *NOT_DONE):
                pass
            ended = time.monotonic()
            takings.append(Taking(name, job.id, asked, got, job.token, ended, done, lost))

    await asyncio.gather(
        *(client(f"{node}{n}") for node in "abc" for n in range(2)),
        trouble(nodes, clients.chance, clients.ended),
    )
    await nodes.until_open()
    await nodes["a"].size()
    left = nodes["a"].port.look(lambda queue: {item.id for item in queue.items} | set(queue.taken))
    await nodes.close()
    assert sum(taking.done for taking in takings) > 20
    assert put <= left | {taking.item for taking in takings}  # None is lost,
    assert not left & {taking.item for taking in takings if taking.done}  # and none comes back.
    return done_once(takings)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("judge", [registers, counters, locks, queues])
def test_what_clients_saw_while_nodes_ended_and_came_back(tmp_path, judge, seed):
    async def story() -> None:
        verdict = await judge(tmp_path, seed)
        shown = "\n".join(map(str, verdict.witness))
        assert verdict.validity is Validity.OK, f"{verdict.reason}\n{shown}"

    run(story())
