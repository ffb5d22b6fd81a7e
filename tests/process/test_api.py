"""The group as an application sees it: nodes in one process, over real sockets."""

import asyncio
import json
import logging
import pickle
import socket
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.patience import LIMIT_S, holds, play

import roundelay
from roundelay.group.engines import describe, engines_in_views
from roundelay.runtime import control
from roundelay.runtime.ports import Ports
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process


def peers(nodes: str) -> dict[str, str]:
    return free_addresses(nodes)


@asynccontextmanager
async def cluster(nodes: str, **settings: Any) -> AsyncIterator[list[roundelay.Group]]:
    """These nodes, together in one view."""
    where = peers(nodes)
    async with AsyncExitStack() as stack:
        groups = []
        for node in nodes:
            group = roundelay.join("g", node=node, peers=where, **settings)
            groups.append(await stack.enter_async_context(group))
        for group in groups:
            await group.wait_for(timeout_s=LIMIT_S)
        yield groups


async def messages(group: roundelay.Group, count: int) -> list[roundelay.Message]:
    """The next so many messages."""
    found: list[roundelay.Message] = []
    async for event in group:
        if isinstance(event, roundelay.Message):
            found.append(event)
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize(
    "engine", [name for name in engines_in_views() if describe(name).orders_all]
)
def test_everybody_gets_everything_in_one_order(engine):
    async def story() -> None:
        async with cluster("abc", engine=engine) as groups:
            for number in range(50):
                for group in groups:
                    await group.send(b"%d" % number, safe=number % 7 == 0)
            logs = [await messages(group, 150) for group in groups]
            orders = [[(m.position, m.sender, m.payload) for m in log] for log in logs]
            assert orders[0] == orders[1] == orders[2]
            mine = [m.payload for m in logs[0] if m.sender == "b"]
            assert mine == [b"%d" % number for number in range(50)]

    play(story)


@pytest.mark.parametrize(
    "settings",
    [
        {"engine": "fifo"},
        {"datagram_bytes": 1400},
        {"engine": "st"},
        {"engine": "st", "datagram_bytes": 576},
    ],
)
def test_large_and_empty_messages_arrive_whole(settings):
    async def story() -> None:
        async with cluster("ab", **settings) as (a, b):
            sent = [b"", b"x" * 300_000, b"y"]
            for payload in sent:
                a.send_nowait(payload)
            assert [m.payload for m in await messages(b, 3)] == sent

    play(story)


def test_an_answer_comes_after_its_question():
    async def story() -> None:
        async with cluster("abc", engine="causal") as (a, b, c):
            for number in range(20):
                a.send_nowait(b"question %d" % number)
                await messages(b, 1)
                await b.send(b"answer %d" % number)
                await messages(b, 1)
            said = [m.payload for m in await messages(c, 40)]
            for number in range(20):
                assert said.index(b"question %d" % number) < said.index(b"answer %d" % number)

    play(story)


def test_multicast():
    async def story() -> None:
        port = peers("x")["x"].rpartition(":")[2]
        async with cluster("abc", multicast=f"239.77.12.6:{port}") as groups:
            await groups[1].send(b"to all")
            for group in groups:
                assert [m.payload for m in await messages(group, 1)] == [b"to all"]
            assert groups[0].status()["drops"]["own"] > 0  # What it sent, it heard itself.

    play(story)


def test_a_receipt_tells_where_the_message_is():
    async def story() -> None:
        async with cluster("ab") as (a, b):
            receipts = [await a.send(b"%d" % n, safe=True) for n in range(5)]
            places = [await receipt for receipt in receipts]
            assert [m.position for m in await messages(b, 5)] == places
            assert receipts[0].view is not None
            assert receipts[0].view.members == ("a", "b")

    play(story)


def test_destinations_where_the_engine_can():
    async def story() -> None:
        async with cluster("abc", engine="fifo") as (a, b, c):
            await a.send(b"for b", to=["b"])
            await a.send(b"for all")
            assert [m.payload for m in await messages(b, 2)] == [b"for b", b"for all"]
            assert [m.payload for m in await messages(c, 1)] == [b"for all"]
        async with cluster("ab") as (a, _):
            with pytest.raises(roundelay.SendError, match="without destinations"):
                a.send_nowait(b"x", to=["b"])

    play(story)


