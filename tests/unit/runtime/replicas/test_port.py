"""The port of a machine at a node, without a node."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from roundelay.core.ids import ViewId
from roundelay.core.log import NAMED
from roundelay.runtime.replicas.port import NodePort
from roundelay.runtime.replicas.site import Site
from roundelay.structures import Counter, GapError, Map
from roundelay.structures.replica import LogEntry, Replica, command_head
from roundelay.structures.values import dumps

TERM = ViewId(1, "a")


class Receipt:
    """Of a command that is committed when the test says so."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.settled: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def __await__(self) -> Generator[Any, None, int]:
        return self.settled.__await__()


def opened(port: NodePort[Any]) -> NodePort[Any]:
    port.site.loop = asyncio.get_running_loop()
    return port


def snapshot_of(machine: Any, *payloads: bytes) -> bytes:
    replica = Replica({"": machine})
    for index, payload in enumerate(payloads):
        replica.apply(LogEntry(index, payload, TERM, "b", 5, index, 0))
    return b"".join(replica.snapshot())


@pytest.mark.parametrize("session", [7, NAMED | 7])
def test_the_reply_of_a_command_that_only_a_snapshot_has_is_not_known(session):
    async def story() -> None:
        port = opened(NodePort(Site("a"), "", Counter))
        receipt: Any = Receipt(3)
        waiting = asyncio.create_task(port.site.settled(receipt, session))
        await asyncio.sleep(0)
        receipt.settled.set_result(0)
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        port.site.restore([snapshot_of(Counter(), command_head("") + dumps(["add", 1, 2]))])
        assert await waiting == (0, None)
        assert (port.index, port.machine.number) == (1, 2)
        assert not port.site._replies

    asyncio.run(story())


def test_a_watcher_is_told_that_a_snapshot_replaced_the_state():
    async def story() -> None:
        port = opened(NodePort(Site("a"), "", Map[int]))
        seen: list[object] = []

        async def watch() -> None:
            async for change in port.changes():
                seen.append(change)  # noqa: PERF401  # What was seen when it ends counts.

        watching = asyncio.create_task(watch())
        await asyncio.sleep(0)
        port.site.restore([snapshot_of(Map())])
        with pytest.raises(GapError, match="snapshot"):
            await watching

    asyncio.run(story())


def test_whoever_waits_for_the_state_sees_a_restored_one():
    async def story() -> None:
        port = opened(NodePort(Site("a"), "", Counter))
        waiting = asyncio.create_task(port.until(lambda state: state.number or None))
        await asyncio.sleep(0)
        port.site.restore([snapshot_of(Counter(), command_head("") + dumps(["add", 1, 2]))])
        assert await waiting == 2

    asyncio.run(story())


def test_an_error_in_what_is_waited_for_is_told_to_who_waits():
    async def story() -> None:
        port = opened(NodePort(Site("a"), "", Counter))
        waiting = asyncio.create_task(port.until(lambda state: 1 // state.number))
        await asyncio.sleep(0)
        with pytest.raises(ZeroDivisionError):
            await waiting

    asyncio.run(story())
