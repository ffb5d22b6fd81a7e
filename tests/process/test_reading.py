"""Reading events: whoever stops goes on at the next one, and nothing is lost."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from typing import Any

import pytest
from tests.patience import LIMIT_S, STORY_S

import roundelay
from roundelay.runtime.inbox import CHUNK_MESSAGES
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

TEN = [b"%d" % number for number in range(10)]
MANY = [b"%d" % number for number in range(3 * CHUNK_MESSAGES + 7)]


@asynccontextmanager
async def alone(sent: list[bytes], **settings: Any) -> AsyncIterator[roundelay.Group]:
    """A group of one node that nothing happens to any more, and has these messages to read, which
    came in one packet, and "end"."""
    async with (
        asyncio.timeout(STORY_S),
        roundelay.join("g", node="a", peers=free_addresses("a"), **settings) as group,
    ):
        await (await group.send(b"begin"))  # It is delivered once the node has found its view.
        while not any(map(_begins, await group.take())):
            pass
        for payload in sent:
            group.send_nowait(payload)
        if sent:
            await (await group.send(b"end"))
        yield group


def _begins(arrival: roundelay.Arrival) -> bool:
    return isinstance(arrival, roundelay.Batch) and arrival.payloads == (b"begin",)


async def one(group: roundelay.Group) -> bytes:
    """The next message, by an iteration that is left at once."""
    async for event in group:
        if isinstance(event, roundelay.Message):
            return event.payload
    raise AssertionError("the group was left")


def test_who_breaks_off_goes_on_at_the_next_event_at_once():
    async def story() -> None:
        async with alone(MANY) as group:
            assert [await one(group) for _ in MANY] == MANY

    asyncio.run(story())


def test_who_reads_one_by_one_gets_ten_of_ten_after_an_exception():
    async def story() -> None:
        async with alone(TEN) as group:
            found: list[bytes] = []
            while len(found) < len(TEN):
                try:
                    async for event in group:
                        if isinstance(event, roundelay.Message):
                            found.append(event.payload)
                            raise ArithmeticError
                except ArithmeticError:
                    pass
            assert found == TEN

    asyncio.run(story())


def test_a_wait_that_times_out_takes_nothing_and_ends_nothing():
    async def story() -> None:
        async with alone([]) as group:
            events = aiter(group)
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(events), 0.1)
            for payload in TEN:
                await group.send(payload)
            found = []
            for _ in TEN:
                event = await asyncio.wait_for(anext(events), LIMIT_S)
                assert isinstance(event, roundelay.Message)
                found.append(event.payload)
            assert found == TEN
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await anext(events)
            await group.leave()
            for _ in range(2):
                with pytest.raises(StopAsyncIteration):
                    await anext(events)

    asyncio.run(story())


def test_cancelling_at_any_moment_loses_nothing():
    """Readers are cancelled again and again while messages come, each at another moment."""

    async def story() -> None:
        async with alone([]) as group:
            found: list[bytes] = []

            async def read() -> None:
                async for event in group:
                    if isinstance(event, roundelay.Message):
                        found.append(event.payload)
                        if len(found) % 3 == 0:
                            await asyncio.sleep(0)

            async def write() -> None:
                for payload in MANY:
                    await group.send(payload)
                    await asyncio.sleep(0)

            writing = asyncio.create_task(write())
            turns = 0
            while len(found) < len(MANY):
                reading = asyncio.create_task(read())
                for _ in range(turns % 7):
                    await asyncio.sleep(0)
                reading.cancel()  # The next one begins before this one has noticed.
                turns += 1
            await writing
            assert found == MANY

    asyncio.run(story())


def test_one_loop_inside_another_takes_turns_with_it():
    async def story() -> None:
        async with alone(TEN) as group:
            found: list[bytes] = []
            async for event in group:
                if isinstance(event, roundelay.Message):
                    found.append(event.payload)
                    found.append(await one(group))
                if len(found) == len(TEN):
                    break
            assert found == TEN

    asyncio.run(story())


def test_the_rest_of_a_batch_that_was_begun_is_a_batch():
    async def story() -> None:
        async with alone(MANY) as group:
            first = [await one(group) for _ in range(CHUNK_MESSAGES)]
            then = await one(group)
            rest: list[roundelay.Message] = []
            async for arrival in group.batches():
                assert isinstance(arrival, roundelay.Batch)
                rest += arrival
                if rest[-1].payload == b"end":
                    break
            assert [*first, then, *(m.payload for m in rest[:-1])] == MANY
            assert [m.number for m in rest] == list(range(len(first) + 2, len(MANY) + 2))
            assert [m.position.index for m in rest] == [m.number for m in rest]

    asyncio.run(story())


def test_batches_can_be_left_and_gone_on_with():
    async def story() -> None:
        async with alone([]) as group:
            for payload in TEN:
                await (await group.send(payload))
            found: list[bytes] = []
            while len(found) < len(TEN):
                async for arrival in group.batches():
                    if isinstance(arrival, roundelay.Batch):
                        found += arrival.payloads
                        break
            assert found == TEN

    asyncio.run(story())


def test_who_reads_while_another_waits_is_told():
    async def story() -> None:
        async with alone([]) as group:
            waiting = asyncio.create_task(one(group))
            await asyncio.sleep(0.05)
            for iterator in (aiter(group), group.batches()):
                with pytest.raises(roundelay.ConfigError, match="read in one place only"):
                    await anext(iterator)
            await group.send(b"x")
            assert await waiting == b"x"

    asyncio.run(story())


def test_who_comes_back_while_another_task_reads_is_told():
    """Not one of them waits when the other asks; else they would share the messages for long."""

    async def story() -> None:
        async with alone([]) as group:
            for payload in TEN:
                await (await group.send(payload))
            found: list[bytes] = []

            async def read() -> None:
                async for event in group:
                    if isinstance(event, roundelay.Message):
                        found.append(event.payload)
                        await asyncio.sleep(0.01)

            tasks = [asyncio.create_task(read()) for _ in range(2)]
            done, (other,) = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            assert len(found) < len(TEN)
            with pytest.raises(roundelay.ConfigError, match="read in one place only"):
                await done.pop()
            while len(found) < len(TEN):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert found == TEN
            other.cancel()

    asyncio.run(story())


def test_who_tries_again_at_once_lets_others_run():
    async def story() -> None:
        async with alone([]) as group:
            waiting = asyncio.create_task(one(group))
            await asyncio.sleep(0.05)
            refused = 0

            async def insist() -> None:
                nonlocal refused
                while True:
                    try:
                        async for _ in group:
                            pass
                    except roundelay.ConfigError:
                        refused += 1

            insisting = asyncio.create_task(insist())
            await asyncio.sleep(0.05)
            insisting.cancel()
            await group.send(b"x")
            assert await waiting == b"x"
            assert refused

    asyncio.run(story())


# Without asyncio


@contextmanager
def blocking(**settings: Any) -> Iterator[roundelay.blocking.Group]:
    with roundelay.blocking.join("g", node="a", peers=free_addresses("a"), **settings) as group:
        group.wait_for(timeout_s=LIMIT_S)
        yield group


def one_blocking(group: roundelay.blocking.Group) -> bytes:
    for event in group:
        if isinstance(event, roundelay.Message):
            return event.payload
    raise AssertionError("the group was left")


def test_a_blocking_reader_that_returns_after_each_gets_all_of_a_thousand():
    with blocking() as group:
        sent = [b"%d" % number for number in range(1000)]
        for payload in sent:
            group.send_nowait(payload)
        assert [one_blocking(group) for _ in sent] == sent


def test_a_blocking_reader_can_change_to_batches():
    with blocking() as group:
        for payload in MANY:
            group.send_nowait(payload)
        found = [one_blocking(group)]
        for arrival in group.batches():
            if isinstance(arrival, roundelay.Batch):
                found += arrival.payloads
            if len(found) == len(MANY):
                break
        assert found == MANY


def test_what_a_blocking_reader_was_handed_goes_on_counting():
    with blocking() as group:
        for _ in range(10):
            group.send(bytes(10_000)).wait(LIMIT_S)
        one_blocking(group)
        assert group.status()["queues"]["bytes_to_read"] > 90_000
        for _ in range(9):
            one_blocking(group)
        group.send(b"next")
        one_blocking(group)
        assert group.status()["queues"]["bytes_to_read"] < 10_000


def test_two_blocking_readers_are_told():
    with blocking() as group:
        errors: list[Exception] = []

        def read() -> None:
            try:
                for _ in group:
                    pass
            except roundelay.ConfigError as e:
                errors.append(e)

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(0.5)
        assert [thread.is_alive() for thread in threads].count(True) == 1
        assert "read in one place only" in str(errors[0])
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def test_calls_under_way_when_the_group_is_left_are_told():
    """Sixteen threads send and wait for receipts while another leaves the group."""
    told: list[Exception] = []

    def work(group: roundelay.blocking.Group) -> None:
        try:
            while True:
                group.send(bytes(1000), safe=True).wait()
        except Exception as e:
            told.append(e)

    def watch(group: roundelay.blocking.Group) -> None:
        try:
            group.wait_for_view(lambda view: len(view.members) > 1)
        except Exception as e:
            told.append(e)

    for _ in range(3):
        told.clear()
        with blocking() as group:
            group.ignore()
            works = [work] * 16 + [watch] * 4
            threads = [threading.Thread(target=each, args=(group,)) for each in works]
            for thread in threads:
                thread.start()
            group.send(b"x").wait(LIMIT_S)
        for thread in threads:
            thread.join(LIMIT_S)
            assert not thread.is_alive(), "a call never returned"
        assert {type(error) for error in told} == {roundelay.ClosedError}
        assert len(told) == len(threads)


def test_the_blocking_interface_has_what_the_other_one_has():
    with blocking() as group:
        assert group.send_nowait(bytearray(b"x")) == 0
        receipt = group.send(b"y")
        place = receipt.result(LIMIT_S)
        assert (receipt.position, receipt.view) == (place, group.view)
        assert repr(receipt) == f"<Receipt of message 1: delivered at {place}>"
        with pytest.raises(roundelay.SendError):
            group.send_nowait("text")  # type: ignore[arg-type]
        group.ignore()
        group.send(b"z").wait(LIMIT_S)
        with pytest.raises(TimeoutError):
            group.wait_closed(0.01)
        group.leave()
        assert isinstance(group.wait_closed(), roundelay.ClosedError)
        assert list(islice(group, 1)) == []
    assert list(group) == []
    import roundelay.blocking as module

    assert module.join is roundelay.blocking.join
