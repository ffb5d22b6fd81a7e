"""A state machine on a log: what is applied when."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from tests.unit.runtime.log.test_feed import Log, entries, mark

from roundelay.core.log import Mark
from roundelay.runtime.errors import ClosedError, LogError
from roundelay.runtime.log.applying import NOW_ENTRIES, Applying
from roundelay.runtime.log.entries import Entry, EntryBatch


class Machine:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.fails = False

    def apply(self, entry: Entry) -> None:
        if self.fails:
            raise KeyError("x")
        self.seen.append(entry.index)

    def on_mark(self, mark: Mark) -> None:
        self.seen.append("mark")

    def snapshot(self) -> bytes:
        return b""

    def restore(self, chunks: Iterable[bytes]) -> None:
        pass


class Quick(Machine):
    """Takes what travelled together."""

    def apply_all(self, batch: EntryBatch) -> None:
        self.seen.append((batch.index, len(batch)))


class Story:
    """A log, and a machine on it."""

    def __init__(self, machine: Machine) -> None:
        self.log = Log()
        self.machine = machine
        self.errors: list[Exception] = []
        self.taken: list[int] = []
        self.why = ""
        """Why no snapshot can be stored."""
        self.applying = Applying(
            machine,
            self.log.feed,
            lambda: None,
            self._load,
            self._take,
            self.errors.append,
            snapshot=None,
            snapshot_bytes=1 << 20,
        )
        self.applying.start()

    async def _load(self, index: int, into: Any) -> int:
        raise AssertionError("nothing is restored here")

    async def _take(self, index: int, state: Any) -> str:
        self.taken.append(index)
        return self.why

    def end(self) -> None:
        self.applying.close(ClosedError("the end"))


async def turns() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


@pytest.mark.parametrize("machine", [Machine, Quick])
def test_a_little_is_applied_without_waiting_for_a_turn_and_once(machine):
    async def story() -> None:
        made = Story(machine())
        await turns()
        made.log.store(mark(0), entries(0, 2), commit=0)
        assert not made.applying.apply_now()
        made.log.feed.commit(2)
        assert made.applying.apply_now()
        assert made.applying.applied == 2
        assert not made.applying.apply_now()
        expected = ["mark", (0, 2)] if machine is Quick else ["mark", 0, 1]
        assert made.machine.seen == expected
        await turns()
        made.log.store(entries(2, 1), commit=3)
        await turns()
        assert made.machine.seen == [*expected, (2, 1) if machine is Quick else 2]
        made.end()

    asyncio.run(story())


def test_what_is_much_waits_for_its_turn():
    async def story() -> None:
        made = Story(Machine())
        await turns()
        made.log.store(entries(0, NOW_ENTRIES + 1), commit=NOW_ENTRIES + 1)
        assert not made.applying.apply_now()
        await turns()
        assert made.applying.applied == NOW_ENTRIES + 1
        made.end()

    asyncio.run(story())


def test_nothing_is_applied_while_a_snapshot_is_wanted():
    async def story() -> None:
        made = Story(Machine())
        made.log.store(entries(0, 1), commit=1)
        await turns()
        snapshot = asyncio.ensure_future(made.applying.snapshot())
        await asyncio.sleep(0)
        made.log.store(entries(1, 1), commit=2)
        assert not made.applying.apply_now()
        assert await snapshot in (1, 2)
        assert made.taken == [await snapshot]
        made.end()

    asyncio.run(story())


def test_who_asks_for_a_snapshot_is_told_why_there_is_none():
    async def story() -> None:
        made = Story(Machine())
        made.log.store(entries(0, 1), commit=1)
        await turns()
        assert await made.applying.snapshot() == 1
        made.log.store(entries(1, 1), commit=2)
        await turns()
        made.why = "No space left on device"
        with pytest.raises(LogError, match="no snapshot was stored: No space left"):
            await made.applying.snapshot()
        made.why = ""
        assert await made.applying.snapshot() == 2
        assert made.taken == [1, 2, 2]
        made.end()

    asyncio.run(story())


def test_a_machine_that_fails_at_once_ends_the_node():
    async def story() -> None:
        made = Story(Machine())
        await turns()
        made.machine.fails = True
        made.log.store(entries(0, 1), commit=1)
        assert not made.applying.apply_now()
        assert [type(error) for error in made.errors] == [KeyError]
        made.end()

    asyncio.run(story())
