"""The port of a machine at a node, without a node."""

import asyncio
import gc
from collections.abc import Callable, Generator
from typing import Any

import pytest
from tests.jumping import jump

from roundelay.core.effects import Appended
from roundelay.core.ids import ViewId
from roundelay.core.log import NAMED, Entries, Head
from roundelay.group.body import pack
from roundelay.runtime.errors import (
    ClosedError,
    NotPrimaryError,
    SessionForgottenError,
    UncertainError,
)
from roundelay.runtime.log.entries import EntryBatch
from roundelay.runtime.replicas.port import NodePort
from roundelay.runtime.replicas.site import LATE_TICKS, Limit, Site
from roundelay.structures import Counter, GapError, Map, write
from roundelay.structures.replica import TICK, LogEntry, Replica, command_head
from roundelay.structures.values import dumps

TERM = ViewId(1, "a")


class Log:
    """Takes what is appended, if it is open, and knows nothing of what becomes of it."""

    def __init__(self) -> None:
        self.receipts: list[Any] = []
        self.payloads: list[bytes] = []
        self.error: Exception | None = None
        self.timeouts_s: list[float | None] = []
        self.primary = True
        self.voters = ("a", "b")

    def append_nowait(self, payload: bytes) -> Any:
        if self.error is not None:
            raise self.error
        self.payloads.append(payload)
        self.receipts.append(Receipt(len(self.receipts)))
        return self.receipts[-1]

    async def append(self, payload: bytes, timeout_s: float | None = None) -> Any:
        while self.error is not None:  # noqa: ASYNC110  # Nobody tells of it.
            await asyncio.sleep(0)
        self.timeouts_s.append(timeout_s)
        return self.append_nowait(payload)

    async def sync(self, timeout_s: float | None) -> int:
        return 5


SESSION = 7


def on(log: Log, make: Callable[[], Any] = Counter) -> NodePort[Any]:
    """The port of a machine on this log."""
    port = opened(NodePort(Site("a"), "", make))
    port.site._log = log  # type: ignore[assignment]
    port.site.session = SESSION
    return port


def batch(log: Log, index: int, first: int, session: int = SESSION) -> EntryBatch:
    """The entries of these commands and all that follow them."""
    payloads = log.payloads[first:]
    head = Head(index, TERM, "a", 1, session, first, len(payloads), 0, 0)
    return EntryBatch(Entries(head, pack(payloads)))


async def turns() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


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


def test_the_reply_of_a_named_command_that_only_a_snapshot_has_is_not_known():
    async def story() -> None:
        port = opened(NodePort(Site("a"), "", Counter))
        receipt: Any = Receipt(3)
        waiting = asyncio.create_task(port.site.settled(receipt, NAMED | 7, Limit(None)))
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


def test_of_a_named_command_that_is_not_known_to_be_committed_nothing_is_kept():
    async def story() -> None:
        site = opened(NodePort(Site("a"), "", Counter)).site
        receipts: list[Any] = [Receipt(3), Receipt(3)]
        calls = [asyncio.create_task(site.settled(r, NAMED | 7, Limit(None))) for r in receipts]
        await asyncio.sleep(0)
        receipts[0].settled.set_exception(UncertainError("not in time"))
        with pytest.raises(UncertainError):
            await calls[0]
        assert site._replies  # The other one waits.
        receipts[1].settled.set_exception(UncertainError("not in time"))
        with pytest.raises(UncertainError):
            await calls[1]
        assert (site._replies, site._committed, site._callers) == ({}, {}, {})

    asyncio.run(story())


def test_a_second_snapshot_changes_nothing_for_who_waits():
    async def story() -> None:
        port = opened(NodePort(Site("a"), "", Counter))
        receipt: Any = Receipt(3)
        waiting = asyncio.create_task(port.site.settled(receipt, NAMED | 7, Limit(None)))
        await asyncio.sleep(0)
        receipt.settled.set_result(0)
        await turns()
        state = snapshot_of(Counter(), command_head("") + dumps(["add", 1, 2]))
        for _ in range(2):  # Both are noticed in one turn of the loop.
            port.site.restore([state])
        await turns()
        assert await waiting == (0, None)

    asyncio.run(story())