def test_a_message_for_nobody_is_refused_before_it_is_queued():
    async def story() -> None:
        async with cluster("ab", engine="fifo") as (a, b):
            a.send_nowait(b"first")
            for to, sentence in (([], "names nobody"), (["b", "zz"], "the peers are a, b")):
                with pytest.raises(roundelay.SendError, match=sentence):
                    await a.send(b"x", to=to)
                with pytest.raises(roundelay.SendError, match=sentence):
                    a.send_nowait(b"x", to=to)
            receipt = await a.send(b"for b", to=["b", "b"])
            assert receipt.number == 1
            assert [m.payload for m in await messages(b, 2)] == [b"first", b"for b"]

    play(story)


def test_what_is_not_bytes_is_refused_and_the_group_goes_on():
    async def story() -> None:
        async with cluster("ab") as (a, b):
            for payload in ("text", b"fine", "text again"):  # The last one while another waits.
                if isinstance(payload, bytes):
                    a.send_nowait(payload)
                    continue
                with pytest.raises(roundelay.SendError, match="bytes, not str"):
                    a.send_nowait(payload)  # type: ignore[arg-type]
            with pytest.raises(roundelay.SendError, match="bytes, not int"):
                await a.send(7)  # type: ignore[arg-type]
            assert [m.payload for m in await messages(b, 1)] == [b"fine"]

    play(story)


def test_what_can_be_changed_is_sent_as_it_was():
    async def story() -> None:
        async with cluster("ab") as (a, b):
            changed = bytearray(b"12")
            a.send_nowait(changed)
            a.send_nowait(changed)  # While another waits, which is another way in.
            await a.send(memoryview(changed)[::-1])
            changed[:] = b"xx"
            assert [m.payload for m in await messages(b, 3)] == [b"12", b"12", b"21"]

    play(story)


def test_a_message_is_a_value():
    async def story() -> None:
        async with cluster("ab") as (a, b):
            for payload in (b"1", b"1"):
                a.send_nowait(payload)
            at_a, at_b = await messages(a, 2), await messages(b, 2)
            assert at_a == at_b
            assert at_a[0] != at_a[1]
            assert len({*at_a, *at_b}) == 2
            assert repr(at_a[0]) == f"<Message {at_a[0].position} from a: b'1'>"
            assert pickle.loads(pickle.dumps(at_a[0])) == at_a[0]
            for name in ("payload", "offset", "sender", "new"):
                with pytest.raises(AttributeError):
                    setattr(at_a[0], name, b"other")
            with pytest.raises(TypeError):
                sorted(at_a)

    play(story)


def test_waiting_for_those_who_cannot_come_is_an_error_at_once():
    async def story() -> None:
        where = {**peers("a"), "b": "127.0.0.1:9", "abc": "127.0.0.1:10"}
        async with roundelay.join("g", node="a", peers=where, timeout_s=0.1) as group:
            for members, told in (
                ("abc", r"wait_for\(\['abc'\]\)"),
                (["a", "d"], "'d' is none of the peers and will never come; .* a, abc, b"),
                ([7], "7 is none of the peers"),
            ):
                with pytest.raises(roundelay.ConfigError, match=told):
                    await group.wait_for(members)  # type: ignore[arg-type]
            with pytest.raises(TimeoutError, match=r"not within 0.1 s: abc, b did not come"):
                await group.wait_for(timeout_s=0.1)
            with pytest.raises(TimeoutError, match="not the primary one"):
                await group.wait_for(["a"], primary=True, timeout_s=0.1)

    play(story)


def test_a_receipt_shows_what_it_is():
    async def story() -> None:
        async with cluster("ab") as (a, _):
            receipt = await a.send(b"x")
            assert repr(receipt) == "<Receipt of message 0: not delivered yet>"
            place = await receipt
            assert repr(receipt) == f"<Receipt of message 0: delivered at {place}>"

    play(story)


def test_an_event_loop_that_ends_without_leaving_holds_nothing(tmp_path):
    """Also not the state directory and the control socket."""
    with tempfile.TemporaryDirectory(prefix="rd") as directory:
        settings: dict[str, Any] = {
            "peers": peers("a"),
            "state": tmp_path / "state",
            "control": Path(directory) / "socket",
        }
        left: list[roundelay.Group] = []

        async def careless() -> None:
            left.append(roundelay.join("g", node="a", **settings))
            await left[-1].start()

        for _ in range(3):
            asyncio.run(careless())
        with pytest.raises(roundelay.ClosedError, match="ended without leave"):
            left[0].send_nowait(b"x")


