"""Own messages that take the short cut of `append_nowait` get the receipts that others get."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from roundelay.core.contract import QueueFullError as CoreFullError
from roundelay.core.effects import Appended
from roundelay.runtime.errors import ClosedError, NotPrimaryError, QueueFullError
from roundelay.runtime.log.api import Log
from roundelay.runtime.log.appending import Appending
from roundelay.runtime.log.receipts import RUN_MESSAGES

SESSION = 5


class Core:
    """Accepts so many messages."""

    def __init__(self, room):
        self.room = room
        self.accepted = []
        self.status = SimpleNamespace(log=SimpleNamespace(why="", state="open"))

    def append(self, payload, stamp_us, session=None, number=None):
        if type(payload) is not bytes:
            raise TypeError("bytes")
        if len(self.accepted) >= self.room:
            raise CoreFullError("full")
        self.accepted.append(payload)
        return len(self.accepted) - 1


def appended(run, *, room=1 << 20):
    """Run a test of a log that is open."""

    async def main():
        core: Any = Core(room)
        instruments: Any = SimpleNamespace(input_log=None)
        loop = asyncio.get_running_loop()
        appending = Appending(loop, core, instruments, lambda: None, lambda: 1_000)
        appending.set_open(True)
        driver: Any = SimpleNamespace(appending=appending)
        log = Log(driver)
        await run(log, appending)

    asyncio.run(main())


def test_messages_of_one_turn_have_consecutive_numbers_and_their_indexes():
    async def run(log, appending):
        receipts = [log.append_nowait(b"x") for _ in range(RUN_MESSAGES + 5)]
        assert [receipt.number for receipt in receipts] == [*range(RUN_MESSAGES + 5)]
        await asyncio.sleep(0)
        appending.on_appended(Appended(SESSION, 0, 3, 70))
        appending.on_appended(Appended(SESSION, 3, RUN_MESSAGES, 80))
        assert [receipt.index for receipt in receipts[:4]] == [70, 71, 72, 80]
        assert receipts[RUN_MESSAGES + 2].index == 80 + RUN_MESSAGES - 1
        assert not receipts[RUN_MESSAGES + 3].committed
        appending.on_appended(Appended(SESSION, RUN_MESSAGES + 3, 2, 5000))
        assert await receipts[-1] == 5001
        assert appending.last() is None

    appended(run)


def test_a_run_is_not_over_while_messages_of_this_turn_belong_to_it():
    async def run(log, appending):
        first = log.append_nowait(b"x")
        await asyncio.sleep(0)
        second, third = log.append_nowait(b"x"), log.append_nowait(b"x")
        appending.on_appended(Appended(SESSION, 0, 1, 70))
        assert (first.index, second.committed, third.committed) == (70, False, False)
        await asyncio.sleep(0)
        appending.on_appended(Appended(SESSION, 1, 2, 71))
        assert (second.index, third.index) == (71, 72)
        later = log.append_nowait(b"x")
        appending.on_appended(Appended(SESSION, 3, 1, 90))
        assert later.index == 90

    appended(run)


def test_the_short_cut_ends_when_the_log_closes():
    async def run(log, appending):
        log.append_nowait(b"x")
        log.append_nowait(b"x")
        appending.set_open(False)
        with pytest.raises(NotPrimaryError):
            log.append_nowait(b"x")
        appending.set_open(True)
        assert log.append_nowait(b"x").number == 2

    appended(run)


def test_what_the_short_cut_cannot_take_goes_the_long_way():
    async def run(log, appending):
        log.append_nowait(b"x")
        assert log.append_nowait(bytearray(b"y")).number == 1
        assert appending._core.accepted[1] == b"y"
        with pytest.raises(QueueFullError, match="await append"):
            log.append_nowait(b"x")

    appended(run, room=2)


def test_messages_of_a_turn_are_told_of_the_end():
    async def run(log, appending):
        log.append_nowait(b"x")
        receipt = log.append_nowait(b"x")
        appending.close(ClosedError("left"))
        with pytest.raises(ClosedError, match="left"):
            await receipt
        with pytest.raises(ClosedError, match="left"):
            log.append_nowait(b"x")

    appended(run)
