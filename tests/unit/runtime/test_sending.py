"""Sending: when accepted messages leave."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from roundelay.runtime.meter import Meter
from roundelay.runtime.sending import Sending


class Core:
    """A queue without an end."""

    def __init__(self) -> None:
        self.accepted = 0

    @property
    def status(self) -> "Core":
        return self

    def accept(self, *message: object) -> int:
        self.accepted += 1
        return self.accepted - 1


class Sender:
    """An application, and how many messages each flush had."""

    def __init__(self) -> None:
        self.flushes: list[int] = []
        self._core = Core()
        self._flushed = 0
        instruments: Any = SimpleNamespace(meter=Meter(), input_log=None)
        core: Any = self._core
        self._sending = Sending(asyncio.get_running_loop(), core, instruments, self._flush)

    def send(self, count: int = 1) -> None:
        for _ in range(count):
            self._sending.accept(b"x")
            self._sending.hurry()

    def _flush(self) -> None:
        self.flushes.append(self._core.accepted - self._flushed)
        self._flushed = self._core.accepted


def play(story: Callable[[Sender], Awaitable[None]]) -> list[int]:
    async def told() -> list[int]:
        sender = Sender()
        await story(sender)
        await turn()
        return sender.flushes

    return asyncio.run(told())


async def turn() -> None:
    await asyncio.sleep(0)


def test_messages_of_one_turn_leave_together():
    async def story(sender: Sender) -> None:
        for _ in range(3):
            sender.send(5)
            assert sum(sender.flushes) % 5 == 0
            await turn()

    assert play(story) == [5, 5, 5]


def test_a_message_that_is_likely_to_stay_alone_leaves_at_once():
    async def story(sender: Sender) -> None:
        sender.send()
        assert sender.flushes == []
        await turn()
        for sent in (2, 3):
            sender.send()
            assert len(sender.flushes) == sent
            await turn()

    assert play(story) == [1, 1, 1]


def test_one_that_did_not_stay_alone_is_the_last_to_leave_at_once():
    async def story(sender: Sender) -> None:
        sender.send()
        await turn()
        sender.send(4)
        assert sender.flushes == [1, 1]
        await turn()
        sender.send(4)
        assert sender.flushes == [1, 1, 3]

    assert play(story) == [1, 1, 3, 4]


def test_whoever_sends_two_in_a_turn_has_them_leave_together_from_the_next_turn_on():
    async def story(sender: Sender) -> None:
        sender.send()
        await turn()
        for _ in range(4):
            sender.send(2)
            await turn()

    assert play(story) == [1, 1, 1, 2, 2, 2]