def test_a_port_in_use_by_another_event_loop_of_this_process_is_told():
    where = peers("a")
    with roundelay.blocking.join("first", node="a", peers=where):

        async def story() -> None:
            with pytest.raises(
                roundelay.ListenError, match="this very process, for group 'first' of another"
            ):
                await roundelay.join("second", node="a", peers=where).start()

        play(story)


def test_a_full_queue_is_told_or_waited_for():
    async def story() -> None:
        where = {**peers("a"), "b": "127.0.0.1:9"}
        async with roundelay.join("g", node="a", peers=where, queue_bytes=1 << 20) as group:
            group.ignore()
            for _ in range(10):
                group.send_nowait(bytes(100_000))
            with pytest.raises(roundelay.QueueFullError, match="use `await send`"):
                group.send_nowait(bytes(100_000))
            # Once it is alone in its view, the queue moves, and `send` goes on.
            await group.send(bytes(100_000))

    play(story)


def test_a_handler_that_sends_never_waits_for_itself():
    """Every message makes its receiver send more than the queue holds, and wait for one receipt."""

    async def story() -> None:
        async with cluster("abc", queue_bytes=1 << 20, datagram_bytes=1400) as groups:

            async def handler(group: roundelay.Group) -> None:
                rounds = 0
                async for event in group:
                    if isinstance(event, roundelay.Message) and event.payload == b"go":
                        for _ in range(30):
                            receipt = await group.send(bytes(50_000))
                        await receipt
                        rounds += 1
                        if rounds == 2:
                            return

            for group in groups:
                await group.send(b"go")
            await asyncio.gather(*map(handler, groups))

    play(story)


async def backlog(
    sender: roundelay.Group, reader: roundelay.Group, messages: int = 400, pause_s: float = 0.002
) -> int:
    """The most that ever waits at a slow reader while a sender sends all it can."""

    async def load() -> None:
        while True:
            await sender.send(bytes(20_000))

    loading = asyncio.create_task(load())
    read = most = 0
    async for event in reader:
        if isinstance(event, roundelay.Message):
            await asyncio.sleep(pause_s)
            read += 1
            most = max(most, reader.status()["queues"]["bytes_to_read"])
            if read == messages:
                break
    loading.cancel()
    return most


@pytest.mark.parametrize("engine", engines_in_views())
def test_a_slow_application_slows_the_group_down(engine):
    """b reads far less than a could send: what waits is bounded, and nobody is given up."""

    async def story() -> None:
        settings = {"engine": engine, "backlog_bytes": 1 << 20, "timeout_s": 2.0}
        async with cluster("ab", **settings) as (a, b):
            a.ignore()
            most = await backlog(a, b)
            assert 1 << 19 < most < 4 << 20  # It had more to read than it could take.
            assert b.view.members == ("a", "b")
            assert b.status()["counters"]["suspicions"] == 0

    play(story)


@pytest.mark.parametrize("engine", engines_in_views())
def test_a_very_slow_application_keeps_its_place(engine):
    """A packet of three messages takes b a third of a second. What it has no room for it asks for
    again and again, and those who ask are waited for."""

    async def story() -> None:
        settings = {"engine": engine, "backlog_bytes": 1 << 20, "timeout_s": 1.0}
        async with cluster("abc", **settings) as (a, b, c):
            a.ignore()
            c.ignore()
            assert await backlog(a, b, messages=25, pause_s=0.1) > 1 << 19
            assert b.status()["drops"]["refused"] > 0
            for group in (a, b, c):
                assert group.view.members == ("a", "b", "c")
                assert group.status()["counters"]["suspicions"] == 0

    play(story)


def test_who_sends_faster_than_it_reads_is_slowed_down_too():
    async def story() -> None:
        limits = {"backlog_bytes": 1 << 20, "queue_bytes": 1 << 20}
        async with cluster("a", **limits) as (a,):
            assert 1 << 19 < await backlog(a, a) < 4 << 20

    play(story)


