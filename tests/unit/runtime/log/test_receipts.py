"""Receipts of appended messages."""

import asyncio

import pytest

from roundelay.core.effects import Appended
from roundelay.runtime.errors import ClosedError, SessionForgottenError, UncertainError
from roundelay.runtime.log.receipts import RUN_MESSAGES, LogReceipt, LogReceipts, SessionReceipt

OWN, NAMED = 5, 1 << 63 | 7


def given(receipts: LogReceipts, count: int) -> list[LogReceipt]:
    return [LogReceipt((receipts.own(number), number, None)) for number in range(count)]


async def _wait(receipt):
    return await receipt


def test_packets_settle_the_receipts_of_their_messages_and_no_others():
    receipts = LogReceipts()
    ours = given(receipts, 10)
    receipts.on_appended(Appended(OWN, 0, 4, 100))
    receipts.on_appended(Appended(OWN, 4, 3, 200))
    assert [r.index for r in ours] == [100, 101, 102, 103, 200, 201, 202, None, None, None]
    assert [r.committed for r in ours] == [True] * 7 + [False] * 3
    assert receipts.waits
    receipts.on_appended(Appended(OWN, 7, 3, 300))
    assert ours[9].index == 302
    assert not receipts.waits


def test_a_packet_may_end_one_run_and_begin_the_next():
    receipts = LogReceipts()
    ours = given(receipts, RUN_MESSAGES + 5)
    receipts.on_appended(Appended(OWN, 0, RUN_MESSAGES - 1, 0))
    receipts.on_appended(Appended(OWN, RUN_MESSAGES - 1, 3, 5000))
    assert ours[RUN_MESSAGES - 1].index == 5000
    assert ours[RUN_MESSAGES + 1].index == 5002
    assert ours[RUN_MESSAGES + 2].index is None


def test_an_own_message_whose_index_went_with_the_old_log_is_uncertain():
    async def story() -> None:
        receipts = LogReceipts()
        ours = given(receipts, 2)
        receipts.on_appended(Appended(OWN, 0, 2, None))
        assert ours[0].committed
        with pytest.raises(UncertainError, match="committed, and at which index is not known"):
            await ours[0]

    asyncio.run(story())


def test_who_waits_is_told_when_its_own_message_is_committed():
    async def story() -> None:
        receipts = LogReceipts()
        first, second = given(receipts, 2)
        waiting = asyncio.create_task(_wait(second))
        await asyncio.sleep(0)
        receipts.on_appended(Appended(OWN, 0, 1, 7))
        await asyncio.sleep(0)
        assert not waiting.done()
        receipts.on_appended(Appended(OWN, 1, 1, 9))
        assert await waiting == 9
        assert await first == 7

    asyncio.run(story())


def test_a_message_that_is_late_is_uncertain_until_it_is_known():
    async def story() -> None:
        receipts = LogReceipts()
        deadline = asyncio.get_running_loop().time() + 0.01
        receipt = LogReceipt((receipts.own(0), 0, deadline))
        with pytest.raises(UncertainError, match="may still be"):
            await receipt
        receipts.on_appended(Appended(OWN, 0, 1, 3))
        assert await receipt == 3

    asyncio.run(story())


def test_the_end_of_the_group_ends_all_waiting():
    async def story() -> None:
        receipts = LogReceipts()
        (receipt,) = given(receipts, 1)
        waiting = asyncio.create_task(_wait(receipt))
        await asyncio.sleep(0)
        receipts.fail(ClosedError("left"))
        with pytest.raises(ClosedError, match="left"):
            await waiting
        with pytest.raises(ClosedError):
            await receipt

    asyncio.run(story())


def test_a_repeated_message_of_a_session_has_the_first_ones_index():
    async def story() -> None:
        receipts = LogReceipts()
        once = SessionReceipt((receipts.named(NAMED, 41), 41, None))
        twice = SessionReceipt((receipts.named(NAMED, 41), 41, None))
        receipts.on_appended(Appended(NAMED, 41, 1, 12))
        assert (await once, await twice) == (12, 12)
        assert not receipts.waits

    asyncio.run(story())


def test_a_number_so_old_that_nobody_knows_its_index():
    async def story() -> None:
        receipts = LogReceipts()
        receipt = SessionReceipt((receipts.named(NAMED, 3), 3, None))
        receipts.on_appended(Appended(NAMED, 3, 1, None))
        assert await receipt is None
        assert receipt.committed

    asyncio.run(story())


def test_when_the_own_session_is_forgotten_the_rest_is_refused():
    async def story() -> None:
        receipts = LogReceipts()
        first, second = given(receipts, 2)
        receipts.on_appended(Appended(OWN, 0, 1, 7))
        receipts.on_appended(Appended(OWN, 1, 1, None, forgotten=True))
        assert await first == 7
        with pytest.raises(SessionForgottenError):
            await second
        assert not second.committed
        assert not receipts.waits

    asyncio.run(story())


def test_a_forgotten_session_refuses_its_messages():
    async def story() -> None:
        receipts = LogReceipts()
        receipt = SessionReceipt((receipts.named(NAMED, 3), 3, None))
        receipts.on_appended(Appended(NAMED, 3, 1, None, forgotten=True))
        with pytest.raises(SessionForgottenError):
            await receipt

    asyncio.run(story())
