"""The commands that serve the page, as processes."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.patience import until
from tests.web.visits import Command, demo

from roundelay.cli import dashboard, main
from roundelay.cli.demo.processes import Nodes
from roundelay.cli.errors import UserError
from roundelay.runtime.relay import RelayProcess
from roundelay.transport.address import free_addresses
from roundelay.web.asked import AskedWrongError
from roundelay.web.dashboard import Dashboard
from roundelay.web.play import Own, Play
from roundelay.web.relays import Relays
from roundelay.web.watching import Watched, Watching

pytestmark = pytest.mark.process


def refused(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "roundelay", "dashboard", *words], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


def test_what_cannot_be_served_is_refused_in_a_sentence(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "choose another with --port" in refused("--port", str(port))
    assert "is no directory" in refused("--table", str(tmp_path / "none"))
    assert "choose another with --port" in refused("--port", "99999")


def test_the_token_is_another_one_each_time():
    first, second = Command("dashboard"), Command("dashboard")
    tokens = {command.url.partition("token=")[2] for command in (first, second)}
    first.close()
    second.close()
    assert len(tokens) == 2
    assert all(len(token) >= 32 for token in tokens)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_its_nodes_end_with_the_demo(tmp_path, number):
    command = demo(tmp_path)
    nodes = children(command.process.pid)
    assert len(nodes) == 6, "five nodes and a relay"
    command.close(number)
    until(lambda: not any(map(alive, nodes)), "the end of the nodes")


def test_a_relay_is_found_where_it_listens_by_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "roundelay").mkdir(mode=0o700)
    relay = RelayProcess(free_addresses("ab"))
    relays = Relays()
    relays.start()
    try:
        peers = {"a": relay.peers["a"]}
        until(lambda: relays.of(peers) is not None, "the relay")
        found = relays.of(peers)
        assert found is not None
        assert relays.command(found[0], "loss 5%")["loss"] == 0.05
        assert relays.of({"a": {"a": "127.0.0.1:1"}}) is None
        relay.close()
        until(lambda: relays.of(peers) is None, "the end of the relay")
    finally:
        relays.stop()


def test_a_relay_that_listens_elsewhere_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = tmp_path / "relay.sock"
    relay = RelayProcess(free_addresses("ab"), path)
    given: list[Dashboard] = []
    monkeypatch.setattr(dashboard, "serve", lambda args, page, about: given.append(page))
    for words in ([], ["--relay", str(path)]):
        assert main(["dashboard", *words]) == 0
    relays = [page._relays for page in given]
    for one in relays:
        one.start()
    peers = {"a": relay.peers["a"]}
    try:
        until(lambda: relays[1].of(peers) is not None, "the relay that was named")
        assert relays[0].of(peers) is None
    finally:
        for one in relays:
            one.stop()
        relay.close()


def test_two_restarts_at_once_start_one_process(tmp_path):
    """The page shows a node as gone until it answers, which takes its process a second."""
    with Nodes(tmp_path / "nodes", ("a", "b"), "totem", traced=False) as nodes:
        before = set(children(os.getpid()))
        nodes.start("a")
        nodes.kill("a")
        watching = Watching()
        gone = Watched(nodes.control("a"), "demo", "a", state="gone")
        watching._nodes[gone.path] = gone
        own = Own("demo", restart=nodes.restart, load=lambda name: None)
        play = Play(watching, Relays(), allowed=True, own=own)

        def restart(_: int) -> str:
            try:
                play._restart("demo", "a")
            except AskedWrongError as e:
                return str(e)
            return ""

        with ThreadPoolExecutor(2) as pool:
            said = sorted(pool.map(restart, range(2)))
        assert said == ["", "a runs already, or starts just now"]
        until(lambda: nodes.pids["a"] in children(os.getpid()), "its process")
        assert set(children(os.getpid())) - before == {nodes.pids["a"]}
        with pytest.raises(UserError, match="a runs already"):
            nodes.start("a")


def children(pid: int) -> list[int]:
    """Those of all its threads."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # It has ended, and another one has its children.
            found += map(int, thread.read_text().split())
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
