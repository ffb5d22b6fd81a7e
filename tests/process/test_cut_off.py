"""What a node that is cut off by a real partition knows, and what the others do meanwhile."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.patience import STORY_S

import roundelay
from roundelay.runtime.relay import RelayProcess
from roundelay.structures import Counter, Hold, Lock
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

NODES = "abc"
ROUNDS, ROUNDS_MAX = 2, 8
STALL_S = 0.05
"""A round in which the event loop of all nodes stood still for longer tells nothing of times."""


class Faces(NamedTuple):
    """Of one node."""

    door: Lock
    hits: Counter


async def moment_lost(hold: Hold) -> float:
    await hold.until_lost()
    return time.monotonic()


async def moment_got(door: Lock) -> tuple[float, Hold]:
    hold = await door.acquire()
    return time.monotonic(), hold


class Round(NamedTuple):
    """What came of one partition."""

    margin_s: float
    """From when the holder knew that it had lost the lock, to when another had it."""
    uncertain: bool
    """Whether what was written just after the cut was sent."""
    stall_s: float
    """The longest time for which the event loop stood still."""


async def stalls(found: list[float]) -> None:
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.005)
        found.append(time.monotonic() - before)


async def cut_off(relay: RelayProcess, faces: dict[str, Faces], count: int) -> Round:
    """Cut off the holder of the lock; `count` is what was counted before, and one is added."""
    stood_still: list[float] = []
    watching = asyncio.create_task(stalls(stood_still))
    a, b, c = (faces[node] for node in NODES)
    hold = await a.door.acquire()
    lost = asyncio.create_task(moment_lost(hold))
    got = asyncio.create_task(moment_got(b.door))
    await c.door.port.until(lambda lock: lock.waiting or None)
    relay.command("partition a b,c")
    with pytest.raises(roundelay.SendError) as failed:
        await a.hits.add.once("billing", count).within(0.2)(1)

    lost_at = await lost
    assert (a.hits.value.stale(), a.hits.primary) == (count, False)
    for refused in (a.hits.add.within(0.05)(1), a.hits.value.within(0.05)()):
        with pytest.raises(roundelay.NotPrimaryError):
            await refused

    got_at, following = await got
    assert following.token > hold.token
    assert await b.hits.add.once("billing", count)(1) == count + 1
    assert (a.hits.value.stale(), a.hits.primary) == (count, False)

    relay.command("heal")
    assert await a.hits.value() == count + 1
    assert await a.hits.add.once("billing", count)(1) == count + 1
    assert await following.release()
    watching.cancel()
    uncertain = isinstance(failed.value, roundelay.UncertainError)
    return Round(got_at - lost_at, uncertain, max(stood_still))


def test_a_holder_that_is_cut_off_is_told_first_reads_with_a_flag_and_writes_nothing(
    tmp_path: Path,
):
    """And what it repeats through another node, since it could not know its fate, counts once."""

    async def story() -> list[Round]:
        faces = {}
        steady: list[Round] = []
        async with asyncio.timeout(STORY_S), AsyncExitStack() as stack:
            for node in NODES:
                shop = roundelay.Replicas(
                    "shop", node=node, peers=relay.peers[node], journal=tmp_path / node
                )
                faces[node] = Faces(shop.add("door", Lock), shop.add("hits", Counter))
                await stack.enter_async_context(shop)
            for node in NODES:
                await faces[node].hits.add.once("billing", 0)(1)
            count = 1
            while len(steady) < ROUNDS and count <= ROUNDS_MAX:
                done = await cut_off(relay, faces, count)
                count += 1
                if done.stall_s < STALL_S:
                    steady.append(done)
            assert await faces["c"].hits.value() == count
        return steady

    relay = RelayProcess(free_addresses(NODES))
    try:
        rounds = asyncio.run(story())
    finally:
        relay.close()
    told = ", ".join(f"{1000 * each.margin_s:.0f} ms" for each in rounds)
    print(f"told before the lock was given to another: {told}")  # noqa: T201  # Shown with -rP.
    assert all(each.margin_s > 0 for each in rounds), told
    assert all(each.uncertain for each in rounds)
