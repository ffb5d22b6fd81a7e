"""Every example runs, as its first lines say."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

EXAMPLES = Path(__file__).parents[2] / "examples"
LIMIT_S = 60


def base_port() -> int:
    """The first of three free ports in a row."""
    for first in range(21_000, 30_000, 7):
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
        try:
            for i, sock in enumerate(sockets):
                sock.bind(("127.0.0.1", first + i))
        except OSError:
            continue
        finally:
            for sock in sockets:
                sock.close()
        return first
    raise AssertionError("no three free ports in a row")


def run(name: str, said: str = "") -> dict[str, list[str]]:
    """What each of three nodes prints."""
    port = str(base_port())
    processes = {
        node: subprocess.Popen(
            [sys.executable, str(EXAMPLES / name), node, port],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for node in "abc"
    }
    try:
        if said:
            _converse(processes, said)
        lines = {}
        for node, process in processes.items():
            out, err = process.communicate(timeout=LIMIT_S)
            assert process.returncode == 0, err
            lines[node] = out.splitlines()
        return lines
    finally:
        for process in processes.values():
            process.kill()


def _converse(processes: dict[str, "subprocess.Popen[str]"], said: str) -> None:
    """Once all are there, a says something, b answers, and when c has read both, they leave."""
    for process in processes.values():
        _read_until(process, "-- here: a, b, c")
    for node, line in zip("ab", said.split("|"), strict=True):
        stdin = processes[node].stdin
        assert stdin is not None
        stdin.write(f"{line}\n")
        stdin.flush()
        _read_until(processes["c"], f"{node}: {line}")


def _read_until(process: "subprocess.Popen[str]", wanted: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == wanted:
            return
    raise AssertionError(f"it never printed {wanted!r}")


def test_every_example_is_run():
    here = Path(__file__).read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f'run("{path.name}"' in here, path.name


def test_hello():
    lines = run("hello.py")
    greetings = [[line for line in said if "hello from" in line] for said in lines.values()]
    assert greetings[0] == greetings[1] == greetings[2]
    assert sorted(line[3:] for line in greetings[0]) == [f"hello from {node}" for node in "abc"]


def test_counter():
    lines = run("counter.py")
    assert lines["a"] == lines["b"] == lines["c"]
    assert lines["a"][0].startswith("value 15150, ")


def test_chat():
    run("chat.py", said="anybody there?|yes, here")


def test_work_queue():
    lines = run("work_queue.py")
    assert lines["a"] == lines["b"] == lines["c"]
    assert lines["a"][0].startswith("15 jobs done, by")
