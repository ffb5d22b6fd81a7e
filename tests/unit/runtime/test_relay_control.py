"""The control socket of a relay."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from roundelay.runtime.chaos import Relay
from roundelay.runtime.client import Client, ClientError
from roundelay.runtime.errors import ConfigError
from roundelay.runtime.relay_control import RelayControl
from roundelay.transport.address import free_addresses


def asked(path: Path, *requests: dict[str, Any]) -> list[Any]:
    """The answers to requests on one connection; an error is its sentence."""
    answers: list[Any] = []
    with Client(path) as client:
        for request in requests:
            try:
                answers.append(client.ask(**request))
            except ClientError as e:
                answers.append(str(e))
    return answers


def run(tmp_path: Path, *requests: dict[str, Any]) -> list[Any]:
    async def story() -> list[Any]:
        relay = Relay(free_addresses("abc"))
        relay.open()
        control = RelayControl(tmp_path / "relay.sock", relay)
        await control.start()
        try:
            return await asyncio.to_thread(asked, control.path, *requests)
        finally:
            await control.close()
            relay.close()
            assert not control.path.exists()

    return asyncio.run(story())


def test_it_tells_of_the_relay_and_takes_its_commands(tmp_path):
    before, after, wrong, unknown, nonsense = run(
        tmp_path,
        {"do": "relay"},
        {"do": "command", "line": "partition a b,c"},
        {"do": "command", "line": "loss much"},
        {"do": "dance"},
        {"line": "heal"},
    )
    assert set(before["peers"]) == {"a", "b", "c"}
    assert before["cuts"] == []
    assert sorted(map(tuple, after["cuts"])) == [("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")]
    assert "no share" in wrong
    assert "dance" in unknown
    assert "no sense" in nonsense


def test_a_line_without_end_is_not_kept(tmp_path):
    async def story() -> None:
        relay = Relay(free_addresses("ab"))
        relay.open()
        control = RelayControl(tmp_path / "relay.sock", relay)
        await control.start()
        reader, writer = await asyncio.open_unix_connection(str(control.path))
        writer.write(b"x" * 1_000_000)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
        reader, writer = await asyncio.open_unix_connection(str(control.path))
        writer.write(b'{"do": "relay"}\n')
        assert json.loads(await reader.readline())["lost"] == 0
        writer.close()
        await control.close()
        relay.close()

    asyncio.run(story())


def test_a_path_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="100 bytes"):
        RelayControl(tmp_path / ("x" * 100), Relay({}))
