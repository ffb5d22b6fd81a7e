"""`roundelay node` and the commands that reach it; and what it says when it cannot start."""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.patience import LIMIT_S, until

from roundelay.cli import main
from roundelay.runtime.client import Client, ClientError
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process


class Nodes:
    """Processes of `roundelay node`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *flags: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "roundelay", "node", *flags],
            cwd=self.directory,
            env={**os.environ, "XDG_RUNTIME_DIR": str(self.directory)},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def refused(self, *flags: str) -> str:
        """What a node says that does not start."""
        process = self.start(*flags)
        _, said = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 2, said
        assert "Traceback" not in said
        return said.strip().splitlines()[-1]


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with tempfile.TemporaryDirectory(prefix="rd") as directory:  # Paths of sockets must be short.
        found = Nodes(Path(directory))
        yield found
        for process in found.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


def peer_flags(*names: str) -> list[str]:
    return [f"--peer={name}={address}" for name, address in free_addresses(names).items()]


@contextmanager
def command(*words: str) -> "Iterator[subprocess.Popen[str]]":
    """A command that goes on; it is ended at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "roundelay", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until_line(process: "subprocess.Popen[str]", start: str) -> None:
    assert process.stdout is not None
    assert any(line.startswith(start) for line in process.stdout), f"it never printed {start!r}"


def test_a_group_from_the_command_line(nodes, capsys):
    peers = peer_flags("a", "b")
    ports = [flag.rpartition(":")[2] for flag in peers]
    (nodes.directory / "a.toml").write_text(
        'group = "g"\nnode = "a"\ncontrol = "a.sock"\nstate = "state"\n[peers]\n'
        f'a = "127.0.0.1:{ports[0]}"\nb = "127.0.0.1:{ports[1]}"\n'
    )
    a = nodes.start("a.toml", "--record", "records")
    b = nodes.start("--group=g", "--node=b", *peers, "--option=idle_rotations=2", "--quiet")
    at_a = ["--control", str(nodes.directory / "a.sock")]
    at_b = ["--control", str(nodes.directory / "roundelay" / "g-b.sock")]
    for path in (at_a[1], at_b[1]):
        until(Path(path).exists, path)
        assert Path(path).stat().st_mode & 0o077 == 0

    def together() -> bool:
        try:
            with Client(Path(at_b[1])) as client:
                return bool(client.ask(do="status")["view"]["members"] == ["a", "b"])
        except ClientError:
            return False  # Its socket was made a moment ago, and nobody listens yet.

    until(together, "a view of both")
    with Client(Path(at_b[1])) as tail:
        events = tail.tail()
        assert next(events)["members"] == ["a", "b"]
        assert main(["send", "hello", "world", "--safe", *at_a]) == 0
        places = capsys.readouterr().out.split()
        for place, word in zip(places, ("hello", "world"), strict=True):
            event = next(events)
            assert (event["position"], event["sender"], event["safe"]) == (place, "a", True)
            assert base64.b64decode(event["payload"]) == word.encode()
    assert main(["send", "--json", "more", *at_b]) == 0
    assert json.loads(capsys.readouterr().out)["sent"][0]["number"] == 0
    assert main(["status", *at_a]) == 0
    assert "a, b, primary" in capsys.readouterr().out
    assert main(["status", "--json", *at_a]) == 0
    assert json.loads(capsys.readouterr().out)["counters"]["messages_delivered"] == 3
    assert main(["status", "--prometheus", *at_a]) == 0
    assert 'roundelay_members{group="g",node="a"} 2' in capsys.readouterr().out

    with command("tail", "--count=1", *at_b) as tailing:
        assert tailing.stdout is not None
        assert tailing.stdout.readline().startswith("-- view")
        assert main(["send", "last", *at_a]) == 0
        assert tailing.stdout.readline().endswith(" a: last\n")
        assert tailing.wait(LIMIT_S) == 0
    with command("status", "--watch", *at_b) as watching:
        assert watching.stdout is not None
        for _ in range(2):
            until_line(watching, "view ")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(LIMIT_S) == 130

    b.send_signal(signal.SIGTERM)
    assert b.wait(LIMIT_S) == 0
    a.send_signal(signal.SIGINT)
    _, log = a.communicate(timeout=LIMIT_S)
    assert a.returncode == 0
    assert "view" in log
    assert "b joined" in log
    assert "Traceback" not in log
    assert not Path(at_a[1]).exists()
    assert main(["replay", str(nodes.directory / "records")]) == 0
    assert main(["status", *at_a]) == 2
    assert "no node answers at" in capsys.readouterr().err


