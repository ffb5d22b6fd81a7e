"""`roundelay kv` and `roundelay lock`, with nodes that are processes."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.patience import LIMIT_S, until

from roundelay.runtime.client import Client
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

GONE, NOT_DONE, LOST = 1, 75, 76


def roundelay(*words: str) -> list[str]:
    """A command line."""
    return [sys.executable, "-m", "roundelay", *words]


class Hosts:
    """Three nodes with `--tools`, each with commands of its own host."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._peers = free_addresses("abc")
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}
        self.commands: list[subprocess.Popen[str]] = []
        for node in "abc":
            self.start(node)
        until(lambda: all(self.primary(node) for node in "abc"), "all are open")

    def start(self, node: str) -> None:
        peers = [f"--peer={name}={address}" for name, address in self._peers.items()]
        words = ["node", "--group=g", f"--node={node}", *peers, "--tools", "--quiet"]
        places = [f"--journal={self.directory / node}", f"--control={self.control(node)}"]
        self.nodes[node] = subprocess.Popen(roundelay(*words, *places))

    def control(self, node: str) -> Path:
        return self.directory / f"{node}.sock"

    def status(self, node: str) -> dict[str, object]:
        with Client(self.control(node)) as client:
            return client.ask(do="status")

    def primary(self, node: str) -> bool:
        try:
            log = self.status(node)["log"]
        except Exception:
            return False
        return isinstance(log, dict) and log["state"] == "open"

    def kill(self, *nodes: str) -> None:
        for node in nodes:
            self.nodes[node].kill()
            self.nodes[node].wait()

    def begin(self, node: str, *words: str) -> subprocess.Popen[str]:
        """A command at a node: the words up to `@` come before the arguments that name it."""
        at = words.index("@")
        process = subprocess.Popen(
            roundelay(*words[:at], f"--control={self.control(node)}", *words[at + 1 :]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.commands.append(process)
        return process

    def run(self, node: str, *words: str, given: str = "") -> tuple[int, str, str]:
        """Exit code and what was printed."""
        process = self.begin(node, *words)
        out, errors = process.communicate(given, timeout=LIMIT_S)
        assert "Traceback" not in errors, errors
        return process.returncode, out, errors

    def close(self) -> None:
        for command in self.commands:
            command.kill()
            command.communicate()
        self.kill(*self.nodes)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with tempfile.TemporaryDirectory(prefix="rd") as directory:
        found = Hosts(Path(directory))
        try:
            yield found
        finally:
            found.close()


def test_keys_through_any_node(hosts):
    assert hosts.run("a", "kv", "set", "@", "colour", "deep red")[:2] == (0, "")
    assert hosts.run("b", "kv", "get", "@", "colour")[:2] == (0, "deep red\n")
    assert hosts.run("c", "kv", "get", "@", "shape")[:2] == (GONE, "")
    assert hosts.run("c", "kv", "set", "@", "shape", given="round")[0] == 0
    assert hosts.run("a", "kv", "set", "@", "shape", "square", "--if-absent")[0] == GONE
    found = json.loads(hosts.run("a", "kv", "get", "@", "--json", "shape")[1])
    assert found["value"] == "round"
    version = f"--if-version={found['version']}"
    assert hosts.run("b", "kv", "set", "@", "shape", "oval", version)[0] == 0
    assert hosts.run("b", "kv", "set", "@", "shape", "flat", version)[0] == GONE
    assert hosts.run("c", "kv", "list", "@")[:2] == (0, "colour\tdeep red\nshape\toval\n")
    assert json.loads(hosts.run("c", "kv", "list", "@", "--json", "sh")[1]) == {"shape": "oval"}
    assert hosts.run("a", "kv", "delete", "@", "colour")[0] == 0
    assert hosts.run("a", "kv", "delete", "@", "colour")[0] == GONE
    shown = subprocess.run(
        roundelay("status", f"--control={hosts.control('a')}"),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "machine    kv, Map: size 1\n" in shown
    metrics = subprocess.run(
        roundelay("status", "--prometheus", f"--control={hosts.control('a')}"),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert 'roundelay_machine_size{group="g",node="a",machine="kv",kind="Map"} 1' in metrics


def test_changes_as_they_come(hosts):
    hosts.run("a", "kv", "set", "@", "k1", "old")
    watching = hosts.begin("b", "kv", "watch", "@", "k", "--present")
    assert watching.stdout is not None
    assert watching.stdout.readline() == "k1\told\n"
    hosts.run("a", "kv", "set", "@", "other", "x")
    hosts.run("c", "kv", "set", "@", "k1", "two\nlines")
    hosts.run("a", "kv", "delete", "@", "k1")
    assert watching.stdout.readline() == "k1\ttwo\\nlines\n"
    assert watching.stdout.readline() == "k1\n"
    until(lambda: "watchers" in str(hosts.status("b")["log"]), "a watcher is shown")


def test_a_minority_says_that_it_did_nothing_and_shows_what_is_old_if_asked(hosts):
    hosts.run("a", "kv", "set", "@", "colour", "red")
    hosts.run("c", "kv", "get", "@", "colour")
    hosts.kill("a", "b")
    until(lambda: not hosts.primary("c"), "the last one knows that it is alone")
    for words in (["set", "@", "colour", "blue"], ["get", "@", "colour"]):
        code, out, errors = hosts.run("c", "kv", *words, "--timeout=0.3")
        assert (code, out) == (NOT_DONE, "")
        assert errors.startswith("roundelay kv")
    code, out, errors = hosts.run("c", "kv", "get", "@", "--stale", "colour")
    assert (code, out) == (0, "red\n")
    assert errors.startswith("old: as of")
    code, _, errors = hosts.run("c", "lock", "@", "--timeout=0", "door", "--", "true")
    assert code == NOT_DONE
    assert "majority" in errors


def test_one_command_at_a_time_with_growing_tokens(hosts):
    note = hosts.directory / "note"
    script = f"echo begin $ROUNDELAY_TOKEN >> {note}; sleep 0.1; echo end >> {note}; exit 3"
    running = [hosts.begin(n, "lock", "@", "door", "--", "sh", "-c", script) for n in "abcab"]
    assert [process.wait(LIMIT_S) for process in running] == [3] * 5
    lines = note.read_text().split("\n")[:-1]
    assert lines[1::2] == ["end"] * 5
    tokens = [int(line.removeprefix("begin ")) for line in lines[::2]]
    assert tokens == sorted(set(tokens))


def test_what_a_lock_exits_with(hosts):
    assert hosts.run("a", "lock", "@", "door", "--", "sh", "-c", "kill -9 $$")[0] == 137
    assert hosts.run("a", "lock", "@", "door", "--", "/no/such/command")[0] == 127
    assert hosts.run("a", "lock", "@", "door", "--", str(hosts.directory))[0] == 126
    code, _, errors = hosts.run("a", "lock", "@", "door", "--timeout", "1", "--", "true")
    assert (code, errors) == (
        2,
        "roundelay lock: --timeout stands behind NAME; options come before it\n",
    )
    holding = hosts.begin("a", "lock", "@", "door", "--", "sh", "-c", "echo held; sleep 1000")
    assert holding.stdout is not None
    assert holding.stdout.readline() == "held\n"
    code, _, errors = hosts.run("b", "lock", "@", "--timeout=0", "door", "--", "true")
    assert (code, errors) == (NOT_DONE, "roundelay lock: a holds the lock\n")
    assert hosts.run("b", "lock", "@", "--timeout=0.2", "door", "--", "true")[0] == NOT_DONE
    assert hosts.run("b", "lock", "@", "--timeout=0", "other", "--", "echo", "--", "x")[:2] == (
        0,
        "-- x\n",
    )
    holding.send_signal(signal.SIGTERM)  # The command gets it.
    assert holding.wait(LIMIT_S) == 143
    assert hosts.run("b", "lock", "@", "door", "--", "true")[0] == 0


def test_a_command_whose_guard_was_killed_keeps_the_lock(hosts):
    script = "echo held; read line; echo over"
    holding = hosts.begin("a", "lock", "@", "door", "--", "sh", "-c", script)
    assert holding.stdout is not None
    assert holding.stdin is not None
    assert holding.stdout.readline() == "held\n"
    holding.kill()
    holding.wait()
    assert hosts.run("b", "lock", "@", "--timeout=0.5", "door", "--", "true")[0] == NOT_DONE
    holding.stdin.write("go\n")
    holding.stdin.flush()
    assert hosts.run("b", "lock", "@", "door", "--", "true")[0] == 0


@pytest.mark.parametrize("killed", ["a", "bc"], ids=["its-node", "the-majority"])
def test_a_command_is_ended_with_all_its_processes_when_its_lock_may_be_lost(hosts, killed):
    script = "trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000"
    words = ["lock", "@", "--grace=0.2", "door", "--", "sh", "-c", script]
    holding = hosts.begin("a", *words)
    assert holding.stdout is not None
    child = int(holding.stdout.readline())
    hosts.kill(*killed)
    _, errors = holding.communicate(timeout=LIMIT_S)
    assert holding.returncode == LOST
    assert "door may be lost" in errors
    until(lambda: not _runs(child), "what the command started has ended")


def test_a_command_that_may_go_on_is_told_of_and_does(hosts):
    words = [
        "lock",
        "@",
        "--on-loss=go-on",
        "door",
        "--",
        "sh",
        "-c",
        "echo held; read line; exit 4",
    ]
    holding = hosts.begin("a", *words)
    assert holding.stdout is not None
    assert holding.stdin is not None
    assert holding.stdout.readline() == "held\n"
    hosts.kill("a")
    assert holding.stderr is not None
    assert "door may be lost" in holding.stderr.readline()
    holding.stdin.write("\n")
    holding.stdin.flush()
    assert holding.wait(LIMIT_S) == 4


def test_a_node_without_tools_says_how_to_have_them(tmp_path):
    with tempfile.TemporaryDirectory(prefix="rd") as directory:
        control = Path(directory) / "a.sock"
        peer = f"--peer=a={free_addresses('a')['a']}"
        words = ["node", "--group=g", "--node=a", peer, f"--control={control}", "--quiet"]
        node = subprocess.Popen(roundelay(*words))
        try:
            until(control.exists, "the node runs")
            done = subprocess.run(
                roundelay("kv", "get", f"--control={control}", "k"),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 2
            assert done.stderr.strip().endswith("start all nodes of the group with --tools")
        finally:
            node.kill()
            node.wait()
    done = subprocess.run(
        roundelay(*words[:-2], "--tools"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        "roundelay node: --tools keeps a map and locks in the log; add --journal DIR\n",
    )


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
