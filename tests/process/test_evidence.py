"""What `kill -9` leaves can be collected and judged, and convicts nobody who did nothing wrong."""

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

from roundelay.cli import main
from roundelay.runtime.client import Client, ClientError
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

NAMES = "abc"
NODE = (sys.executable, "-m", "roundelay", "node")


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rd") as directory:  # Paths of sockets must be short.
        yield Path(directory)


class Nodes:
    """Three of them, as docs/running.md starts them."""

    def __init__(self, place: Path, *flags: str) -> None:
        self.place = place
        self.flags = flags
        self.peers = [f"--peer={n}={a}" for n, a in free_addresses(NAMES).items()]
        self.running = {name: self.start(name) for name in NAMES}

    def start(self, name: str) -> "subprocess.Popen[bytes]":
        words = [f"--state=state-{name}", f"--control={name}.sock", "--trace=traces", *self.flags]
        return subprocess.Popen(
            [
                *NODE,
                "--group=g",
                f"--node={name}",
                "--quiet",
                "--record=records",
                *self.peers,
                *words,
            ],
            cwd=self.place,
            env=os.environ,
        )

    def together(self, names: str) -> None:
        def seen() -> bool:
            try:
                with Client(self.place / f"{names[0]}.sock") as client:
                    return bool(client.ask(do="status")["view"]["members"] == list(names))
            except ClientError:
                return False

        until(seen, f"a view of {names}")

    def send(self, name: str, count: int) -> None:
        texts = [str(number) for number in range(count)]
        assert main(["send", "--safe", *texts, "--control", str(self.place / f"{name}.sock")]) == 0

    def stop(self) -> None:
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        for process in self.running.values():
            assert process.wait(LIMIT_S) == 0

    def end(self) -> None:
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.mark.parametrize("every_row", [False, True])
def test_what_a_killed_node_leaves(place, capsys, every_row):
    nodes = Nodes(place, *(["--trace-every-row"] if every_row else []))
    try:
        nodes.together("abc")
        nodes.send("b", 20)
        killed = nodes.running.pop("b")
        killed.kill()
        killed.wait()
        nodes.together("ac")
        nodes.send("a", 5)
        before = {path: path.stat().st_size for path in (place / "records").iterdir()}
        nodes.running["b"] = nodes.start("b")
        nodes.together("abc")
        nodes.stop()
    finally:
        nodes.end()
    for path, size in before.items():
        assert path.stat().st_size >= size > 0
    assert len(list((place / "records").iterdir())) == 4
    assert main(["replay", str(place / "records")]) == 0
    capsys.readouterr()
    whole = str(place / "whole")
    assert main(["collect", str(place / "traces"), "-o", whole]) == 0
    said = capsys.readouterr()
    assert ("the trace of node b ends early" in said.err) == (not every_row)
    assert main(["check", whole, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert not [v for v in found["verdicts"] if v["verdict"] == "violated"]
    if not every_row:
        (problem, *_) = found["problems"]
        assert problem.startswith("the trace of node b ends early, as ")
        assert "b-" in problem
        assert {"S1", "D7"} <= set(found["undecided"])
    else:
        assert found["problems"] == []
