"""Tasks that wait for a change, and give up."""

import asyncio

import pytest

from roundelay.runtime.waiters import Waiters


async def turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_those_are_woken_whose_number_is_reached():
    async def story() -> None:
        waiters = Waiters()
        tasks = [asyncio.ensure_future(waiters.wait(number)) for number in (5, 3, 0, 9)]
        await turns()
        waiters.wake(5)
        await turns()
        assert [task.done() for task in tasks] == [True, True, True, False]
        assert len(waiters) == 1
        waiters.wake()
        await turns()
        assert tasks[3].done()
        assert not waiters

    asyncio.run(story())


def test_who_gives_up_is_forgotten():
    async def story() -> None:
        waiters = Waiters()
        for _ in range(10):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(waiters.wait(), 0.0001)
        assert not waiters
        late = asyncio.ensure_future(waiters.wait())
        await turns()
        waiters.wake()
        late.cancel()  # At the same time.
        with pytest.raises(asyncio.CancelledError):
            await late

    asyncio.run(story())
