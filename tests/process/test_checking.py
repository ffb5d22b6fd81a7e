"""Nodes that check their own rows: a broken core is reported, a good one is not."""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.patience import LIMIT_S, until
from tests.process.cluster import Cluster

from roundelay.cli import main
from roundelay.runtime.client import Client, ClientError
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

BROKEN = Path(__file__).with_name("broken.py")
MESSAGES = 8


class Pair:
    """Two nodes of one group that check themselves; the core of b is broken."""

    def __init__(self, directory: Path, fault: str) -> None:
        self.directory = directory
        peers = [f"--peer={name}={address}" for name, address in free_addresses("ab").items()]
        programs = {"a": ["-m", "roundelay", "node"], "b": [str(BROKEN), fault]}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for name, program in programs.items():
            flags = ("--group", "g", "--node", name, "--control", str(directory / name))
            with (directory / f"log-{name}").open("wb") as log:
                self.processes[name] = subprocess.Popen(
                    [sys.executable, *program, *flags, *peers, "--check"], stderr=log
                )

    def status(self, name: str) -> dict[str, Any]:
        """Empty while the node does not answer."""
        try:
            with Client(self.directory / name) as client:
                return client.ask(do="status")
        except ClientError:
            return {}

    def together(self) -> bool:
        views = [(self.status(name).get("view") or {}).get("members") for name in "ab"]
        return views == [["a", "b"]] * 2

    def violations(self, name: str) -> int:
        found: int = self.status(name)["check"]["violations"]
        return found

    def log(self, name: str) -> list[str]:
        return (self.directory / f"log-{name}").read_text().splitlines()

    def stop(self, name: str) -> int:
        self.processes[name].send_signal(signal.SIGTERM)
        return self.processes[name].wait(LIMIT_S)

    def end(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(prefix="rd") as directory:  # Paths of sockets must be short.
        made = Pair(Path(directory), request.param)
        try:
            yield made
        finally:
            made.end()


@pytest.mark.parametrize(
    ("pair", "broken", "words"),
    [
        ("twice", {"D2"}, " twice"),
        ("swapped", {"O1", "O4"}, " before "),
    ],
    indirect=["pair"],
)
def test_a_broken_core_is_reported_and_the_node_goes_on(
    pair: Pair, broken: set[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    until(pair.together, "a view of both")
    for number in range(MESSAGES):
        assert main(["send", str(number), "--control", str(pair.directory / "a")]) == 0
    until(lambda: pair.violations("b") >= MESSAGES // 2, "violations")

    check = pair.status("b")["check"]
    assert set(check["violated"]) == broken
    assert check["first"].split(",")[0] in broken
    assert words in check["first"]
    assert check["failure"] == ""
    assert pair.violations("a") == 0

    capsys.readouterr()
    assert main(["status", "--control", str(pair.directory / "b")]) == 0
    shown = capsys.readouterr().out
    assert f"{check['violations']} violations in " in shown
    assert f"the first: {check['first']}" in shown

    assert pair.together()  # It goes on.
    assert [pair.stop(name) for name in "ba"] == [0, 0]
    errors = [line for line in pair.log("b") if " ERROR " in line]
    told, report = errors[:-1], errors[-1]
    assert {line.split("violation: ")[1].split(",")[0] for line in told} == broken
    assert "violated: " in report
    assert f"the first: {check['first']}" in report
    assert "no violation" in pair.log("a")[-1]


@pytest.mark.parametrize("engine", ["totem", "dtp", "atop", "fc", "st"])
def test_a_clean_run_through_view_changes_has_no_violation(tmp_path: Path, engine: str) -> None:
    with Cluster(tmp_path, "abc", engine, check=True) as cluster:
        cluster.start()
        cluster.view()
        cluster.relay("loss 5%")
        cluster.traffic()
        cluster.kill("c")
        cluster.view(*"ab")
        cluster.traffic("a", "b")
        cluster.start("c")
        cluster.view()
        cluster.relay("partition a,b c")
        cluster.view(*"ab")
        cluster.view("c")
        cluster.relay("heal")
        cluster.view()
        cluster.traffic()
        for node in "abc":
            found = cluster.status(node)
            assert found is not None
            check = found["check"]
            assert (check["violations"], check["failure"]) == (0, ""), json.dumps(check)
            judged = {"T1", "T2", "T3", "M1", "M2", "D2", "O1"}
            if engine != "st":  # Its deliveries have no keys.
                judged.add("O4")
            assert judged == set(check["properties"])
            assert check["rows"] > 100
            assert found["counters"]["views"] >= 3
        cluster.stop("a")
        assert "violat" not in cluster.log("a")
