"""The systemd units of `deploy/systemd`: what they start, and what it tells its service manager."""

import configparser
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.patience import LIMIT_S

from roundelay.cli import main
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*@*"))
COMMAND = "/opt/roundelay/bin/roundelay"
EXPOSURE_MAX = 20
"""The most that `systemd-analyze security` may find open in the unit of a node, of 100."""


def unit(name: str) -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # Names have two cases.
    parser.read(DEPLOY / "systemd" / name)
    return parser["Service"]


@dataclass
class Service:
    """A node that runs as its unit says, below another root."""

    process: subprocess.Popen[bytes]
    told: socket.socket
    control: Path

    def lines(self) -> list[str]:
        """The lines of the next message to the service manager."""
        return self.told.recv(4096).decode().splitlines()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    root = tmp_path
    for place in ("etc/roundelay", "run/roundelay/a", "var/roundelay/a"):
        (root / place).mkdir(parents=True)
    address = free_addresses("a")["a"]
    settings = f'group="g"\nnode="a"\njournal="journal"\ncheck=true\n[peers]\na="{address}"\n'
    (root / "etc/roundelay/a.toml").write_text(settings)
    line = unit("roundelay@.service")["ExecStart"].replace("%t", f"{root}/run").replace("%i", "a")
    command, *words = line.replace("/etc/", f"{root}/etc/").split()
    assert command == COMMAND
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind("\0roundelay-test-" + str(os.getpid()))
        told.settimeout(LIMIT_S)
        process = subprocess.Popen(
            [sys.executable, "-m", "roundelay", *words],
            cwd=root / "var/roundelay/a",
            env={
                **os.environ,
                "NOTIFY_SOCKET": f"@roundelay-test-{os.getpid()}",
                "WATCHDOG_USEC": "600000",
            },
            stderr=subprocess.DEVNULL,
        )
        yield Service(process, told, root / "run/roundelay/a/control")
        process.kill()
        process.wait()


def test_a_node_tells_its_service_manager_how_it_is(service, capsys):
    lines = service.lines()
    assert lines[0] == "READY=1"
    assert lines[1].startswith("STATUS=view ")
    assert main(["status", "--json", "--control", str(service.control)]) == 0
    assert json.loads(capsys.readouterr().out)["node"] == "a"
    while not any("of a, primary" in line for line in lines):
        lines = service.lines()
        assert lines[0] == "WATCHDOG=1"
    service.process.send_signal(signal.SIGTERM)
    while lines[0] != "STOPPING=1":
        lines = service.lines()
    assert service.process.wait(LIMIT_S) == 0


def test_every_metric_on_the_dashboard_is_one_that_a_node_has(service, capsys):
    assert service.lines()[0] == "READY=1"
    assert main(["status", "--prometheus", "--control", str(service.control)]) == 0
    samples = capsys.readouterr().out
    known = set(re.findall(r"^(roundelay_\w+)", samples, re.MULTILINE))
    board = json.loads((DEPLOY / "grafana" / "roundelay.json").read_text())
    shown = {
        name
        for panel in board["panels"]
        for target in panel.get("targets", ())
        for name in re.findall(r"roundelay_\w+", target["expr"])
    }
    shown |= {
        name
        for variable in board["templating"]["list"]
        for name in re.findall(r"roundelay_\w+", variable.get("query", ""))
    }
    assert len(shown) > 20
    with_a_key = {"roundelay_proven_peers"}
    assert shown - known == with_a_key


def test_the_units_name_commands_that_there_are():
    for path in UNITS:
        for words in re.findall(rf"{COMMAND} ([a-z ]+)", path.read_text()):
            with pytest.raises(SystemExit, match=r"^0$"):
                main([*words.split(), "--help"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_the_units_and_finds_them_closed(tmp_path):
    for path in UNITS:  # It looks for the command that they start.
        text = path.read_text().replace(COMMAND, shutil.which("true") or "/bin/true")
        (tmp_path / path.name).write_text(text)
    of_a = [tmp_path / path.name.replace("@", "@a") for path in UNITS]
    analyze("verify", *of_a)
    limit = f"--threshold={EXPOSURE_MAX}"
    analyze("security", "--offline=yes", limit, tmp_path / "roundelay@.service")


def analyze(*words: str | Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert not done.stderr, done.stderr
