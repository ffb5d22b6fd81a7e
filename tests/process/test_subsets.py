"""Messages for some of the group, between real nodes on a network that loses and reorders."""

import asyncio
from contextlib import AsyncExitStack
from graphlib import TopologicalSorter
from itertools import combinations, pairwise

import pytest
from tests.patience import LIMIT_S, STORY_S

import roundelay
from roundelay.runtime.relay import RelayProcess
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

NODES = "abcd"
SUBSETS = [names for size in (1, 2, 3, 4) for names in combinations(NODES, size)]
ROUNDS = 4

Log = list[tuple[str, bytes, tuple[str, ...] | None]]
"""Sender, payload and destinations of messages."""


async def load(engine: str, faults: list[str]) -> dict[str, Log]:
    """Every node sends to every subset; what each of them delivered, once all receipts came."""
    logs: dict[str, Log] = {node: [] for node in NODES}
    relay = RelayProcess(free_addresses(NODES))

    async def read(node: str, group: roundelay.Group) -> None:
        async for event in group:
            if isinstance(event, roundelay.Message):
                logs[node].append((event.sender, event.payload, event.to))

    try:
        async with asyncio.timeout(STORY_S), AsyncExitStack() as stack:
            groups = []
            for node in NODES:
                group = roundelay.join(
                    "g", node=node, peers=relay.peers[node], engine=engine, timeout_s=4.0
                )
                groups.append(await stack.enter_async_context(group))
            for group in groups:
                await group.wait_for(timeout_s=LIMIT_S)
            reading = [
                asyncio.create_task(read(node, group))
                for node, group in zip(NODES, groups, strict=True)
            ]
            for fault in faults:
                relay.command(fault)
            receipts = []
            for number in range(ROUNDS * len(SUBSETS)):
                to = SUBSETS[number % len(SUBSETS)]
                receipts += [await group.send(b"%d" % number, to=to) for group in groups]
            for receipt in receipts:
                await receipt
            expected = ROUNDS * len(NODES) * len(SUBSETS) * 8 // 15  # Each is in 8 of 15 subsets.
            while any(len(log) < expected for log in logs.values()):
                for task in reading:
                    if task.done():
                        task.result()
                await asyncio.sleep(0.01)
            if engine == "st" and faults:
                assert any(group.status()["frames"].get("RST") for group in groups)
            relay.command("heal")
            for task in reading:
                task.cancel()
    finally:
        relay.close()
    return logs


async def send_and_leave(engine: str) -> list[bytes]:
    """One node sends to the other alone, and leaves; what the other delivered."""
    peers = free_addresses("ab")
    async with asyncio.timeout(STORY_S), AsyncExitStack() as stack:
        sender, reader = [
            await stack.enter_async_context(
                roundelay.join("g", node=node, peers=peers, engine=engine, timeout_s=4.0)
            )
            for node in "ab"
        ]
        for group in (sender, reader):
            await group.wait_for(timeout_s=LIMIT_S)
        for number in range(20):
            await sender.send(b"%d" % number, to=["b"])
        async with asyncio.timeout(LIMIT_S):  # It would wait for ever.
            await sender.leave(timeout_s=2 * STORY_S)
        read: list[bytes] = []
        async for event in reader:
            if isinstance(event, roundelay.Message):
                read.append(event.payload)
                if len(read) == 20:
                    break
        return read


@pytest.mark.parametrize("engine", ["fifo", "st"])
def test_every_destination_delivers_it_and_nobody_else(engine):
    logs = asyncio.run(load(engine, ["loss 20%", "reorder 10%"]))
    for node, log in logs.items():
        own: dict[str, list[int]] = {sender: [] for sender in NODES}
        for sender, payload, to in log:
            subset = SUBSETS[int(payload) % len(SUBSETS)]
            assert node in subset
            assert to == subset
            own[sender].append(int(payload))
        wanted = [n for n in range(ROUNDS * len(SUBSETS)) if node in SUBSETS[n % len(SUBSETS)]]
        assert own == dict.fromkeys(NODES, wanted)  # All, once, in the order of their sender.
    if engine == "st":
        order: TopologicalSorter[tuple[str, bytes]] = TopologicalSorter()
        for log in logs.values():
            for first, second in pairwise(log):
                order.add(second[:2], first[:2])
        order.prepare()  # CycleError, unless all nodes agree on one order.


@pytest.mark.parametrize("engine", ["fifo", "st"])
def test_who_leaves_does_not_wait_to_deliver_what_is_for_others(engine):
    assert asyncio.run(send_and_leave(engine)) == [b"%d" % number for number in range(20)]