def test_an_engine_and_its_options_from_the_command_line(nodes, capsys):
    """ATOP with a rule of dummies that it does not have by default: b is silent, and fills its
    slots when they come."""
    peers = peer_flags("a", "b")
    settings = ["--group=g", "--engine=atop", "--option=dummies=demand", *peers]
    running = [nodes.start(*settings, f"--node={name}", "--quiet") for name in "ab"]
    sockets = [nodes.directory / "roundelay" / f"g-{name}.sock" for name in "ab"]

    def together() -> bool:
        try:
            with Client(sockets[0]) as client:
                return bool(client.ask(do="status")["view"]["members"] == ["a", "b"])
        except ClientError:
            return False  # It has not started yet.

    until(together, "a view of both")
    words = [f"word{n}" for n in range(20)]
    assert main(["send", *words, "--control", str(sockets[0])]) == 0
    assert len(capsys.readouterr().out.split()) == len(words)
    for process in running:
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("policy=x", "write one of bookkeeper, given"),
        ("dummies=all", "write one of cover, demand, switch, none"),
        ("hold_s=0", "hold_s=0.002"),
        ("weights=a:20", "policy=given"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_in_a_sentence(nodes, option, sentence):
    flags = ["--group=g", "--node=a", "--engine=atop", f"--option={option}", *peer_flags("a", "b")]
    assert sentence in nodes.refused(*flags)


def test_a_socket_that_a_killed_node_left_is_used_again(nodes):
    flags = ["--group=g", "--node=a", *peer_flags("a"), "--control=a.sock"]
    path = nodes.directory / "a.sock"
    first = nodes.start(*flags)
    until(path.exists, "the control socket")
    first.kill()
    first.wait()
    assert path.exists()
    nodes.start(*flags)

    def answers() -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            return probe.connect_ex(str(path)) == 0

    until(answers, "the next node")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "'group' is missing; a node needs a group, a name and its peers"),
        (("none.toml",), "cannot read none.toml: No such file or directory; name a file"),
        (("bad.toml",), "bad.toml is not TOML"),
        (("--group=g", "--node=a", "--peer=a"), "--peer a: write it as --peer NAME=VALUE"),
        (
            ("--group=g", "--node=a", "--peer=a=127.0.0.1:1", "--peer=a=127.0.0.1:2"),
            "--peer a=127.0.0.1:2: a was given 127.0.0.1:1 before; give each once",
        ),
        (
            ("--group=g", "--node=a", "--peer=a=127.0.0.1:1", "--peer=b=127.0.0.1:1"),
            "peers 'a' and 'b' have one address, 127.0.0.1:1; give each its own",
        ),
        (("--group=g", "--node=a", "--peer=b=1.2.3.4:1"), "peers has no address for this node"),
        (
            ("--group=g", "--node=a", "--peer=a=nowhere.invalid:1"),
            "'nowhere.invalid' does not resolve; correct the name, or write its numeric address",
        ),
        (
            ("--group=g", "--node=a", "--peer=a=127.0.0.1:0", "--peer=b=[::1]:1"),
            "peer 'b': '::1' does not resolve to an IPv4 address",
        ),
        (
            ("--group=g", "--node=a", "--peer=a=127.0.0.1:0", "--option=speed=9"),
            "totem has no option 'speed'; it has: token_loss_s",
        ),
        (
            ("--group=g", "--node=a", "--peer=a=192.0.2.7:5401"),
            "192.0.2.7:5401 is not an address of this machine; bind to one that is",
        ),
        (
            ("--group=g", "--node=a", "--peer=a=127.0.0.1:0", "--trace=bad.toml"),
            "cannot write the trace to bad.toml: File exists; free some space or name another",
        ),
        (
            ("--group=g", "--node=a", "--peer=a=127.0.0.1:0", "--control=" + "x" * 120),
            "the control socket's path has more than 100 bytes; name a shorter one",
        ),
    ],
)
def test_what_cannot_be_is_told_in_one_sentence(nodes, flags, sentence):
    (nodes.directory / "bad.toml").write_text("group = ")
    said = nodes.refused(*flags)
    assert said.startswith("roundelay node: ")
    assert sentence in said


