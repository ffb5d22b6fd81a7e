"""The control socket between a node and commands that mean no good, and the other way round."""

import asyncio
import contextlib
import json
import os
import resource
import socket
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.patience import STORY_S

from roundelay import Group, StartError, join
from roundelay.cli import main
from roundelay.cli.connection import printable
from roundelay.runtime import client, control
from roundelay.runtime.client import Client, ClientError, control_path, find_control
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process


@pytest.fixture
def short() -> Iterator[Path]:
    """Paths of sockets must be short."""
    with tempfile.TemporaryDirectory(prefix="rd") as directory:
        yield Path(directory)


def alone(path: Path, story: Callable[[Group], Awaitable[None]]) -> None:
    """A story of a node that is a group by itself."""

    async def play() -> None:
        async with asyncio.timeout(STORY_S):
            peers = free_addresses("a")
            async with join("g", node="a", peers=peers, control=path, timeout_s=0.1) as group:
                group.ignore()
                await story(group)

    asyncio.run(play())


async def connect(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, str(path))
    return sock


async def ask(path: Path, request: bytes) -> dict[str, object]:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(request)
        answer: dict[str, object] = json.loads(await reader.readline())
        return answer
    finally:
        writer.close()


def test_leaked_connections_cost_the_node_no_more_than_it_can_spare(short):
    path = short / "s"

    async def story(group: Group) -> None:
        before = len(os.listdir("/proc/self/fd"))
        leaked = [await connect(path) for _ in range(200)]
        for sock in leaked:
            with contextlib.suppress(OSError):  # Some had to make room for others already.
                sock.send(b'{"do": ')  # Half a line.
        answer = await ask(path, b'{"do": "status"}\n')
        assert answer["node"] == "a"
        held = len(os.listdir("/proc/self/fd")) - before - len(leaked)
        assert held <= control.CLIENTS_MAX + 1
        for sock in leaked:
            sock.close()

    alone(path, story)


def test_when_all_connections_tail_another_command_is_told_so(short, monkeypatch):
    monkeypatch.setattr(control, "CLIENTS_MAX", 3)
    path = short / "s"

    async def story(group: Group) -> None:
        tails = []
        for _ in range(3):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b'{"do": "tail"}\n')
            assert "view" in json.loads(await reader.readline())
            tails.append(writer)
        answer = await ask(path, b'{"do": "status"}\n')
        assert answer == {"error": "3 commands are connected to the node already"}
        for writer in tails:
            writer.close()

    alone(path, story)


def test_long_and_endless_lines_are_refused_and_take_little_memory(short):
    path = short / "s"

    async def story(group: Group) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        chunk = b"x" * (1 << 20)
        reader, writer = await asyncio.open_unix_connection(path)
        for _ in range(64):
            writer.write(chunk)
            await writer.drain()
        assert b"a request has 2 MB at most" in await reader.readline()
        writer.close()
        endless = [await connect(path) for _ in range(10)]
        for sock in endless:
            sock.send(chunk)
        for _ in range(20):
            await (await group.send(b"goes on"))
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown_kb < 100_000
        for sock in endless:
            sock.close()

    alone(path, story)


def test_twenty_tails_that_never_read_are_cut_off_and_told(short, monkeypatch):
    monkeypatch.setattr(control, "TAIL_BYTES_MAX", 500_000)
    path = short / "s"

    async def story(group: Group) -> None:
        loop = asyncio.get_running_loop()
        lazy = [await connect(path) for _ in range(20)]
        for sock in lazy:
            await loop.sock_sendall(sock, b'{"do": "tail"}\n')
            assert await loop.sock_recv(sock, 1000)
        for _ in range(40):
            await (await group.send(bytes(50_000)))
        for sock in lazy:
            data = b""
            while b'"error"' not in data[-200:]:
                more = await loop.sock_recv(sock, 1 << 20)
                assert more, "it was not told"
                data += more
            assert len(data) < 1_000_000
            assert b"tail reads too slowly and was cut off" in data[-200:]
            sock.close()
        assert (await ask(path, b'{"do": "status"}\n'))["node"] == "a"

    alone(path, story)


def test_who_never_reads_that_it_was_cut_off_is_let_go(short, monkeypatch):
    monkeypatch.setattr(control, "TAIL_BYTES_MAX", 100_000)
    monkeypatch.setattr(control, "CUT_OFF_S", 0.05)
    path = short / "s"

    async def story(group: Group) -> None:
        sock = await connect(path)
        sock.send(b'{"do": "tail"}\n')
        await asyncio.get_running_loop().sock_recv(sock, 1000)
        server = group._control
        assert server is not None
        for _ in range(20):
            await (await group.send(bytes(100_000)))
        await asyncio.gather(*server._clients)
        sock.close()

    alone(path, story)


# Something else than a node.