class Newer(Counter):
    @write(version=2)
    def double(self) -> int:
        return self._become(self.number * 2)


def test_the_time_of_a_call_is_for_all_that_it_waits_for():
    async def story() -> None:
        log = Log()
        face = on(log, Newer).face
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        call = asyncio.ensure_future(face.double.within(3.0)())
        while not log.receipts:  # noqa: ASYNC110  # The clock jumps.
            await asyncio.sleep(0.1)
        waited_s = loop.time() - began_s  # For the versions of others.
        assert 1.4 < waited_s < 1.7
        assert log.timeouts_s == [pytest.approx(3.0 - 1.5)]
        log.receipts[0].settled.set_result(0)
        with pytest.raises(UncertainError, match="in the log at index 0, and was not done here"):
            await call
        assert loop.time() - began_s == pytest.approx(3.0)
        with pytest.raises(NotPrimaryError, match="index 4 was not applied"):
            await face.value.within(2.0)()
        assert loop.time() - began_s == pytest.approx(5.0)

    jump(story())


def test_replies_come_when_the_commands_are_applied():
    async def story() -> None:
        log = Log()
        port = on(log)
        face = port.face
        calls = [asyncio.ensure_future(face.add(n)) for n in (1, 2, 3)]
        calls.append(asyncio.ensure_future(face.add.within(5)(4)))
        placed = asyncio.ensure_future(face.add.placed(0))
        await turns()
        assert len(log.payloads) == 5
        calls[1].cancel()
        await turns()
        port.site.apply_all(batch(log, 0, 0, session=8))  # Of another node.
        await turns()
        assert not any(call.done() for call in (calls[0], *calls[2:]))
        port.site.apply_all(batch(log, 5, 0))
        log.receipts[3].settled.set_result(8)
        log.receipts[4].settled.set_result(9)
        assert await placed == (20, 9)
        assert await calls[0] == 11
        assert await calls[2] == 16
        assert await calls[3] == 20
        assert not port.site._issued

    asyncio.run(story())


def test_a_command_waits_for_the_log_to_open():
    async def story() -> None:
        log = Log()
        log.error = NotPrimaryError("not open")
        port = on(log)
        call = asyncio.ensure_future(port.face.add(1))
        await turns()
        assert not log.payloads
        log.error = None
        await turns()
        port.site.apply_all(batch(log, 0, 0))
        log.receipts[0].settled.set_result(0)
        assert await call == 1

    asyncio.run(story())


@pytest.mark.parametrize("timeout_s", [None, 5.0])
@pytest.mark.parametrize("before", [True, False])
def test_the_reply_of_a_command_that_only_a_snapshot_has_is_not_known(timeout_s, before):
    async def story() -> None:
        log = Log()
        port = on(log)
        add = port.face.add if timeout_s is None else port.face.add.within(timeout_s)
        calls = [asyncio.ensure_future(add(n)) for n in (1, 2)]
        await turns()
        if before:
            log.receipts[0].settled.set_result(0)
        await turns()
        port.site.restore([snapshot_of(Counter(), command_head("") + dumps(["add", 1, 1]))])
        await turns()
        if not before:
            log.receipts[0].settled.set_result(0)
        with pytest.raises(UncertainError, match="at index 0 and was done"):
            await calls[0]
        log.receipts[1].settled.set_result(1)
        await turns()
        port.site.apply_all(batch(log, 1, 1))
        assert await calls[1] == 3
        assert not port.site._issued

    asyncio.run(story())