def test_an_application_that_reads_nothing_is_given_up_and_comes_back(caplog):
    async def story() -> None:
        settings = {"backlog_bytes": 1 << 20, "options": {"fail_to_receive_visits": 5}}
        async with cluster("ab", timeout_s=0.1, **settings) as (a, b):
            a.ignore()

            async def load() -> None:
                while True:
                    await a.send(bytes(50_000))

            loading = asyncio.create_task(load())
            await a.wait_for_view(lambda view: view.members == ("a",), timeout_s=LIMIT_S)
            loading.cancel()
            assert b.status()["queues"]["bytes_to_read"] < 8 << 20
            assert b.status()["drops"]["refused"] > 0
            b.ignore()
            await a.wait_for(timeout_s=LIMIT_S)

    with caplog.at_level(logging.WARNING):
        play(story)
    assert "packets are refused and the group waits; read events" in caplog.text


def test_leaving_tells_everybody_who_waits():
    async def story() -> None:
        where = {**peers("a"), "b": "127.0.0.1:9"}
        group = roundelay.join("g", node="a", peers=where, timeout_s=30.0)
        await group.start()  # It will look for b for half a minute.
        receipt = await group.send(b"never delivered")
        waits = [
            asyncio.create_task(_await(receipt)),
            asyncio.create_task(group.wait_for(["a", "b"])),
            asyncio.create_task(group.wait_for_view(lambda view: len(view.members) > 1)),
        ]
        reading = asyncio.create_task(messages(group, 1))
        await asyncio.sleep(0)
        await group.leave(timeout_s=0.05)
        for task in waits:
            with pytest.raises(roundelay.ClosedError, match="group 'g' was left"):
                await task
        assert await reading == []
        with pytest.raises(roundelay.ClosedError):
            group.send_nowait(b"too late")
        with pytest.raises(roundelay.ClosedError):
            await group.send(b"too late")
        await group.leave()

    play(story)


async def _await(receipt: roundelay.Receipt) -> roundelay.Position:
    return await receipt


def test_leaving_waits_for_what_was_sent_and_is_noticed_at_once():
    async def story() -> None:
        async with cluster("abc", timeout_s=20.0) as (a, b, c):
            for number in range(100):
                a.send_nowait(b"%d" % number)
            await a.leave()
            assert len(await messages(b, 100)) == 100
            await c.wait_for_view(lambda view: view.members == ("b", "c"), timeout_s=LIMIT_S)

    play(story)


def test_cancelling_leaves_the_port_free():
    async def story() -> None:
        where = peers("ab")

        async def application() -> None:
            async with roundelay.join("g", node="a", peers=where) as group:
                await group.send(b"x")
                async for _ in group:
                    pass

        for _ in range(2):
            task = asyncio.create_task(application())
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    play(story)


def test_several_groups_on_one_port():
    async def story() -> None:
        where = peers("ab")
        async with AsyncExitStack() as stack:
            groups = {}
            for name in ("red", "blue"):
                for node in "ab":
                    group = roundelay.join(name, node=node, peers=where)
                    groups[name, node] = await stack.enter_async_context(group)
            for group in groups.values():
                await group.wait_for(timeout_s=LIMIT_S)
            for (name, _), group in groups.items():
                await group.send(name.encode())
            for (name, _), group in groups.items():
                assert [m.payload for m in await messages(group, 2)] == [name.encode()] * 2
            with pytest.raises(roundelay.ConfigError, match="is in group 'red' on"):
                await roundelay.join("red", node="a", peers=where).start()
        assert not Ports.of(asyncio.get_running_loop())._ports

    play(story)


async def median_s(group: roundelay.Group) -> float:
    """What a safe message takes to its receipt, in seconds."""
    times = []
    for _ in range(100):
        start = time.monotonic()
        await (await group.send(b"x", safe=True))
        times.append(time.monotonic() - start)
    return statistics.median(times)