@contextmanager
def answering(path: Path, said: bytes, *, close: bool = True) -> Iterator[None]:
    """Somebody who says the same to everybody."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    open_ = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError):  # Whoever only looked is gone.
                connection.sendall(said)
            if close:
                connection.close()
            else:
                open_.append(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for connection in open_:
            connection.close()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\x00\xff\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b'{"view": ',
        b"7\n",
        b"{}\n",
        b"[" * 5000 + b"\n",
        b'{"view": {"id": 7}}\n',
        b'{"payload": 7, "position": "x", "sender": "y"}\n',
        b'{"error": "\\u001b[2J"}\n',
    ],
)
@pytest.mark.parametrize(
    "command", [["status"], ["status", "--prometheus"], ["send", "x"], ["tail"]]
)
def test_whatever_answers_the_commands_end_in_a_sentence(short, said, command, capsys):
    with answering(short / "s", said):
        assert main([*command, "--control", str(short / "s")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_somebody_who_says_nothing_is_not_waited_for_for_ever(short, monkeypatch, capsys):
    monkeypatch.setattr(client, "ANSWER_S", 0.1)
    with answering(short / "s", b"half", close=False):
        assert main(["status", "--control", str(short / "s")]) == 2
    assert "did not answer within 0.1 s" in capsys.readouterr().err


# Whose socket.


def test_a_socket_and_the_directories_made_for_it_are_its_owners_alone(short):
    path = short / "made" / "too" / "s"

    async def story(group: Group) -> None:
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        with Client(path) as found:
            assert client._server_user(found._socket) == os.geteuid()

    before = os.umask(0o022)
    try:
        alone(path, story)
    finally:
        os.umask(before)


def test_a_socket_goes_where_nobody_else_can_put_one(short):
    async def story(group: Group) -> None:
        assert (short / "s").exists()

    for mode in (0o720, 0o702, 0o777):
        short.chmod(mode)
        with pytest.raises(StartError, match=f"others can write to {short}.*chmod go-w {short}"):
            alone(short / "s", story)
    for mode in (0o1777, 0o755, 0o700):  # With 1777 nobody removes what belongs to others: /tmp.
        short.chmod(mode)
        alone(short / "s", story)


def test_a_place_that_belongs_to_another_user_is_not_used(short, monkeypatch):
    async def story(group: Group) -> None:
        raise AssertionError("it runs")

    if os.geteuid() == 0:
        (short / "s").touch()
        os.chown(short / "s", 54321, 54321)
        with pytest.raises(StartError, match="s, where the control socket goes, belongs to anoth"):
            alone(short / "s", story)
        os.chown(short, 54321, 54321)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(StartError, match=f"{short}, where the control socket goes, belongs to an"):
        alone(short / "s", story)


def test_nothing_is_told_to_a_node_of_another_user(short, monkeypatch, capsys):
    with answering(short / "s", b'{"number": 1}\n{"position": "1.a:1"}\n', close=False):
        monkeypatch.setattr(os, "geteuid", lambda: 54321)
        monkeypatch.setattr(client, "_server_user", lambda connection: 65432)
        assert main(["send", "x", "--control", str(short / "s")]) == 2
        assert "another user answers at" in capsys.readouterr().err
        monkeypatch.setattr(client, "_server_user", lambda connection: 0)
        assert main(["send", "x", "--control", str(short / "s")]) == 0


# Which node.


def test_one_of_several_nodes_is_chosen_by_name(short, monkeypatch, capsys):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    (short / "roundelay").mkdir(mode=0o700)
    with pytest.raises(ClientError, match="no node runs here; start one"):
        find_control()
    places = [control_path(*name) for name in (("g", "a"), ("g", "b"), ("g-a", "b"), ("g", "a-b"))]
    assert len(set(places)) == 4
    with answering(places[0], b""), answering(places[1], b""), answering(places[2], b""):
        with pytest.raises(ClientError, match="--group and --node: g-a/b, g/a, g/b"):
            find_control()
        assert find_control(node="a") == places[0]
        assert find_control("g", "b") == places[1]
        assert find_control("g-a") == places[2]
        with pytest.raises(ClientError, match="no such node runs here; there are: g-a/b, g/a, g/b"):
            find_control("h")
        assert main(["status", "--node", "a", "--control", "x"]) == 2
        assert "give --control, or --group and --node" in capsys.readouterr().err


def test_a_directory_that_others_made_is_not_used(short, monkeypatch, capsys):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    place = short / "roundelay"
    place.mkdir()
    place.chmod(0o777)
    assert client.own_directory(make=True) == place
    assert place.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert main(["status"]) == 2
    assert "is not a directory of this user" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    place.rmdir()
    place.symlink_to(short)
    with pytest.raises(ClientError, match="is not a directory of this user"):
        client.own_directory(make=True)


def test_a_payload_forges_no_line_and_moves_no_cursor():
    assert printable("1.a:0 a: x\n-- view 9.a: a\x1b[2J\u202e\ud800") == (
        "1.a:0 a: x\\n-- view 9.a: a\\x1b[2J\\u202e\\ud800"
    )
    assert printable("größer") == "größer"


def test_bytes_that_are_no_text_are_refused_as_an_argument(capsys):
    assert main(["send", "\udcff"]) == 2
    assert "is not UTF-8; send other bytes as lines of the input" in capsys.readouterr().err


def test_a_client_says_where_nobody_listens(short):
    with pytest.raises(ClientError, match="no node answers at"):
        Client(short / "s")
