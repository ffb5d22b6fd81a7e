"""Receipts, and the queue of what was delivered."""

import asyncio

import pytest

from roundelay.core.effects import Deliver
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.runtime.errors import ClosedError, FailedError
from roundelay.runtime.events import Batch, Position
from roundelay.runtime.inbox import MESSAGE_BYTES, Inbox
from roundelay.runtime.receipts import Receipt, Receipts

VIEW = View(ViewId(8, "a"), ("a", "b"))


def batch(first: int, *payloads: bytes) -> Batch:
    span = Span("a", 0, first, len(payloads))
    packet = Packet(span, Service.SAFE, b"".join(payloads))
    return Batch(Deliver(packet, VIEW.id, (1, 0), 40, payloads), VIEW)


def test_a_message_knows_where_it_is_and_whose():
    first, second = batch(7, b"x", b"y")
    assert (first.payload, first.sender, first.number) == (b"x", "a", 7)
    assert second.position == Position(ViewId(8, "a"), 41)
    assert str(second.position) == "8.a:41"
    assert second.safe
    assert second.view is VIEW
    assert repr(second) == "<Message 8.a:41 from a: b'y'>"


def test_a_receipt_tells_the_position_of_its_own_message():
    async def story() -> None:
        receipts = Receipts()
        third = receipts.give(3)
        assert receipts.give(3) is third
        receipts.resolve(Span("a", 0, 0, 3), Position(VIEW.id, 0), VIEW)
        assert third.position is None
        waiting = asyncio.create_task(_wait(third))
        await asyncio.sleep(0)
        assert receipts.awaited == 1
        receipts.resolve(Span("a", 0, 3, 2), Position(VIEW.id, 10), VIEW)
        assert await waiting == Position(VIEW.id, 10)
        assert await third == Position(VIEW.id, 10)
        assert third.view is VIEW
        assert receipts.awaited == 0

    asyncio.run(story())


@pytest.mark.parametrize("count", [2, 50])
def test_every_receipt_of_a_packet_is_resolved_and_no_other(count):
    receipts = Receipts()
    given = [receipts.give(number) for number in range(10)]
    receipts.resolve(Span("a", 0, 4, count), Position(VIEW.id, 100), VIEW)
    settled = {r.number: r.position.index for r in given if r.position is not None}
    assert settled == {n: 96 + n for n in range(4, min(10, 4 + count))}


def test_who_waits_for_a_receipt_learns_that_the_group_was_left():
    async def story() -> None:
        receipts = Receipts()
        receipt = receipts.give(0)
        waiting = asyncio.create_task(_wait(receipt))
        await asyncio.sleep(0)
        receipts.fail(ClosedError("left"))
        with pytest.raises(ClosedError, match="left"):
            await waiting
        with pytest.raises(ClosedError, match="left"):
            await receipt

    asyncio.run(story())


def test_a_cancelled_wait_leaves_nothing_behind():
    async def story() -> None:
        receipts = Receipts()
        receipt = receipts.give(0)
        waiting = asyncio.create_task(_wait(receipt))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert receipts.awaited == 0
        receipts.resolve(Span("a", 0, 0), Position(VIEW.id, 0), VIEW)
        assert await receipt == Position(VIEW.id, 0)

    asyncio.run(story())


async def _wait(receipt: Receipt) -> Position:
    return await receipt


def test_the_inbox_counts_what_waits():
    inbox = Inbox()
    inbox.put(batch(0, b"abc"))
    inbox.put(VIEW)
    assert inbox.bytes == 3 + MESSAGE_BYTES
    arrival = inbox.pop()
    assert isinstance(arrival, Batch)
    assert [message.payload for message in arrival] == [b"abc"]
    assert inbox.bytes == 0
    assert inbox.pop() is VIEW
    inbox.put(VIEW)
    inbox.ignore()
    inbox.put(VIEW)
    assert not inbox.waiting


def test_what_came_before_the_end_can_still_be_read():
    async def story() -> None:
        inbox = Inbox()
        reading = asyncio.create_task(inbox.ready())
        await asyncio.sleep(0)
        inbox.put(VIEW)
        assert await reading
        inbox.close(ClosedError("left"))
        assert await inbox.ready()
        inbox.pop()
        assert not await inbox.ready()

    asyncio.run(story())


def test_a_failure_is_told_to_whoever_reads():
    async def story() -> None:
        inbox = Inbox()
        reading = asyncio.create_task(inbox.ready())
        await asyncio.sleep(0)
        inbox.close(FailedError("the disk is gone"))
        with pytest.raises(FailedError, match="the disk is gone"):
            await reading

    asyncio.run(story())


def test_receipts_concern_what_is_not_before_the_first_of_them():
    receipts = Receipts()
    assert not receipts.may_concern(Span("a", 0, 0, 100))
    for number in (7, 9):
        receipts.give(number)
    assert not receipts.may_concern(Span("a", 0, 0, 7))
    assert receipts.may_concern(Span("a", 0, 0, 8))
    assert receipts.may_concern(Span("a", 0, 9))
    receipts.resolve(Span("a", 0, 5, 3), Position(VIEW.id, 0), VIEW)
    assert not receipts.may_concern(Span("a", 0, 8))
    assert receipts.may_concern(Span("a", 0, 9))
