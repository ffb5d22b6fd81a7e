"""A node whose trace is in pieces: what it did can be read while it runs."""

import socket
from functools import partial
from pathlib import Path

import pytest
from tests.patience import holds, play

import roundelay
from roundelay.core.effects import Kind
from roundelay.trace.manifest import Manifest
from roundelay.trace.reader import read

pytestmark = pytest.mark.process


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_what_a_node_did_can_be_read_while_it_runs(tmp_path: Path) -> None:
    peers = {"a": f"127.0.0.1:{free_port()}"}

    def delivered(count: int) -> bool:
        if not list(tmp_path.glob("a-*.parquet")):
            return False
        rows = read(tmp_path).rows
        return sum(row.count for row in rows if row.kind == Kind.DELIVER) == count

    async def story() -> None:
        node = roundelay.join("g", node="a", peers=peers, trace=tmp_path, trace_roll_s=1)
        async with node as group:
            group.ignore()
            for number in (1, 2):
                await group.send(b"once more")
                await holds(partial(delivered, number))

    play(story)
    (manifest,) = tmp_path.glob("*.manifest.json")
    assert Manifest.from_json(manifest.read_text()).pieces >= 2
    assert not read(tmp_path).problems
