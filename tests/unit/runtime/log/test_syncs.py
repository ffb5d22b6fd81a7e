"""Linearizable reads share probes, and none is answered by a probe that began before it."""

import asyncio

import pytest

from roundelay.core.effects import Synced
from roundelay.runtime.errors import ClosedError
from roundelay.runtime.log.syncs import Syncs


class Harness:
    def __init__(self) -> None:
        self.asked: list[int] = []
        self.open = True
        self.syncs = Syncs(asyncio.get_running_loop(), self.asked.append, lambda: self.open)

    async def read(self, count: int = 1) -> list["asyncio.Task[int]"]:
        tasks = [asyncio.create_task(self.syncs.sync()) for _ in range(count)]
        for _ in range(3):
            await asyncio.sleep(0)
        return tasks

    async def answer(self, length: int | None) -> None:
        self.syncs.on_synced(Synced(self.asked[-1], length))
        for _ in range(3):
            await asyncio.sleep(0)


def test_reads_that_come_together_share_a_probe():
    async def story() -> None:
        harness = Harness()
        reads = await harness.read(5)
        assert harness.asked == [1]
        await harness.answer(7)
        assert [read.result() for read in reads] == [7] * 5
        assert not harness.syncs.waits

    asyncio.run(story())


def test_a_read_is_not_answered_by_a_probe_that_began_before_it():
    async def story() -> None:
        harness = Harness()
        (first,) = await harness.read()
        (second,) = await harness.read()
        assert harness.asked == [1]
        await harness.answer(7)
        assert first.result() == 7
        assert not second.done()
        assert harness.asked == [1, 2]
        harness.syncs.on_synced(Synced(1, 99))  # An answer that is late, or repeated.
        await harness.answer(8)
        assert second.result() == 8

    asyncio.run(story())


def test_a_read_that_a_change_of_views_interrupts_is_asked_again_once_the_log_is_open():
    async def story() -> None:
        harness = Harness()
        (read,) = await harness.read()
        harness.open = False
        await harness.answer(None)
        assert harness.asked == [1]
        (later,) = await harness.read()
        assert harness.asked == [1]
        harness.open = True
        harness.syncs.on_changed()
        await asyncio.sleep(0)
        assert harness.asked == [1, 2]
        await harness.answer(9)
        assert (read.result(), later.result()) == (9, 9)

    asyncio.run(story())


def test_reads_that_gave_up_are_not_asked_for():
    async def story() -> None:
        harness = Harness()
        harness.open = False
        (read,) = await harness.read()
        read.cancel()
        await asyncio.sleep(0)
        assert not harness.syncs.waits, "reads that gave up are kept"
        harness.open = True
        harness.syncs.on_changed()
        for _ in range(3):
            await asyncio.sleep(0)
        assert harness.asked == []

    asyncio.run(story())


def test_reads_that_gave_up_while_they_were_asked_for_are_not_asked_again():
    async def story() -> None:
        harness = Harness()
        (read,) = await harness.read()
        read.cancel()
        harness.open = False
        await harness.answer(None)
        assert not harness.syncs.waits

    asyncio.run(story())


def test_the_end_of_the_group_ends_all_reads():
    async def story() -> None:
        harness = Harness()
        (asked,) = await harness.read()
        (waits,) = await harness.read()
        harness.syncs.close(ClosedError("left"))
        for read in (asked, waits):
            with pytest.raises(ClosedError, match="left"):
                await read
        with pytest.raises(ClosedError):
            await harness.syncs.sync()

    asyncio.run(story())