def test_a_slow_reader_of_one_group_does_not_slow_another_on_its_port(caplog):
    """Nobody reads group "slow" at b; messages of "quick" come as fast as ever, and the log names
    the one that is slow."""

    async def story() -> None:
        where = peers("ab")
        async with AsyncExitStack() as stack:
            groups = {}
            for name in ("slow", "quick"):
                for node in "ab":
                    group = roundelay.join(name, node=node, peers=where, timeout_s=2.0)
                    groups[name, node] = await stack.enter_async_context(group)
            for group in groups.values():
                await group.wait_for(timeout_s=LIMIT_S)
            groups["slow", "a"].ignore()
            quick = groups["quick", "b"]
            alone_s = await median_s(quick)

            async def load() -> None:
                while True:
                    await groups["slow", "a"].send(bytes(20_000))

            loading = asyncio.create_task(load())
            try:
                await holds(lambda: groups["slow", "b"].status()["counters"]["stalls"] > 2)
                slow_s = await median_s(quick)
            finally:
                loading.cancel()
            assert quick.status()["counters"]["stalls"] == 0
            stall_s = 2.0 / 4
            assert slow_s < stall_s / 5 + 5 * alone_s  # The latter on a busy machine.

    with caplog.at_level(logging.WARNING):
        play(story)
    slow = [record.getMessage() for record in caplog.records if "slows the" in record.getMessage()]
    assert slow
    assert all(message.startswith("slow/b: ") for message in slow)


def test_events_are_read_in_one_place_only():
    async def story() -> None:
        async with cluster("ab") as (a, _):
            reading = asyncio.create_task(messages(a, 1))
            await asyncio.sleep(0.1)
            with pytest.raises(roundelay.ConfigError, match="read in one place only"):
                await messages(a, 1)
            await a.send(b"x")
            await reading

    play(story)


def test_a_group_is_used_after_it_was_joined():
    group = roundelay.join("g", node="a", peers={"a": "127.0.0.1:1"})
    with pytest.raises(roundelay.ConfigError, match="is not joined yet"):
        group.send_nowait(b"x")


def test_blocking_groups():
    where = peers("ab")
    with (
        roundelay.blocking.join("g", node="a", peers=where) as a,
        roundelay.blocking.join("g", node="b", peers=where) as b,
    ):
        assert a.wait_for(timeout_s=LIMIT_S).members == ("a", "b")
        b.wait_for(timeout_s=LIMIT_S)
        with pytest.raises(roundelay.SendError, match="names 'zz', which is no peer"):
            b.send(b"hello", to=["zz"])
        place = b.send(b"hello", safe=True).wait(LIMIT_S)
        for event in a:
            if isinstance(event, roundelay.Message):
                assert (event.payload, event.position) == (b"hello", place)
                break
        assert a.status()["view"]["members"] == ["a", "b"]
        with pytest.raises(TimeoutError, match=r"no such view within 0.05 s"):
            a.wait_for_view(lambda view: len(view.members) > 2, timeout_s=0.05)
        a.leave()
        assert list(a.batches()) == []
    with pytest.raises(roundelay.ClosedError, match="is not joined"):
        b.send(b"x")


def test_a_control_socket_answers_from_when_it_is_there():
    """Or the next node at this path takes it for a dead one's, and removes it."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "sock"
        with control._bind(path):
            assert control._answers(path)
            with pytest.raises(OSError, match="in use"):
                control._bind(path)


def test_the_control_socket_refuses_nonsense_and_cuts_off_who_does_not_read(monkeypatch):
    monkeypatch.setattr(control, "TAIL_BYTES_MAX", 100_000)

    async def story(path: Path) -> None:
        async with cluster("a", control=path, timeout_s=0.1) as (group,):
            group.ignore()
            reader, writer = await asyncio.open_unix_connection(path, limit=1 << 30)
            for line, answer in (
                (b"?\n", "makes no sense"),
                (b'{"do": "dance"}\n', "there is no request 'dance'"),
                (b'{"do": "send", "payload": 7}\n', "makes no sense"),
                (b'{"do": "send", "payload": "*"}\n', "makes no sense"),
            ):
                writer.write(line)
                assert answer in json.loads(await reader.readline())["error"]
            writer.close()
            loop = asyncio.get_running_loop()
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lazy:
                lazy.setblocking(False)
                await loop.sock_connect(lazy, str(path))
                await loop.sock_sendall(lazy, b'{"do": "tail"}\n')
                data = await loop.sock_recv(lazy, 1000)
                assert json.loads(data)["members"] == ["a"]
                for _ in range(20):  # More than the system holds for it.
                    await (await group.send(bytes(100_000)))
                while b'"error"' not in data[-200:]:
                    more = await loop.sock_recv(lazy, 1 << 20)
                    assert more, "it was not told"
                    data += more
                assert b"tail reads too slowly and was cut off" in data

    with tempfile.TemporaryDirectory(prefix="rd") as directory:
        play(lambda: story(Path(directory) / "socket"))
