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
ROUNDS = 3


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


async def cut_off(relay: RelayProcess, faces: dict[str, Faces], count: int) -> float:
    """Cut off the holder of the lock. By how much it knew of it before another had the lock; count
    is what was counted before, and what is counted now once more."""
    a, b, c = (faces[node] for node in NODES)
    hold = await a.door.acquire()
    lost = asyncio.create_task(moment_lost(hold))
    got = asyncio.create_task(moment_got(b.door))
    await c.door.port.until(lambda lock: lock.waiting or None)
    relay.command("partition a b,c")
    with pytest.raises(roundelay.UncertainError):  # It was sent, and nobody heard it.
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
    return got_at - lost_at


def test_a_holder_that_is_cut_off_is_told_first_reads_with_a_flag_and_writes_nothing(
    tmp_path: Path, record_property
):
    """And what it repeats through another node, since it could not know its fate, counts once."""

    async def story() -> list[float]:
        faces = {}
        async with asyncio.timeout(STORY_S), AsyncExitStack() as stack:
            for node in NODES:
                shop = roundelay.Replicas(
                    "shop", node=node, peers=relay.peers[node], journal=tmp_path / node
                )
                faces[node] = Faces(shop.add("door", Lock), shop.add("hits", Counter))
                await stack.enter_async_context(shop)
            for node in NODES:
                await faces[node].hits.add.once("billing", 0)(1)
            margins = [await cut_off(relay, faces, 1 + n) for n in range(ROUNDS)]
            assert await faces["c"].hits.value() == 1 + ROUNDS
        return margins

    relay = RelayProcess(free_addresses(NODES))
    try:
        margins = asyncio.run(story())
    finally:
        relay.close()
    told = ", ".join(f"{1000 * margin:.0f} ms" for margin in margins)
    record_property("told before the lock was given to another", told)
    assert min(margins) > 0, told
