"""Machines at real nodes: typed calls, what a minority may do, restarts, snapshots, watchers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
from tests.patience import LIMIT_S

import roundelay
from roundelay.structures import Change, Counter, Leader, Lock, Machine, Map, Queue, Refused
from roundelay.structures.replica import command_head
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process
M = TypeVar("M", bound=Machine)


class Trio(Generic[M]):
    """Nodes that replicate one machine, in one event loop."""

    def __init__(self, make: Callable[[], M], directory: Path, nodes: str = "abc") -> None:
        self._make = make
        self._directory = directory
        self._peers = free_addresses(nodes)
        self._running: dict[str, roundelay.Replicated[M]] = {}

    def __getitem__(self, node: str) -> M:
        return self._running[node].face

    async def start(self, node: str, make: Callable[[], M] | None = None) -> M:
        replicated = roundelay.replicate(
            make or self._make,
            "machine",
            node=node,
            peers=self._peers,
            journal=self._directory / node,
        )
        face = await replicated.__aenter__()
        self._running[node] = replicated
        return face

    async def stop(self, node: str) -> None:
        """End a node as its process would that fails: nothing is waited for."""
        await self._running.pop(node).group.leave(0.0)

    def group(self, node: str) -> roundelay.Group:
        return self._running[node].group

    async def until_open(self) -> None:
        async with asyncio.timeout(LIMIT_S):
            for replicated in self._running.values():
                await _open(replicated.face)

    async def close(self) -> None:
        for node in list(self._running):
            await self.stop(node)


async def _open(face: Machine) -> None:
    await face.port.until(lambda _: True if face.primary else None)


@contextlib.asynccontextmanager
async def trio(
    make: Callable[[], M], directory: Path, nodes: str = "abc"
) -> AsyncIterator[Trio[M]]:
    made = Trio(make, directory, nodes)
    try:
        for node in nodes:
            await made.start(node)
        await made.until_open()
        yield made
    finally:
        await made.close()


def run(story: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(2 * LIMIT_S):
            await story

    asyncio.run(limited())


def test_writes_of_all_nodes_count_once_and_reads_see_them(tmp_path):
    async def story() -> None:
        async with trio(Counter, tmp_path) as nodes:
            replies = await asyncio.gather(*(nodes[n].add() for n in "abc" for _ in range(50)))
            assert sorted(replies) == list(range(1, 151))
            assert [await nodes[n].value() for n in "abc"] == [150] * 3

    run(story())


def test_a_refusal_reaches_the_caller(tmp_path):
    async def story() -> None:
        async with trio(Map[int], tmp_path) as nodes:
            with pytest.raises(Refused, match="time to live"):
                await nodes["a"].set("k", 1, ttl_s=-1.0)

    run(story())


def test_a_minority_reads_what_it_knows_with_a_flag_and_cannot_write(tmp_path):
    async def story() -> None:
        async with trio(Counter, tmp_path) as nodes:
            left = nodes["a"]
            await left.add(5)
            await nodes.stop("b")
            await nodes.stop("c")
            async with asyncio.timeout(LIMIT_S):
                await left.port.until(lambda _: None if left.primary else True)
            assert (left.value.stale(), left.primary) == (5, False)
            with pytest.raises(roundelay.NotPrimaryError):
                await left.add.within(0.2)(1)
            with pytest.raises(roundelay.NotPrimaryError):
                await left.value.within(0.2)()
            waiting = asyncio.create_task(left.add(1))
            await nodes.start("b")
            assert await waiting == 6

    run(story())


def test_the_state_is_there_after_all_have_stopped(tmp_path):
    async def story() -> None:
        async with trio(Map[str], tmp_path) as nodes:
            await nodes["a"].set("colour", "red")
        async with trio(Map[str], tmp_path) as nodes:
            assert await nodes["c"].get("colour") == "red"

    run(story())


def test_a_snapshot_and_the_log_behind_it_give_the_state_back(tmp_path):
    async def story() -> None:
        async with trio(Counter, tmp_path) as nodes:
            await nodes["a"].add(5)
            await nodes["b"].value()
            applied = nodes["b"].index
            stored = await nodes.group("b").log.snapshot()
            assert applied <= stored <= nodes["b"].index  # Nodes may tell their versions now.
            await nodes["a"].add(5)
            await nodes.stop("b")
            again = await nodes.start("b")
            assert await again.value() == 10
            assert nodes.group("b").status()["log"]["snapshot"] > 0

    run(story())


def test_a_lock_of_a_node_that_ended_goes_to_the_next_without_any_other_command(tmp_path):
    async def story() -> None:
        async with trio(Lock, tmp_path) as nodes:
            hold = await nodes["a"].acquire()
            waiting = asyncio.create_task(nodes["b"].acquire())
            await nodes["c"].port.until(lambda lock: True if lock.waiting else None)
            await nodes.stop("a")
            assert (await waiting).token > hold.token
            assert hold.lost

    run(story())


def test_a_holder_is_told_when_its_log_is_not_open_any_more(tmp_path):
    async def story() -> None:
        async with trio(Lock, tmp_path) as nodes, nodes["a"].hold() as hold:
            assert not hold.lost
            told = asyncio.create_task(hold.until_lost())
            await nodes.stop("b")
            await nodes.stop("c")
            await told

    run(story())


def test_who_waits_too_long_or_is_cancelled_leaves_the_queue(tmp_path):
    async def story() -> None:
        async with trio(Lock, tmp_path) as nodes:
            hold = await nodes["a"].acquire()
            with pytest.raises(TimeoutError):
                await nodes["b"].acquire(timeout_s=0.1)
            cancelled = asyncio.create_task(nodes["b"].acquire())
            await nodes["a"].port.until(lambda lock: True if lock.waiting else None)
            cancelled.cancel()
            await nodes["a"].port.until(lambda lock: None if lock.waiting else True)
            await hold.release()
            assert await nodes["c"].holder() is None

    run(story())


def test_work_is_handed_over_and_done_once(tmp_path):
    async def story() -> None:
        async with trio(Queue[int], tmp_path) as nodes:
            jobs = [asyncio.create_task(nodes[n].take()) for n in "abcabc"]
            for item in range(6):
                await nodes["a"].put(item)
            found = [await job for job in jobs]
            assert sorted(job.value for job in found) == list(range(6))
            assert all([await job.done() for job in found])
            assert await nodes["b"].in_work() == 0

    run(story())


def test_commands_of_one_named_session_may_be_under_way_together(tmp_path):
    async def story() -> None:
        async with trio(Counter, tmp_path) as nodes:
            calls = [nodes["a"].add.once("billing", number)(1) for number in range(5)]
            assert await asyncio.gather(*calls) == [1, 2, 3, 4, 5]
            again = [nodes["a"].add.once("billing", 7)(1) for _ in range(3)]
            assert await asyncio.gather(*again) == [6, 6, 6]

    run(story())


def test_the_status_of_a_node_tells_of_its_machine(tmp_path):
    async def story() -> None:
        async with trio(Lock, tmp_path) as nodes:
            await nodes["a"].acquire()
            await nodes["b"].holder()
            told = nodes.group("b").status()["log"]["machines"][""]
            assert (told["kind"], told["holders"], told["watchers"]) == ("Lock", ["a"], 0)

    run(story())


def test_a_watcher_sees_changes_of_other_nodes(tmp_path):
    async def story() -> None:
        async with trio(Map[int], tmp_path) as nodes:
            seen: list[Change[int]] = []

            async def watch() -> None:
                async for change in nodes["b"].watch("k"):
                    seen.append(change)
                    if len(seen) == 3:
                        return

            watching = asyncio.create_task(watch())
            await asyncio.sleep(0)
            await nodes["a"].set("k", 1)
            await nodes["c"].delete("k")
            await nodes["c"].set("k2", 2, ttl_s=60.0)
            await watching
            assert [(c.key, c.value) for c in seen] == [("k", 1), ("k", None), ("k2", 2)]

    run(story())


def test_a_time_to_live_ends_although_nobody_writes(tmp_path):
    async def story() -> None:
        async with trio(Map[int], tmp_path) as nodes:
            await nodes["a"].set("k", 1, ttl_s=0.5)
            await nodes["a"].port.until(lambda m: True if not m._slots else None)
            assert await nodes["a"].get("k") is None

    run(story())


def test_a_command_of_a_named_session_is_done_once_through_any_node(tmp_path):
    async def story() -> None:
        async with trio(Counter, tmp_path) as nodes:
            assert await nodes["a"].add.once("billing", 0)(5) == 5
            assert await nodes["b"].add.once("billing", 0)(5) == 5
            assert await nodes["b"].add.once("billing", 1)(5) == 10
            with pytest.raises(roundelay.UncertainError, match="not known here any more"):
                await nodes["a"].add.once("billing", 0)(5)
            assert await nodes["c"].value() == 10

    run(story())


class NewCounter(Counter):
    """The next version of a counter."""

    @roundelay.write(version=2)
    def double(self) -> int:
        return self._become(self.number * 2)


async def upgraded(nodes: Trio[Counter], node: str) -> NewCounter:
    """Start a node anew, with the next version, and wait until all know it."""
    await nodes.stop(node)
    face = await nodes.start(node, NewCounter)
    assert isinstance(face, NewCounter)

    def known(_: Machine) -> bool | None:
        told = nodes.group("a").status()["log"]["machines"][""]
        return True if told["versions"].get(node) == 2 else None

    await nodes["a"].port.until(known)
    return face


def test_an_upgrade_node_by_node_loses_nothing_and_new_writes_wait_for_the_last(tmp_path):
    async def story() -> None:
        async with trio(Counter, tmp_path) as nodes:
            await nodes["a"].add(3)
            new = await upgraded(nodes, "a")
            assert await new.add(1) == 4
            with pytest.raises(roundelay.VersionError, match=r"b runs version 1.*upgrade b first"):
                await new.double()
            await upgraded(nodes, "b")
            with pytest.raises(roundelay.VersionError, match="upgrade c first"):
                await new.double()
            assert await nodes["c"].add(1) == 5
            last = await upgraded(nodes, "c")
            assert await last.double() == 10
            assert await new.double() == 20

    run(story())


def test_an_old_node_stops_at_a_command_that_it_does_not_know(tmp_path):
    async def story() -> None:
        async with trio(Counter, tmp_path) as nodes:
            await nodes["a"].add(3)
            old = nodes.group("b")
            new = await upgraded(nodes, "a")
            await upgraded(nodes, "c")
            await nodes.group("a").log.append(command_head("") + b'["double",2]')
            error = await old.wait_closed()
            assert str(error).endswith("upgrade this node first")
            await nodes.stop("b")
            again = await nodes.start("b", NewCounter)
            assert await again.value() == await new.value() == 6

    run(story())


def test_several_machines_share_a_log_and_nothing_else(tmp_path):
    async def story() -> None:
        peers = free_addresses("ab")
        async with contextlib.AsyncExitStack() as stack:
            found: list[tuple[Map[int], Map[int], Lock]] = []
            shops: list[roundelay.Replicas] = []
            for node in "ab":
                shop = roundelay.Replicas("s", node=node, peers=peers, journal=tmp_path / node)
                faces = (
                    shop.add("stock", Map[int]),
                    shop.add("sold", Map[int]),
                    shop.add("door", Lock),
                )
                found.append(faces)
                shops.append(await stack.enter_async_context(shop))
            (stock, sold, door), (other_stock, other_sold, other_door) = found
            await stock.set("apples", 3)
            await sold.set("apples", 1)
            assert await other_sold.get("apples") == 1
            assert other_stock.get.stale("apples") == 3
            async with door.hold():
                assert await other_door.try_acquire() is None
            assert await shops[1].group.log.snapshot() > 0
            told = shops[1].group.status()["log"]["machines"]
            assert {name: m["kind"] for name, m in told.items()} == {
                "stock": "Map",
                "sold": "Map",
                "door": "Lock",
            }
            with pytest.raises(roundelay.ConfigError, match="before"):
                shops[0].add("late", Counter)

    run(story())


def test_two_machines_of_one_name_are_refused(tmp_path):
    shop = roundelay.Replicas("s", node="a", peers=free_addresses("a"), journal=tmp_path / "a")
    shop.add("stock", Map[int])
    with pytest.raises(roundelay.ConfigError, match="'stock' already"):
        shop.add("stock", Counter)


def test_several_machines_without_asyncio(tmp_path):
    shop = roundelay.blocking.Replicas(
        "s", node="a", peers=free_addresses("a"), journal=tmp_path / "a"
    )
    stock, hits = shop.add("stock", Map[str]), shop.add("hits", Counter)
    with shop:
        stock.set.wait("colour", "red")
        assert hits.add.wait(2) == 2
        assert stock.get.wait("colour") == "red"
    with pytest.raises(roundelay.ClosedError):
        hits.add.wait()


def test_several_threads_use_what_a_face_gives_without_asyncio(tmp_path):
    shop = roundelay.blocking.Replicas(
        "s", node="a", peers=free_addresses("a"), journal=tmp_path / "a"
    )
    work, seen = shop.add("work", Queue[int]), shop.add("seen", Map[int])
    door, leader, hits = shop.add("door", Lock), shop.add("leader", Leader), shop.add("n", Counter)

    def worker(_: int) -> list[int]:
        found = []
        while (job := work.take.wait()).value >= 0:
            hold = door.acquire.wait()
            seen.set.wait(f"k{job.value}", hits.add.wait())
            assert hold.release.wait()
            assert job.done.wait()
            found.append(job.value)
        assert job.give_back.wait()
        return found

    with shop, ThreadPoolExecutor(5) as threads:
        changes = threads.submit(
            lambda watcher: [next(watcher) for _ in range(20)], seen.watch.wait("k")
        )
        workers = threads.map(worker, range(4))
        for n in range(20):
            work.put.wait(n)
        work.put.wait(-1, 1)
        assert sorted(value for found in workers for value in found) == list(range(20))
        assert sorted(change.value or 0 for change in changes.result()) == list(range(1, 21))
        assert work.in_work.wait() == 0
        term = leader.acquire.wait("10.0.0.7")
        now = next(leader.follow.wait())
        assert now is not None
        assert now.token == term.token
        lost = threads.submit(term.until_lost.wait)
        assert term.release.wait()
        lost.result(LIMIT_S)
        watcher = seen.watch.wait()
    with pytest.raises(roundelay.ClosedError):
        next(watcher)


def test_whoever_waits_is_told_that_the_node_has_ended(tmp_path):
    async def story() -> None:
        async with trio(Lock, tmp_path) as nodes:
            await nodes["a"].acquire()
            waiting = asyncio.create_task(nodes["b"].acquire())
            await nodes["b"].port.until(lambda lock: True if lock.waiting else None)
            face = nodes["b"]
            await nodes.stop("b")
            with pytest.raises(roundelay.ClosedError):
                await waiting
            with pytest.raises(roundelay.ClosedError):
                await face.holder()
            assert not face.primary

    run(story())


def test_the_same_without_asyncio(tmp_path):
    peers = free_addresses("a")
    with roundelay.blocking.replicate(
        Counter, "alone", node="a", peers=peers, journal=tmp_path / "a"
    ) as counter:
        assert counter.add.wait(2) == 2
        assert counter.value.wait() == 2
        assert counter.value.stale() == 2
    with pytest.raises(roundelay.ClosedError):
        counter.add.wait(1)
    with roundelay.blocking.replicate(
        Lock, "locks", node="a", peers=peers, journal=tmp_path / "locks"
    ) as lock:
        with lock.hold() as hold:
            assert lock.holder.wait() == "a"
            assert not hold.lost
        assert lock.holder.wait() is None


def test_waiting_in_the_event_loop_is_refused(tmp_path):
    async def story() -> None:
        async with trio(Counter, tmp_path, "a") as nodes:
            with pytest.raises(roundelay.ConfigError, match="use `await` here"):
                nodes["a"].add.wait(1)

    run(story())