def test_who_waits_is_told_that_the_session_was_forgotten_and_that_the_node_has_ended():
    async def story() -> None:
        log = Log()
        port = on(log)
        calls = [asyncio.ensure_future(port.face.add(n)) for n in (1, 2)]
        await turns()
        port.site._on_forgotten(Appended(SESSION, 0, 1, None, forgotten=True))
        with pytest.raises(SessionForgottenError):
            await calls[0]
        port.site.close(ClosedError("it has ended"))
        with pytest.raises(ClosedError, match="ended"):
            await calls[1]

    asyncio.run(story())


@pytest.mark.parametrize(("node", "first_tick"), [("a", 1), ("b", LATE_TICKS + 1)])
def test_a_node_ticks_if_the_one_that_should_does_not(node, first_tick):
    """The smallest voter may run no machine, and then knows nothing of times to live."""

    async def story() -> None:
        log = Log()
        port = on(log, Map[int])
        site = port.site
        site.node, site._members = node, lambda: ("a", "b")
        call = asyncio.ensure_future(port.face.set("k", 1, ttl_s=60.0))
        await turns()
        site.apply_all(batch(log, 0, 0))
        log.receipts[0].settled.set_result(0)
        await call
        site._announce = lambda: None  # type: ignore[method-assign]

        def look() -> None:
            site._tick()
            assert site._ticking is not None
            site._ticking.cancel()

        for _ in range(first_tick):
            assert TICK not in log.payloads
            look()
        assert log.payloads[-1] == TICK
        site.apply_all(batch(log, 1, 1))
        look()
        assert log.payloads.count(TICK) == (2 if node == "a" else 1)  # Entries come again.

    asyncio.run(story())


def test_a_watcher_is_told_that_a_snapshot_replaced_the_state():
    async def story() -> None:
        port = opened(NodePort(Site("a"), "", Map[int]))
        watching = asyncio.create_task(anext(port.face.watch()))
        await asyncio.sleep(0)
        port.site.restore([snapshot_of(Map())])
        with pytest.raises(GapError, match="snapshot"):
            await watching

    asyncio.run(story())


def test_a_watcher_watches_from_the_call_on_and_keeps_what_nobody_has_taken():
    async def story() -> None:
        log = Log()
        port = on(log, Map[int])
        watcher = port.face.watch("k")
        assert port.status()["watchers"] == 1
        for key in ("k1", "other", "k2"):
            call = asyncio.ensure_future(port.face.set(key, 1))
            await turns()
            port.site.apply_all(batch(log, len(log.payloads) - 1, len(log.payloads) - 1))
            await call
        assert (await anext(watcher)).key == "k1"
        assert (await anext(watcher)).key == "k2"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(watcher), 0)
        port.site.restore([snapshot_of(Map())])  # The watcher still watches.
        with pytest.raises(GapError):
            await anext(watcher)
        watcher.close()
        assert port.status()["watchers"] == 0

    asyncio.run(story())


def test_a_watcher_that_is_forgotten_watches_no_longer():
    async def story() -> None:
        log = Log()
        port = on(log, Map[int])
        watcher = port.face.watch()
        del watcher
        gc.collect()
        assert port.status()["watchers"] == 0
        call = asyncio.ensure_future(port.face.set("k", 1))
        await turns()
        port.site.apply_all(batch(log, 0, 0))
        await call
        assert port.machine.told is None  # It makes no changes for nobody.

    asyncio.run(story())


def test_a_watcher_gets_what_is_left_and_is_then_told_that_the_node_has_ended():
    async def story() -> None:
        log = Log()
        port = on(log, Map[int])
        watcher, other = port.face.watch(), port.face.watch()
        waiting = asyncio.create_task(anext(other))
        call = asyncio.ensure_future(port.face.set("k", 1))
        await turns()
        port.site.apply_all(batch(log, 0, 0))
        await call
        port.site.close(ClosedError("it has ended"))
        assert (await waiting).key == "k"
        assert [change.key for change in [await anext(watcher)]] == ["k"]
        for _ in range(2):
            with pytest.raises(ClosedError, match="ended"):
                await anext(watcher)

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