@pytest.mark.parametrize("limit", [7, 10, 12])
def test_too_few_open_files_are_told_in_one_sentence(nodes, limit, monkeypatch):
    """The event loop alone needs some of them."""
    plain = sys.executable
    few = nodes.directory / "few"
    few.write_text(f'#!/bin/sh\nulimit -n {limit}\nexec {plain} "$@"\n')
    few.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(few))
    flags = ("--group=g", "--node=a", "--peer=a=127.0.0.1:0", "--state=s", "--record=r")
    said = nodes.refused(*flags)
    assert "may open too few files: a node needs 8 besides those that are open" in said
    assert f"the limit is {limit}; raise it" in said


def test_a_peer_that_does_not_resolve_ends_no_node(nodes):
    (a,) = peer_flags("a")
    flags = ("--group=g", "--node=a", a, "--peer=b=nowhere.invalid:1", "--control=a.sock")
    process = nodes.start(*flags)
    until((nodes.directory / "a.sock").exists, "the node")
    control = f"--control={nodes.directory / 'a.sock'}"
    assert main(["send", "hello", control]) == 0
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0
    assert said.count("'nowhere.invalid', the host of peer 'b', does not resolve") == 1


def test_who_is_to_get_a_message_has_to_be_a_peer(nodes, capsys):
    (a,) = peer_flags("a")
    nodes.start("--group=g", "--node=a", a, "--engine=fifo", "--control=a.sock")
    until((nodes.directory / "a.sock").exists, "the node")
    control = f"--control={nodes.directory / 'a.sock'}"
    assert main(["send", "hello", "--to=a", control]) == 0
    assert main(["send", "hello", "--to=a,a", control]) == 0
    assert main(["send", "hello", "--to=a,zz", control]) == 2
    assert main(["send", "hello", "--to=a", "--to=zz", control]) == 2
    assert "`to` names 'zz', which is no peer; the peers are a" in capsys.readouterr().err
    with Client(nodes.directory / "a.sock") as client:
        for to, sentence in (([], "names nobody"), ("a", "is a list of names"), (7, "no sense")):
            with pytest.raises(ClientError, match=sentence):
                client.ask(do="send", payload="aGk=", to=to)


def test_a_second_node_on_the_same_port_or_state_is_refused(nodes):
    a, other = peer_flags("a", "x")
    nodes.start("--group=g", "--node=a", a, "--state=state", "--control=a.sock")
    until((nodes.directory / "a.sock").exists, "the first node")
    same_port = nodes.refused("--group=g", "--node=a", a, "--control=b.sock")
    assert "is taken by another process; stop that one (is this node running already?)" in same_port
    moved = "--peer=a=" + other.rpartition("=")[2]
    flags = ("--group=g", "--node=a", moved, "--control=b.sock")
    assert "is in use by a running node; stop that one" in nodes.refused(*flags, "--state=state")
    assert "cannot listen at the control socket" in nodes.refused(*flags[:3], "--control=a.sock")
