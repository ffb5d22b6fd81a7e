"""The log of real nodes in one process, as applications use it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.patience import LIMIT_S, holds, play

import roundelay
import roundelay.blocking
from roundelay.journal.files import OsFiles
from roundelay.runtime.log import opening
from roundelay.runtime.metrics import prometheus
from roundelay.runtime.replay import replay
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process


class Nodes:
    """The nodes of one group, in this process."""

    def __init__(self, directory: Path, names: str = "ab", **told: Any) -> None:
        self.directory = directory
        self.names = names
        self.told = told
        self.peers = free_addresses(tuple(names))
        self.groups: dict[str, roundelay.Group] = {}

    def make(self, node: str, **more: Any) -> roundelay.Group:
        told = {"journal": self.directory / node, **self.told, **more}
        return roundelay.join("g", node=node, peers=self.peers, **told)

    async def start(self, *nodes: str, **more: Any) -> list[roundelay.Group]:
        for node in nodes or self.names:
            self.groups[node] = self.make(node, **more)
            await self.groups[node].start()
            self.groups[node].ignore()
        for node in nodes or self.names:
            await self.groups[node].log.caught_up(LIMIT_S)
        return [self.groups[node] for node in nodes or self.names]

    async def stop(self, *nodes: str) -> None:
        for node in nodes or list(self.groups):
            await self.groups.pop(node).leave()


@contextlib.asynccontextmanager
async def running(directory: Path, names: str = "ab", **told: Any) -> AsyncIterator[Nodes]:
    nodes = Nodes(directory, names, **told)
    try:
        yield nodes
    finally:
        for group in nodes.groups.values():
            await group.leave(0.0)


async def read(group: roundelay.Group, count: int, start: int = 0) -> list[bytes]:
    """The payloads of so many entries from an index on."""
    found: list[bytes] = []
    reader = group.log.read(start)
    while len(found) < count:
        entry = await anext(reader)
        assert isinstance(entry, roundelay.Entry)
        assert entry.index == start + len(found)
        found.append(entry.payload)
    return found


def test_what_is_appended_is_read_everywhere_and_after_a_restart(tmp_path):
    async def story() -> None:
        async with running(tmp_path, record=tmp_path / "records") as nodes:
            a, b = await nodes.start()
            receipts = [await a.log.append(b"%d" % n) for n in range(100)]
            assert [await receipt for receipt in receipts] == list(range(100))
            large = await b.log.append(b"x" * 1_000_000)
            assert await large == 100
            wanted = [*(b"%d" % n for n in range(100)), b"x" * 1_000_000]
            assert await read(b, 101) == wanted
            assert await a.log.sync() == 101
            assert a.log.committed == 101
            assert a.log.voters == ("a", "b")
            id_before = a.log.id
            await nodes.stop()
            a, b = await nodes.start()
            assert a.log.id == id_before
            assert await read(a, 101) == wanted
            assert await (await b.log.append(b"later")) == 101
            assert await read(a, 2, 100) == [b"x" * 1_000_000, b"later"]
            await nodes.stop()
        records = sorted((tmp_path / "records").iterdir())
        assert len(records) == 4
        for record in records:
            found = replay(record)
            assert found.differs_at is None, found
            assert found.inputs

    play(story)


def test_entries_are_no_events_and_messages_no_entries(tmp_path):
    async def story() -> None:
        async with running(tmp_path) as nodes:
            nodes.groups["a"] = a = nodes.make("a")
            await a.start()
            await nodes.start("b")
            await a.log.caught_up()
            await (await a.log.append(b"entry"))
            await (await a.send(b"message"))
            await (await a.log.append(b"last"))
            async for event in a:
                if isinstance(event, roundelay.Message):
                    assert event.payload == b"message"
                    break
            assert await read(a, 2) == [b"entry", b"last"]

    play(story)


def test_without_a_majority_what_is_appended_waits_or_says_that_nothing_was_sent(tmp_path):
    async def story() -> None:
        async with running(tmp_path) as nodes:
            a, _ = await nodes.start()
            await (await a.log.append(b"first"))
            await nodes.stop("b")
            await holds(lambda: a.log.state == "closed")
            assert a.log.why
            with pytest.raises(roundelay.NotPrimaryError, match="nothing was sent"):
                a.log.append_nowait(b"never")
            with pytest.raises(roundelay.NotPrimaryError, match="needs"):
                await a.log.append(b"never", timeout_s=0.01)
            with pytest.raises(TimeoutError, match=r"not within 0.01 s: .*needs"):
                await a.log.sync(timeout_s=0.01)
            waits = await a.log.append(b"waits")
            assert waits.index is None
            calls = (a.log.sync, a.log.caught_up, lambda: anext(a.log.read()), lambda: waits)
            for call in calls * 3:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.001):
                        await call()
            assert not waiting(a), "those who gave up are kept"
            reading = asyncio.create_task(a.log.sync())
            assert a.log.committed == 1
            await nodes.start("b")
            assert await waits == 1
            assert await reading >= 1
            assert await read(nodes.groups["b"], 2) == [b"first", b"waits"]

    play(story)


def waiting(group: roundelay.Group) -> int:
    """How many wait for the log of a node."""
    driver = group._node.log  # type: ignore[union-attr]
    assert driver is not None
    (run,) = driver.appending.receipts.runs
    queues = (driver._changed, driver.feed._readers, driver.appending._waiting, driver.syncs._next)
    return sum(map(len, queues)) + len(run._futures)


def test_a_receipt_with_a_time_out_tells_that_its_message_is_uncertain(tmp_path):
    async def story() -> None:
        async with running(tmp_path) as nodes:
            a, b = await nodes.start()
            driver = a._node.log  # type: ignore[union-attr]
            assert driver is not None
            # The journal of b stands still, so nothing is committed, and the view stays open.
            stuck = asyncio.Event()
            b_driver = b._node.log  # type: ignore[union-attr]
            assert b_driver is not None
            loop = asyncio.get_running_loop()
            b_driver.writer.call(
                lambda: asyncio.run_coroutine_threadsafe(stuck.wait(), loop).result() and None
            )
            receipt = await a.log.append(b"slow", timeout_s=0.05)
            with pytest.raises(roundelay.UncertainError, match="may still be"):
                await receipt
            stuck.set()
            await holds(lambda: receipt.committed)
            assert await receipt == 0

    play(story)


def test_a_session_has_each_number_once_through_whichever_node(tmp_path):
    async def story() -> None:
        async with running(tmp_path) as nodes:
            a, b = await nodes.start()
            session = await a.log.session("billing-7")
            assert session.last == -1
            assert await (await session.append(b"debit", number=41)) == 0
            assert await (await session.append(b"debit", number=41)) == 0
            other = await b.log.session("billing-7")
            assert (other.id, other.last) == (session.id, 41)
            assert await (await other.append(b"debit", number=41)) == 0
            assert await (await other.append(b"credit")) == 1
            assert await read(a, 2) == [b"debit", b"credit"]
            with pytest.raises(roundelay.ConfigError, match="1 to 255 bytes"):
                await a.log.session("")

    play(story)


def test_readers_of_many_places_and_paces(tmp_path):
    async def story() -> None:
        async with running(tmp_path) as nodes:
            a, b = await nodes.start()
            late = a.log.read()
            receipts = [await a.log.append(b"%d" % n) for n in range(3000)]
            await receipts[-1]
            await b.log.sync()
            for start in (0, 1, 1500, 2999):
                assert await read(b, 3000 - start, start) == [b"%d" % n for n in range(start, 3000)]
            entry = await anext(late)
            assert isinstance(entry, roundelay.Entry)
            assert entry.index == 0
            sizes = 0
            async for batch in b.log.batches("first"):
                assert isinstance(batch, roundelay.EntryBatch)
                sizes += len(batch)
                if sizes == 3000:
                    break
            with pytest.raises(roundelay.ConfigError, match="no index"):
                a.log.read(-3)

    play(story)


class Sum:
    """A machine: the sum of all entries."""

    def __init__(self) -> None:
        self.total = 0
        self.applied: list[int] = []
        self.restored = 0
        self.snapshots = 0

    def apply(self, entry: roundelay.Entry) -> None:
        self.total += int(entry.payload)
        self.applied.append(entry.index)

    def snapshot(self) -> Iterable[bytes]:
        self.snapshots += 1
        digits = str(self.total).encode()
        return (digits[i : i + 1] for i in range(len(digits)))

    def restore(self, chunks: Iterable[bytes]) -> None:
        self.total = int(b"".join(chunks))
        self.restored += 1


def test_a_machine_follows_the_log_and_begins_with_its_snapshot(tmp_path):
    async def story() -> None:
        async with running(tmp_path) as nodes:
            machines = {node: Sum() for node in "ab"}
            for node, machine in machines.items():
                nodes.groups[node] = nodes.make(node, machine=machine)
                await nodes.groups[node].start()
            a, b = nodes.groups["a"], nodes.groups["b"]
            for n in range(10):
                await (await a.log.append(b"%d" % n))
            assert await b.log.sync() == 10
            assert machines["b"].total == 45
            assert await a.log.snapshot() == 10
            assert await a.log.snapshot() == 10
            assert machines["a"].snapshots == 1
            await (await a.log.append(b"100"))
            await nodes.stop()
            machines = {node: Sum() for node in "ab"}
            for node, machine in machines.items():
                nodes.groups[node] = nodes.make(node, machine=machine)
                await nodes.groups[node].start()
            for group in nodes.groups.values():
                assert await group.log.sync() == 11
            assert [m.total for m in machines.values()] == [145, 145]
            assert (machines["a"].restored, machines["a"].applied) == (1, [10])
            assert (machines["b"].restored, len(machines["b"].applied)) == (0, 11)

    play(story)


@pytest.mark.parametrize("damaged", [1, 2])
def test_a_damaged_snapshot_is_set_aside_and_the_state_made_without_it(tmp_path, caplog, damaged):
    async def story() -> None:
        async with running(tmp_path, "a") as nodes:
            machine = Sum()
            nodes.groups["a"] = a = nodes.make("a", machine=machine)
            await a.start()
            for n in (1, 10, 100):
                await (await a.log.append(b"%d" % n))
                if n < 100:
                    await a.log.snapshot()
            await nodes.stop()
            snapshots = sorted((tmp_path / "a" / "g" / "snapshots").glob("*.snap"))
            for path in snapshots[-damaged:]:
                flip_a_bit(path)
            machine = Sum()
            nodes.groups["a"] = a = nodes.make("a", machine=machine)
            await a.start()
            assert await a.log.sync() == 3
            assert machine.total == 111
            assert machine.applied == ([1, 2] if damaged == 1 else [0, 1, 2])
            where = "the one at entry 1" if damaged == 1 else "the beginning of the log"
            (warning,) = a.status()["warnings"]
            assert where in warning
            assert warning in caplog.text
            assert not snapshots[-1].exists()
            assert a.status()["log"]["snapshot"] == (1 if damaged == 1 else None)
            assert await a.log.snapshot() == 3

    play(story)


def test_without_snapshot_and_beginning_a_machine_does_not_start_and_says_what_to_do(tmp_path):
    async def story() -> None:
        small = {"snapshot_bytes": 1 << 20, "segment_bytes": 1 << 20}
        async with running(tmp_path, "a", **small) as nodes:
            nodes.groups["a"] = a = nodes.make("a", machine=Sum())
            await a.start()
            while not a.log.first:
                await (await a.log.append(b"1" + b" " * 400_000))
            await nodes.stop()
            snapshots = sorted((tmp_path / "a" / "g" / "snapshots").glob("*.snap"))
            kept = snapshots[-1].read_bytes()
            for path in snapshots:
                flip_a_bit(path)
            nodes.groups["a"] = a = nodes.make("a", machine=Sum())
            await a.start()
            error = await a.wait_closed()
            assert type(error) is roundelay.FailedError
            assert "is damaged" in str(error)
            assert "start this node with an empty directory" in str(error)
            assert "machine failed" not in str(error)
            await nodes.stop()
            with pytest.raises(roundelay.JournalError, match="copy the newest file"):
                await nodes.make("a", machine=Sum()).start()
            snapshots[-1].write_bytes(kept)
            await nodes.start(machine=Sum())

    play(story)


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 4  # In the digest.
    path.write_bytes(data)


def test_snapshots_are_taken_by_themselves_and_make_room(tmp_path):
    async def story() -> None:
        small = {"snapshot_bytes": 1 << 20, "segment_bytes": 1 << 20}
        async with running(tmp_path, "a", **small) as nodes:
            nodes.groups["a"] = a = nodes.make("a", machine=Sum())
            await a.start()
            for _ in range(60):
                await (await a.log.append(b"1" + b" " * 400_000))

            def trimmed() -> bool:
                return a.log.first > 0

            await holds(trimmed, 60)
            metrics = prometheus(a.status())
            for name, value in (("applied", 60), ("generation", 0)):
                assert f'roundelay_log_{name}{{group="g",node="a"}} {value}\n' in metrics
            snapshot = a.status()["log"]["snapshot"]
            assert f'roundelay_log_snapshot{{group="g",node="a"}} {snapshot}\n' in metrics
            with pytest.raises(roundelay.TruncatedError) as told:
                await anext(a.log.read(0))
            assert told.value.first == a.log.first

    play(story)


def test_a_machine_that_fails_ends_its_node_with_the_index(tmp_path, caplog):
    async def story() -> None:
        async with running(tmp_path, "a") as nodes:
            nodes.groups["a"] = a = nodes.make("a", machine=Sum())
            await a.start()
            await (await a.log.append(b"1"))
            await a.log.append(b"no number")
            error = await a.wait_closed()
            assert isinstance(error, roundelay.FailedError)
            assert "the machine failed at entry 1 (ValueError" in str(error)
            assert "the machine failed at entry 1" in caplog.text

    play(story)


class Failing(OsFiles):
    """Files whose disk fails."""

    failing = False

    def fdatasync(self, fd: int) -> None:
        if self.failing:
            raise OSError(5, "Input/output error")
        super().fdatasync(fd)


def test_a_failing_disk_ends_the_node_with_a_disk_error(tmp_path, monkeypatch):
    async def story() -> None:
        files = Failing()
        async with running(tmp_path, "ab") as nodes:
            with monkeypatch.context() as patch:
                patch.setattr(opening, "make_files", lambda: files)
                nodes.groups["a"] = a = nodes.make("a")
                await a.start()
            await nodes.start("b")
            await (await a.log.append(b"1"))
            files.failing = True
            receipt = await a.log.append(b"2")
            error = await a.wait_closed()
            assert isinstance(error, roundelay.DiskError)
            assert "Input/output error" in str(error)
            with pytest.raises(roundelay.DiskError):
                await receipt
            with pytest.raises(roundelay.DiskError):
                await a.log.append(b"3")
            files.failing = False
            await nodes.stop("a")
            await nodes.start("a")

    play(story)


def test_a_journal_in_use_or_of_another_node_is_refused(tmp_path):
    async def story() -> None:
        async with running(tmp_path, "ab") as nodes:
            nodes.groups["a"] = a = nodes.make("a")
            await a.start()
            with pytest.raises(roundelay.JournalError, match="in use by a running node"):
                await nodes.make("b", journal=tmp_path / "a").start()
            await nodes.stop("a")
            with pytest.raises(roundelay.JournalError, match="belongs to node 'a'"):
                await nodes.make("b", journal=tmp_path / "a").start()
            nodes.groups["a"] = nodes.make("a")
            await nodes.groups["a"].start()

    play(story)


def test_two_logs_of_one_group_end_in_a_fork_error(tmp_path):
    """Both founders lost their disks and founded another log; the third brings the old one."""

    async def story() -> None:
        async with running(tmp_path, "abc") as nodes:
            await nodes.start()
            await (await nodes.groups["a"].log.append(b"old"))
            for node in "abc":
                await nodes.groups[node].log.sync()
            await nodes.stop()
            for node in "ab":
                (tmp_path / node).rename(tmp_path / f"lost {node}")
            third = nodes.peers
            # Without c they found a log of their own.
            nodes.peers = {name: address for name, address in third.items() if name != "c"}
            a, _ = await nodes.start("a", "b")
            await (await a.log.append(b"new"))
            nodes.peers = third
            nodes.groups["c"] = c = nodes.make("c")
            await c.start()
            await nodes.stop("a", "b")
            nodes.groups["a"], nodes.groups["b"] = nodes.make("a"), nodes.make("b")
            await nodes.groups["a"].start()
            await nodes.groups["b"].start()
            error = await c.wait_closed()
            assert isinstance(error, roundelay.ForkError)

    play(story)


def test_a_node_without_a_journal_does_not_meet_those_with_one(tmp_path):
    async def story() -> None:
        async with running(tmp_path, "ab") as nodes:
            nodes.groups["a"] = a = nodes.make("a")
            nodes.groups["b"] = b = nodes.make("b", journal=None)
            await a.start()
            await b.start()
            await holds(lambda: any("journal" in w for w in a.status()["warnings"]))
            await holds(lambda: any("journal" in w for w in b.status()["warnings"]))
            assert a.view.members == ("a",)
            with pytest.raises(roundelay.ConfigError, match="join the group with journal"):
                _ = b.log

    play(story)


def test_the_blocking_interface(tmp_path):
    peers = free_addresses(("a",))
    with roundelay.blocking.join("g", node="a", peers=peers, journal=tmp_path / "a") as group:
        log = group.log
        assert log.caught_up(LIMIT_S) == 0
        receipt = log.append(b"one")
        assert receipt.wait(LIMIT_S) == 0
        assert (receipt.committed, receipt.index, receipt.result()) == (True, 0, 0)
        assert log.append_nowait(b"two").wait(LIMIT_S) == 1
        session = log.session("s", LIMIT_S)
        assert session.append(b"three", 7).wait(LIMIT_S) == 2
        assert session.append(b"three", 7).wait(LIMIT_S) == 2
        assert session.append_all([b"three", b"four", b"five"], 7, LIMIT_S) == 4
        assert session.append_all([b"five"], 9) == 4
        assert (len(log.id), log.generation) == (32, 0)
        assert log.sync(LIMIT_S) == 5
        entries = []
        for entry in log.read(0):
            assert isinstance(entry, roundelay.Entry)
            entries.append(entry.payload)
            if len(entries) == 5:
                break
        assert entries == [b"one", b"two", b"three", b"four", b"five"]
        assert (log.first, log.committed, log.primary, log.voters) == (0, 5, True, ("a",))
        assert (log.state, log.condition, log.why) == ("open", "able", "")
        with pytest.raises(roundelay.ConfigError, match="no machine"):
            log.snapshot()
        late = iter(log.batches(4))
        assert len(next(late)) == 1
    with pytest.raises(StopIteration):
        next(late)
    plain = roundelay.blocking.join("h", node="a", peers=free_addresses(("a",)))
    with plain as group, pytest.raises(roundelay.ConfigError, match="journal"):
        _ = group.log
