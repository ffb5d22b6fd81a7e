"""What waits to be read is limited, whatever is sent and whoever waits: counted and measured."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.patience import STORY_S

import roundelay
from roundelay.runtime import reading
from roundelay.transport.address import free_addresses

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc"),
]

HOARDER = Path(__file__).with_name("hoarder.py")
FLOOD_S = 5.0
"""Enough for hundreds of megabytes."""
LIMIT_BYTES = 8 << 20
WINDOW_BYTES = 32 << 20
"""What an engine may keep for others, and its copies on the way; far less in practice."""


def hoard(size: int, duration_s: float, *, receipts: bool = False) -> dict[str, Any]:
    """Flood a process that reads nothing with messages of `size` bytes, for so long."""
    where = free_addresses("ab")
    limits = {"backlog_bytes": LIMIT_BYTES, "queue_bytes": 4 << 20}
    told = {"node": "b", "peers": where, "receipts": receipts, **limits}

    async def flood(hoarder: subprocess.Popen[str]) -> dict[str, Any]:
        assert hoarder.stdin is not None
        assert hoarder.stdout is not None
        async with (
            asyncio.timeout(STORY_S),
            roundelay.join("g", node="a", peers=where, queue_bytes=4 << 20) as group,
        ):
            group.ignore()
            await asyncio.to_thread(hoarder.stdout.readline)

            async def load() -> None:
                while True:
                    for _ in range(max(1, 100_000 // size)):
                        await group.send(bytes(size))
                    await asyncio.sleep(0)

            loading = asyncio.create_task(load())
            await asyncio.sleep(duration_s)
            hoarder.stdin.close()
            document: dict[str, Any] = json.loads(await asyncio.to_thread(hoarder.stdout.readline))
            loading.cancel()
            return document

    with subprocess.Popen(
        [sys.executable, str(HOARDER), json.dumps(told)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as hoarder:
        try:
            return asyncio.run(flood(hoarder))
        finally:
            hoarder.kill()


@pytest.mark.parametrize("size", [2_000_000, 20_000, 100])
def test_an_application_that_reads_nothing_takes_no_more_than_its_limit(size):
    """In pieces, whole, and many in a packet."""
    found = hoard(size, FLOOD_S)
    assert found["refused"] > 0
    assert LIMIT_BYTES / 2 < found["counted"] < LIMIT_BYTES * 1.5  # And what was on its way.
    assert found["grown"] < LIMIT_BYTES * 1.5 + WINDOW_BYTES


def test_who_reads_nothing_and_awaits_receipts_is_refused_in_the_end():
    """Its own messages come through while there is room, and then it is told."""
    found = hoard(200_000, FLOOD_S + 2 * reading.UNREAD_S, receipts=True)
    assert found["counted"] < LIMIT_BYTES + (6 << 20)
    assert found["grown"] < LIMIT_BYTES * 2 + WINDOW_BYTES
    (refusal,) = found["refusals"]
    assert "wait to be read: nobody reads them; read events, or call `ignore()`" in refusal


def test_pieces_of_a_message_larger_than_the_limit_are_let_through():
    async def story() -> None:
        where = free_addresses("ab")
        async with (
            asyncio.timeout(STORY_S),
            roundelay.join("g", node="a", peers=where) as a,
            roundelay.join("g", node="b", peers=where, backlog_bytes=1 << 20) as b,
        ):
            a.ignore()
            await b.wait_for()
            receipts = [await a.send(bytes([n]) * 5_000_000) for n in range(3)]
            sizes = []
            async for event in b:
                if isinstance(event, roundelay.Message):
                    sizes.append((event.payload[0], len(event.payload)))
                    if len(sizes) == len(receipts):
                        break
            assert sizes == [(n, 5_000_000) for n in range(3)]

    asyncio.run(story())


def test_a_reader_that_waits_for_the_group_is_never_left_waiting_by_its_own_backlog():
    """Whatever a sends, b answers, and awaits the receipt before it reads on."""

    async def story() -> None:
        where = free_addresses("ab")
        async with (
            asyncio.timeout(STORY_S),
            roundelay.join("g", node="a", peers=where) as a,
            roundelay.join("g", node="b", peers=where, backlog_bytes=1 << 20) as b,
        ):
            a.ignore()
            await b.wait_for()

            async def load() -> None:
                while True:
                    await a.send(bytes(20_000))

            loading = asyncio.create_task(load())
            answered = 0
            async for event in b:
                if isinstance(event, roundelay.Message) and event.sender == "a":
                    await (await b.send(b"answer"))
                    answered += 1
                if answered > 10 and b.status()["drops"]["refused"]:
                    break
            loading.cancel()
            assert b.status()["queues"]["bytes_to_read"] < 2 << 20

    asyncio.run(story())
