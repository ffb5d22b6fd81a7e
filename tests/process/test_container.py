"""The files of `deploy/container`, as far as they can be tested without containers."""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from roundelay.cli import dashboard, node
from roundelay.trace.extras import EXTRAS

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
FILES = ROOT / "deploy" / "container"
RECIPE = (FILES / "Containerfile").read_text()
COMPOSE = yaml.safe_load((FILES / "compose.yaml").read_text())
PEERS = tomllib.loads((FILES / "group.toml").read_text())["peers"]


def settings_of(command: list[str]):
    """What `roundelay node` understands of the command of a service."""
    parser = argparse.ArgumentParser()
    node.configure(parser)
    assert command[0] == "node"
    words = [word.replace("/etc/roundelay", str(FILES)) for word in command[1:]]
    return node.told(parser.parse_args(words))


@pytest.mark.parametrize("name", PEERS)
def test_every_node_of_the_group_is_a_service_of_its_own(name):
    service = COMPOSE["services"][name]
    settings, tools = settings_of(service["command"])
    assert settings.node == name
    assert settings.peers[name].startswith(f"{name}:")
    assert tools
    mounted = dict(volume.split(":")[1::-1] for volume in service["volumes"])
    assert mounted["/data"] == f"data-{name}"
    assert settings.journal == Path("/data/journal")
    assert mounted["/key"] == "key"
    assert settings.key == Path("/key/group.key")
    assert service["healthcheck"]["test"][-2:] == ["--node", name]


def test_the_dashboard_sees_the_nodes_and_is_seen_by_this_machine_alone():
    service = COMPOSE["services"]["dashboard"]
    parser = argparse.ArgumentParser()
    dashboard.configure(parser)
    name, *words = service["command"]
    told = parser.parse_args(words)
    assert name == "dashboard"
    assert service["ports"] == [f"127.0.0.1:{told.port}:{told.port}"]
    assert told.host == "0.0.0.0"  # Of the container, or nothing could be published.
    assert not told.allow_faults
    assert set(service["depends_on"]) == set(PEERS)
    assert set(service["volumes"]) <= set(COMPOSE["services"]["a"]["volumes"])


def test_named_volumes_are_declared_and_used():
    used = {
        volume.partition(":")[0]
        for service in COMPOSE["services"].values()
        for volume in service["volumes"]
        if not volume.startswith(".")
    }
    assert used == set(COMPOSE["volumes"])


def test_no_registry_is_named():
    bases = re.findall(r"^FROM (\S+)", RECIPE, re.MULTILINE)
    images = [service["image"] for service in COMPOSE["services"].values()]
    assert bases
    assert not [image for image in (*bases, *images) if "/" in image]


def test_the_image_is_built_from_what_is_copied_into_it(tmp_path):
    """Exactly the files that the recipe copies make a wheel with all modules and scenarios."""
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", RECIPE, re.MULTILINE)
    let_in = set(re.findall(r"^!(.+)$", (FILES / "Containerfile.dockerignore").read_text(), re.M))
    names = [name for line in copied for name in line.split()]
    assert set(names) == let_in
    for name in names:
        source, target = ROOT / name, tmp_path / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", tmp_path, tmp_path],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    modules = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert modules <= held
    assert "roundelay/sim/scenarios/totem/g08_merge.txt" in held


def test_the_image_has_extras_that_there_are():
    (extras,) = re.findall(r"'\.\[(.+)\]'", RECIPE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert {"sealed", "dashboard"} <= set(extras.split(","))
    assert EXTRAS["cryptography"] == "sealed"
