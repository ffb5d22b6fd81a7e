"""Many messages at once, in a named session: what a sink of streams appends."""

import asyncio
import json
import socket
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.patience import holds, play
from tests.process.test_log_api import read, running

import roundelay
from roundelay.core.effects import Appended
from roundelay.core.log import NAMED
from roundelay.runtime import control
from roundelay.runtime.client import Client, ClientError
from roundelay.runtime.log.receipts import LogReceipts

pytestmark = pytest.mark.process


@pytest.fixture
def short() -> Iterator[Path]:
    """Paths of sockets must be short."""
    with tempfile.TemporaryDirectory(prefix="rd") as directory:
        yield Path(directory)


def some(first: int, count: int) -> list[bytes]:
    return [b"row %d" % number for number in range(first, first + count)]


def test_many_messages_are_in_the_log_once_and_in_order_however_often_they_are_repeated(tmp_path):
    async def story() -> None:
        async with running(tmp_path) as nodes:
            a, b = await nodes.start()
            session = await a.log.session("query")
            assert await session.append_all(some(100, 700), 100) == 699
            # Through another node, a part again and more of them.
            session = await b.log.session("query")
            assert session.last == 799
            assert await session.append_all(some(600, 300), 600) == 799
            assert await session.append_all(some(600, 300), 600) in (None, 799)
            again = await a.log.session("query")
            assert await again.append_all(some(0, 900), 0) is None
            assert await a.log.sync() == 800
            assert await read(b, 800) == some(100, 800)

    play(story)


def test_a_batch_that_is_larger_than_the_queue_waits_for_room(tmp_path):
    async def story() -> None:
        async with running(tmp_path, "a", queue_bytes=1 << 20) as nodes:
            (a,) = await nodes.start()
            session = await a.log.session("query")
            payloads = [bytes([n % 256]) * 10_000 for n in range(300)]
            assert await session.append_all(payloads, 0) == 299
            assert await read(a, 300) == payloads
            assert not a.log.driver.appending.receipts._spans

    play(story)


def test_two_clients_that_append_the_same_at_once_are_both_answered(tmp_path):
    async def story() -> None:
        async with running(tmp_path) as nodes:
            a, b = await nodes.start()
            sessions = [await node.log.session("query") for node in (a, a, b)]
            async with asyncio.TaskGroup() as tasks:
                for count, session in zip((500, 900, 900), sessions, strict=True):
                    tasks.create_task(session.append_all(some(0, count), 0))
            assert await a.log.sync() == 900
            assert await read(a, 900) == some(0, 900)

    play(story)


def test_a_batch_without_a_view_says_that_it_is_uncertain_or_was_not_sent(tmp_path):
    async def story() -> None:
        async with running(tmp_path) as nodes:
            a, _ = await nodes.start()
            session = await a.log.session("query")
            await nodes.stop("b")
            await holds(lambda: not a.log.primary)
            with pytest.raises(roundelay.SendError):
                await session.append_all(some(0, 10), 0, timeout_s=0.1)

    play(story)


def test_a_span_is_not_settled_by_the_same_messages_twice():
    receipts = LogReceipts()
    session = NAMED | 1
    run = receipts.span(session, 10)
    run.count = 6
    receipts.on_appended(Appended(session, 10, 3, 50))
    receipts.on_appended(Appended(session, 10, 4, 50))
    assert not run.settled
    assert run.find(13) == (True, 53)
    receipts.on_appended(Appended(session, 8, 8, 48))
    assert run.settled
    assert run.find(15) == (True, 55)
    assert receipts.waits
    receipts.drop_span(session, run)
    assert not receipts.waits


def request(path: Path, header: dict[str, object], data: bytes) -> dict[str, object]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(str(path))
        sock.sendall(json.dumps({"do": "append_all", **header}).encode() + b"\n" + data)
        answer: dict[str, object] = json.loads(sock.makefile("rb").readline())
        return answer


def test_the_control_socket_takes_a_batch_and_refuses_what_makes_no_sense(tmp_path, short):
    async def story() -> None:
        path = short / "s"
        async with running(tmp_path, "a", control=path) as nodes:
            (a,) = await nodes.start()
            payloads = [b"one", b"", b"three"]
            sizes = struct.pack(">3I", *map(len, payloads))

            def speak() -> None:
                with Client(path) as client:
                    for _ in range(2):  # The second time they are known.
                        client.append_all("query", 7, sizes, b"".join(payloads), 30)
                    assert client.append_all("query", 10, sizes[:4], b"end", 30) == 3
                good: dict[str, object] = {"session": "q", "first": 0, "count": 1, "bytes": 3}
                four = struct.pack(">I", 4)
                for wrong, words in (
                    ({"count": control.BATCH_COUNT_MAX + 1}, "at most"),
                    ({"bytes": control.BATCH_BYTES_MAX + 1}, "at most"),
                    ({"count": 0}, "at most"),
                    ({"first": -1}, "at most"),
                    ({"count": "1"}, "at most"),
                    ({"session": 3}, "makes no sense"),
                    ({}, "makes no sense"),  # The size is wrong.
                ):
                    assert words in str(request(path, good | wrong, four + b"abc")["error"])
                assert request(path, {}, b"")["error"]
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                    sock.connect(str(path))
                    sock.sendall(json.dumps({"do": "append_all", **good}).encode() + b"\n\0")
                with Client(path) as client, pytest.raises(ClientError, match="255 bytes"):
                    client.append_all("q" * 300, 0, sizes, b"".join(payloads), 30)

            await asyncio.to_thread(speak)
            assert await a.log.sync() == 4
            assert await read(a, 4) == [*payloads, b"end"]

    play(story)
